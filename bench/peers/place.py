"""A peer's own database on the server that is measured, and what the server counted there."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final
from urllib.parse import parse_qs, unquote, urlsplit, urlunsplit
from uuid import uuid4

import asyncpg

_QUESTION: Final = """
SELECT (pg_current_wal_lsn() - '0/0'::pg_lsn)::bigint AS wal_bytes,
       (SELECT xact_commit FROM pg_stat_database WHERE datname = current_database()) AS commits
"""


@dataclass(frozen=True, slots=True)
class Counted:
    """Write-ahead log of the server, and commits in one database."""

    wal_bytes: int
    commits: int

    def __sub__(self, other: Counted) -> Counted:
        return Counted(self.wal_bytes - other.wal_bytes, self.commits - other.commits)


@asynccontextmanager
async def database(server: str) -> AsyncIterator[str]:
    """An empty database; gives its URL and drops it afterwards."""
    name = f"peer_bench_{uuid4().hex[:12]}"
    await _administer(server, f'CREATE DATABASE "{name}"')
    try:
        yield urlunsplit(urlsplit(server)._replace(path=f"/{name}"))
    finally:
        await _administer(server, f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')


async def counted(url: str) -> Counted:
    """The counters now; meaningful when no session of a peer is open, which would not have handed in its counts."""
    connection = await asyncpg.connect(url)
    try:
        row = await connection.fetchrow(_QUESTION)
    finally:
        await connection.close()
    return Counted(row["wal_bytes"], row["commits"]) if row else Counted(0, 0)


def variables(url: str) -> Mapping[str, str]:
    """The environment of a peer's process: the URL, and the same in the variables of libpq."""
    parts = urlsplit(url)
    socket = parse_qs(parts.query).get("host", [""])[0]
    found = {
        "PGHOST": parts.hostname or socket,
        "PGPORT": str(parts.port or ""),
        "PGUSER": unquote(parts.username or ""),
        "PGPASSWORD": unquote(parts.password or ""),
        "PGDATABASE": unquote(parts.path.lstrip("/")),
    }
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("PG")}
    return {**inherited, "PEER_URL": url, **{name: value for name, value in found.items() if value}}


async def _administer(url: str, statement: str) -> None:
    connection = await asyncpg.connect(url)
    try:
        await connection.execute(statement)
    finally:
        await connection.close()
