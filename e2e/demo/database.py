"""The demo's PostgreSQL: an embedded server of its own, or a schema of its own in a database that the person named.

Invariant: the demo reads and writes nothing of the person's: a named database gets the schema ``partita_demo``, which
is dropped when the demo ends.
"""

import abc
import asyncio
import os
from pathlib import Path
from urllib.parse import unquote

import asyncpg

from e2e.cluster.errors import ClusterError
from partita.store.embedded import Server

VARIABLE = "PARTITA_DATABASE_URL"
SCHEMA = "partita_demo"


class DemoDatabase(abc.ABC):
    """Where the demo's runs are kept."""

    title: str
    """What the story calls it."""

    @abc.abstractmethod
    def check(self) -> None:
        """Raise ClusterError when it could not be used; nothing is changed."""

    @abc.abstractmethod
    def start(self) -> None:
        """Make it ready and empty."""

    @abc.abstractmethod
    def remove(self) -> None:
        """Remove it with all runs."""

    @abc.abstractmethod
    def environment(self) -> dict[str, str]:
        """Return the variables that lead to it."""


class EmbeddedDatabase(DemoDatabase):
    """A server in the demo's folder, reachable by nobody else."""

    title = "an embedded PostgreSQL in the demo's folder"

    def __init__(self, folder: Path) -> None:
        self._server = Server(folder / "postgres")

    def check(self) -> None:
        """Nothing can be wrong before it is made."""

    def start(self) -> None:
        self._server.start()

    def remove(self) -> None:
        self._server.remove()

    def environment(self) -> dict[str, str]:
        return {VARIABLE: self._server.url()}


class NamedDatabase(DemoDatabase):
    """A schema in the database behind a URL."""

    title = f"your PostgreSQL (PARTITA_DATABASE_URL), in a schema {SCHEMA} that is dropped at the end"

    def __init__(self, url: str) -> None:
        self._url = url

    def check(self) -> None:
        _with_connection(self._url, "SELECT 1")

    def start(self) -> None:
        self.remove()

    def remove(self) -> None:
        _with_connection(self._url, f"DROP SCHEMA IF EXISTS {SCHEMA} CASCADE")

    def environment(self) -> dict[str, str]:
        return {VARIABLE: self._url, "PARTITA_DATABASE_SCHEMA": SCHEMA}


def demo_database(folder: Path, url: str | None = None) -> DemoDatabase:
    """Return the database at `url`, else the one that the environment names, else an embedded one in `folder`.

    A URL into `folder` itself is what a kept demo told its person to export; it ends with that demo and names nothing.
    """
    named = url or os.environ.get(VARIABLE)
    own = named is not None and str(folder) in unquote(named)
    return NamedDatabase(named) if named and not own else EmbeddedDatabase(folder)


def _with_connection(url: str, statement: str) -> None:
    try:
        asyncio.run(_execute(url, statement))
    except (OSError, ValueError, asyncpg.PostgresError, asyncpg.InterfaceError) as error:
        raise ClusterError(f"{VARIABLE}: {error}; expected a database that this machine can reach") from error


async def _execute(url: str, statement: str) -> None:
    connection = await asyncpg.connect(url, timeout=10)
    try:
        await connection.execute(statement)
    finally:
        await connection.close()
