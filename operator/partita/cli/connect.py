"""Which backend a command talks to, and the loop it runs in.

Invariant: a named database wins over the cluster; ``kubectl partita`` always means the cluster of the person's
kubeconfig. Heavy layers are imported only by the branch that needs them, so that ``--help`` stays quick.
"""

from __future__ import annotations

import asyncio
import dataclasses
import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TypeVar

from partita.cli.backend import Backend
from partita.settings import Settings

T = TypeVar("T")
PLUGIN = "kubectl-partita"


@dataclasses.dataclass(frozen=True, slots=True)
class Target:
    """Where a command was told to go."""

    database_url: str = ""
    """``--database-url``; empty takes ``PARTITA_DATABASE_URL``."""
    kubeconfig: str = ""
    context: str = ""


def is_plugin() -> bool:
    """Whether this process was started as ``kubectl partita``."""
    return Path(sys.argv[0]).name == PLUGIN


def settings_for(target: Target) -> Settings:
    """The settings of the environment, with the database that the command line names."""
    settings = Settings.load(os.environ)
    if target.database_url:
        database = dataclasses.replace(settings.database, url=target.database_url)
        settings = dataclasses.replace(settings, database=database)
    return settings


@asynccontextmanager
async def backend(target: Target) -> AsyncIterator[Backend]:
    """Open the backend of a target and close it afterwards; raises UnavailableError."""
    settings = settings_for(target)
    opened: Backend
    if settings.database.url and not is_plugin():
        from partita.cli.database import DatabaseBackend  # noqa: PLC0415  # the cluster branch needs no database driver

        opened = await DatabaseBackend.open(settings)
    else:
        from partita.cli.cluster import ClusterBackend  # noqa: PLC0415  # the database branch needs no Kubernetes client

        opened = await ClusterBackend.open(target.kubeconfig, target.context)
    try:
        yield opened
    finally:
        await opened.close()


def on_backend(target: Target, work: Callable[[Backend], Awaitable[T]]) -> T:
    """Run one command's work on its backend, in a loop of its own."""

    async def main() -> T:
        async with backend(target) as opened:
            return await work(opened)

    return asyncio.run(main())
