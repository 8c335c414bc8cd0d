"""PostgreSQL for tests: one server for everyone, one fresh database a test.

``PARTITA_TEST_POSTGRES=18|16|15`` chooses the version (18 by default; 15 is an installed Debian server); with
``PARTITA_DATABASE_URL`` alone, the server behind that URL is used, whose role must be allowed to create databases.

Invariant: parallel workers, and runs of pytest at the same time, share one server a version; the last one stops it. A
database is copied from a template that was migrated once; templates are named by the content of the migrations and of
the code that applies them, so that an edit makes a new one. Trade-off: the shared server runs without fsync, since its
data is worth nothing; tests that stop a server have their own. What one run makes another wait for (the lock of the
template, a database that is dropped while a session does not answer) is bounded, and the error tells who is in the way.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import tempfile
from collections.abc import AsyncIterator, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import unquote, urlsplit, urlunsplit
from uuid import uuid4

import asyncpg

import partita.store
from partita.domain.errors import UnavailableError
from partita.domain.ids import Month
from partita.settings import DatabaseSettings, Settings
from partita.store import migrations, partitions
from partita.store.embedded import DEFAULT_VERSION, Server, shared

T = TypeVar("T")
PREFIX = "partita_test_"
PATIENCE_SECONDS = 120
IN_THE_WAY = """
SELECT format('pid %s of %s (%s) is %s since %s: %s', pid, datname, application_name, state, state_change::time(0),
              left(query, 80))
FROM pg_stat_activity AS session
WHERE pid <> pg_backend_pid() AND datname IS NOT NULL
ORDER BY EXISTS (SELECT FROM pg_locks WHERE pg_locks.pid = session.pid AND locktype = 'advisory' AND granted) DESC,
         xact_start NULLS LAST LIMIT 5
"""


@dataclass(frozen=True, slots=True)
class Cluster:
    """A server with the right to create databases."""

    admin_url: str
    server: Server | None
    """None when it is not ours."""

    def url(self, database: str) -> str:
        """URL of another database of the server."""
        return with_database(self.admin_url, database)


class _Disposable(Server):
    """A server whose data is worth nothing: when a crash of the machine has broken it, it is made anew."""

    def start(self) -> None:
        try:
            super().start()
        except UnavailableError:
            shutil.rmtree(self.data)
            super().start()


def with_database(url: str, database: str) -> str:
    """The URL with another database name."""
    parts = urlsplit(url)
    return urlunsplit(parts._replace(path=f"/{database}"))


def database_of(url: str) -> str:
    """Name of the database of a URL."""
    return unquote(urlsplit(url).path.lstrip("/"))


def direct_url(settings: Settings) -> str:
    """URL that leads to the server itself, also when the settings lead through PgBouncer."""
    return settings.database.migrations_url or settings.database.url


def run(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end from synchronous code, without touching the loop of the test."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, work).result()


def chosen_version() -> int | None:
    """Version of the server to start; None when an existing one is to be used."""
    version = os.environ.get("PARTITA_TEST_POSTGRES")
    if version:
        return int(version)
    return None if os.environ.get("PARTITA_DATABASE_URL") else DEFAULT_VERSION


@contextmanager
def cluster() -> Iterator[Cluster]:
    """The server for this run."""
    version = chosen_version()
    if version is None:
        yield Cluster(os.environ["PARTITA_DATABASE_URL"], None)
        return
    folder = Path(tempfile.gettempdir()) / f"partita-test-{os.geteuid()}-{version}"
    with shared(_Disposable(folder, version, durable=False)) as server:
        yield Cluster(server.url(), server)


def template(cluster: Cluster) -> str:
    """Name of the migrated database that tests copy; made when there is none of this content yet."""
    return run(_template(cluster))


async def _template(cluster: Cluster) -> str:
    name = f"{PREFIX}template_{_content()}"
    async with _administering(cluster) as admin:
        await admin.execute("SELECT pg_advisory_lock(7230517)")
        if not await admin.fetchval("SELECT true FROM pg_database WHERE datname = $1", name):
            await _remove_leftovers(admin)
            building = f"{PREFIX}building_{uuid4().hex[:12]}"
            await admin.execute(f'CREATE DATABASE "{building}"')
            await prepare(cluster.url(building))
            await admin.execute(f'ALTER DATABASE "{building}" RENAME TO "{name}"')
    return name


async def _remove_leftovers(admin: asyncpg.Connection[asyncpg.Record]) -> None:
    """Drop databases that killed runs and older contents have left behind."""
    made = "(pg_stat_file('base/' || oid || '/PG_VERSION', true)).modification"
    query = f"SELECT datname FROM pg_database WHERE datname LIKE '{PREFIX}%' AND {made} < now() - interval '6 hours'"  # noqa: S608  # constants only
    with suppress(asyncpg.PostgresError):  # an existing server may not allow to look at files
        for row in await admin.fetch(query):
            await admin.execute(f'DROP DATABASE IF EXISTS "{row["datname"]}" WITH (FORCE)')


def _content() -> str:
    """Digest of everything that shapes a migrated database, and of the month, since partitions follow the calendar."""
    digest = sha256("".join(file.text for file in migrations.available()).encode())
    store = Path(partita.store.__file__).parent
    for name in ("migrations.py", "partitions.py", "queries/partitions.sql"):
        digest.update((store / name).read_bytes())
    digest.update(str(Month.of(datetime.now(UTC))).encode())
    return digest.hexdigest()[:16]


async def prepare(url: str) -> None:
    """Migrate a database and make its partitions."""
    settings = Settings(database=DatabaseSettings(url=url))
    await migrations.migrate(settings.database)
    await partitions.ensure(settings)


@contextmanager
def fresh_database(cluster: Cluster, template: str) -> Iterator[str]:
    """URL of a new copy of the template; dropped afterwards, whoever is still connected."""
    name = f"{PREFIX}{uuid4().hex[:16]}"
    run(_admin(cluster, f'CREATE DATABASE "{name}" TEMPLATE "{template}"'))
    try:
        yield cluster.url(name)
    finally:
        run(_admin(cluster, f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)'))


async def create_prepared(server: Server, database: str) -> None:
    """Make a migrated database with partitions on a server of one's own."""
    await _admin(Cluster(server.url(), server), f'CREATE DATABASE "{database}"')
    await prepare(server.url(database))


async def _admin(cluster: Cluster, statement: str) -> None:
    async with _administering(cluster) as admin:
        await admin.execute(statement)


@asynccontextmanager
async def _administering(cluster: Cluster) -> AsyncIterator[asyncpg.Connection[asyncpg.Record]]:
    """A session whose statements wait for others only so long; TimeoutError names who is in the way."""
    admin = await asyncpg.connect(cluster.admin_url)
    try:
        await admin.execute(f"SET statement_timeout = '{PATIENCE_SECONDS}s'")
        yield admin
    except asyncpg.QueryCanceledError as error:
        others = [row[0] for row in await admin.fetch(IN_THE_WAY)]
        raise TimeoutError(
            f"test server {cluster.admin_url}: a statement took more than {PATIENCE_SECONDS} s; "
            "other sessions, holders of advisory locks first, then the oldest transactions: "
            f"{'; '.join(others) or 'none'}"
        ) from error
    finally:
        await admin.close()


@contextmanager
def own_server() -> Iterator[Server]:
    """A server of one test, which may stop it as it likes; removed afterwards."""
    data = Path(tempfile.mkdtemp(prefix="partita-own-")) / "data"
    data.parent.chmod(0o755)
    server = Server(data, chosen_version() or DEFAULT_VERSION, durable=False)
    server.start()
    try:
        yield server
    finally:
        server.remove()
        data.parent.rmdir()
