"""A process that starts a run which waits, and then watches it as ``partita watch`` does, for a test that stops it."""

from __future__ import annotations

import asyncio
import os
import sys

from partita.cli.database import DatabaseBackend
from partita.cli.main import main
from partita.settings import Settings

NODES = [{"name": "ask", "waitForEvent": {}}]
HEAD = {"apiVersion": "partita.dev/v1alpha1", "metadata": {"name": "waits"}}


async def start() -> str:
    """Start the run and return its id."""
    documents = [
        {**HEAD, "kind": "WorkflowDefinition", "spec": {"nodes": NODES}},
        {**HEAD, "kind": "WorkflowRun", "spec": {"definitionRef": {"name": "waits"}}},
    ]
    async with await DatabaseBackend.open(Settings.load(os.environ)) as backend:
        return (await backend.submit("", documents))[1].id


if __name__ == "__main__":
    sys.argv = ["partita", "watch", asyncio.run(start()), "-o", "json"]
    main()
