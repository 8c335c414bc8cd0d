"""Which backend a command talks to, and the loop it runs in.

Invariant: what the command line names wins over the environment, there a named database wins over the cluster, and
``kubectl partita`` always means a cluster. Heavy layers are imported only by the branch that needs them, so that
``--help`` stays quick.
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
from partita.database_url import EXPECTED, url_problem
from partita.domain.errors import InvalidError, Problem, UnavailableError
from partita.settings import Settings

T = TypeVar("T")
PLUGIN = "kubectl-partita"


@dataclasses.dataclass(frozen=True, slots=True)
class Target:
    """Where a command was told to go; what is empty was not said."""

    database_url: str = ""
    """``--database-url``; empty takes ``PARTITA_DATABASE_URL``."""
    kubeconfig: str = ""
    context: str = ""

    @property
    def names_cluster(self) -> bool:
        """Whether the command line asks for a cluster."""
        return bool(self.kubeconfig or self.context)


def is_plugin() -> bool:
    """Whether this process was started as ``kubectl partita``."""
    return Path(sys.argv[0]).name == PLUGIN


def settings_for(target: Target) -> Settings:
    """The settings of the environment, with the database that the command line names."""
    settings = Settings.load(os.environ)
    if target.database_url:
        problem = url_problem(target.database_url)
        if problem:
            raise InvalidError("--database-url", (Problem("", problem),))
        database = dataclasses.replace(settings.database, url=target.database_url, read_url="")
        settings = dataclasses.replace(settings, database=database)
    return settings


def database_settings(database_url: str) -> Settings:
    """The settings of a command that needs a database; raises InvalidError when none is named."""
    settings = settings_for(Target(database_url=database_url))
    if not (settings.database.url or settings.database.migrations_url):
        problem = Problem("--database-url", f"is not set; {EXPECTED}")
        raise InvalidError("database", (problem,), hint="export PARTITA_DATABASE_URL=…")
    return settings


@asynccontextmanager
async def backend(target: Target) -> AsyncIterator[Backend]:
    """Open the backend of a target and close it afterwards; raises UnavailableError."""
    if target.database_url and (target.names_cluster or is_plugin()):
        problem = Problem("--database-url", "names a database where a cluster is meant; expected one of the two")
        raise InvalidError("options", (problem,), hint="leave out --kubeconfig and --context, and call partita")
    settings = settings_for(target)
    opened: Backend
    if settings.database.url and not target.names_cluster and not is_plugin():
        from partita.cli.database import DatabaseBackend  # noqa: PLC0415  # the cluster branch needs no database driver

        opened = await DatabaseBackend.open(settings)
    else:
        from partita.cli.cluster import ClusterBackend  # noqa: PLC0415  # the database branch needs no Kubernetes client

        try:
            opened = await ClusterBackend.open(target.kubeconfig, target.context)
        except UnavailableError as error:
            if target.names_cluster or is_plugin():
                raise
            words = f"{error.message}; no database is named either"
            raise UnavailableError(
                words, hint="--kubeconfig PATH, or --database-url URL, or export PARTITA_DATABASE_URL=URL"
            ) from error
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
