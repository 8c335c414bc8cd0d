"""Names of runs, for a shell that completes a word.

Invariant: a key press waits for an answer five seconds at most and never shows an error: where the names cannot be had,
none is offered. Trade-off: the newest runs only, and in a cluster of very many objects none, as all would be read.
"""

from __future__ import annotations

import asyncio
from typing import Final

import typer

from partita.cli.backend import RunQuery
from partita.cli.connect import Target, backend
from partita.domain.errors import PartitaError

SECONDS: Final = 5.0
MOST: Final = 200
Candidate = tuple[str, str]
"""A name, and what is said of it."""


def run_names(ctx: typer.Context, incomplete: str) -> list[Candidate]:
    """The newest runs where the command goes whose name, or id where they have none, begins so."""
    said = {name: str(ctx.params.get(name) or "") for name in ("database_url", "kubeconfig", "context")}
    try:
        return asyncio.run(_names(Target(**said), str(ctx.params.get("namespace") or ""), incomplete))
    except (PartitaError, TimeoutError, OSError):
        return []


async def _names(target: Target, namespace: str, incomplete: str) -> list[Candidate]:
    async with backend(target) as opened, asyncio.timeout(SECONDS):  # to open it asks nobody
        page = await opened.list(RunQuery(namespace=namespace, limit=MOST))
    found = {run.name or run.id: f"{run.definition}, {run.phase}" for run in reversed(page.runs)}
    return [(name, said) for name, said in reversed(found.items()) if name.startswith(incomplete)]
