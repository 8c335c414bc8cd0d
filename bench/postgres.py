"""The server that is measured: one of our own that writes durably, or the one that PARTITA_DATABASE_URL names.

Invariant: ``fsync`` and ``synchronous_commit`` are on, or nothing is measured; every measurement has a fresh, migrated
database, dropped afterwards. Trade-off: an own server starts with cold statistics and an empty write-ahead log, so that
each script warms up before it measures.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit
from uuid import uuid4

import asyncpg

from bench.figures import say
from partita.settings import DatabaseSettings, RetentionSettings, Settings
from partita.store import migrations, partitions
from partita.store.embedded import Server

NOT_DURABLE = "bench: the server's {name} is off; expected on: without it nothing is durable and every figure is false"


@dataclass(frozen=True, slots=True)
class Base:
    """A server on which databases may be made."""

    url: str
    log: Path | None
    """The server's log; None when the server is not ours."""


@contextmanager
def server() -> Iterator[Base]:
    """The server of one script."""
    given = os.environ.get("PARTITA_DATABASE_URL")
    if given:
        yield Base(given, None)
        return
    folder = Path(tempfile.mkdtemp(prefix="partita-bench-"))
    folder.chmod(0o755)
    own = Server(folder / "data", durable=True, options={"synchronous_commit": "on"})
    try:
        own.start()
        yield Base(own.url(), own.data / "log")
    finally:
        own.remove()
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def database(base: Base, retention: RetentionSettings | None = None) -> Iterator[Settings]:
    """A fresh database with schema and partitions, those of other months than usual if so wished."""
    name = f"partita_bench_{uuid4().hex[:12]}"
    asyncio.run(_administer(base.url, f'CREATE DATABASE "{name}"'))
    url = urlunsplit(urlsplit(base.url)._replace(path=f"/{name}"))
    settings = Settings(database=DatabaseSettings(url=url), retention=retention or RetentionSettings())
    try:
        asyncio.run(_prepare(settings))
        yield settings
    finally:
        asyncio.run(_administer(base.url, f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)'))


@contextmanager
def measured() -> Iterator[Settings]:
    """A server and a database on it, for the scripts that need no more."""
    with server() as base, database(base) as settings:
        yield settings


async def _prepare(settings: Settings) -> None:
    await migrations.migrate(settings.database)
    await partitions.ensure(settings)
    connection = await asyncpg.connect(settings.database.url)
    try:
        for name in ("fsync", "synchronous_commit", "full_page_writes"):
            if await connection.fetchval(f"SHOW {name}") != "on":
                raise SystemExit(NOT_DURABLE.format(name=name))
        version = await connection.fetchval("SHOW server_version")
        say(f"PostgreSQL {version}, fsync, synchronous_commit and full_page_writes on; {_machine()}")
    finally:
        await connection.close()


def _machine() -> str:
    """How big and how busy it is here."""
    load = os.getloadavg()[0]
    return f"{len(os.sched_getaffinity(0))} cores, load average {load:.2f}"


async def _administer(url: str, statement: str) -> None:
    connection = await asyncpg.connect(url)
    try:
        await connection.execute(statement)
    finally:
        await connection.close()
