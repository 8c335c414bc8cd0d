"""Connections: a small pool for reads, and dedicated ones that survive the loss of the server.

Purpose: whoever uses the database outlives its restart without being restarted. Invariant: nothing depends on the state
of a session that cannot be made again (planner options at most), so a connection is thrown away at the first doubt.
Trade-off: a read may run twice when its answer was lost; a transaction never does by itself, since only its caller
knows the request ids that make a second try safe.

Behind a transaction-pooling proxy (``pooled``) no statement is prepared by name, no start-up parameter is sent, every
statement stands in an explicit transaction, and planner options are set by SET LOCAL.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from datetime import datetime
from types import MappingProxyType
from typing import Any, Final, Self, TypeAlias, TypeVar, cast

import asyncpg

from partita.settings import DatabaseSettings
from partita.store import arrays
from partita.store.backoff import Backoff as Backoff  # noqa: PLC0414  # re-exported: it belongs to connections
from partita.store.errors import DATABASE_ERRORS, is_disconnect, is_refused_certificate, is_refused_login, translate
from partita.store.months import Months
from partita.store.sql import Sql

Connection: TypeAlias = "asyncpg.Connection[asyncpg.Record]"
Record: TypeAlias = asyncpg.Record
T = TypeVar("T")

PREPARED: Final = ("plan_cache_mode", "force_generic_plan")
"""What a session that keeps prepared statements adds. Where each statement is planned anew it would cost several times
as much: a plan for all values plans every month, one for these values only theirs."""
OPTIONS: Final = (
    ("enable_hashjoin", "off"),
    ("enable_mergejoin", "off"),
    ("enable_seqscan", "off"),
    ("jit", "off"),
    ("idle_in_transaction_session_timeout", "60s"),
)
"""Options of a coordinator. Plans must not depend on statistics, which are missing on the first of a month; ``jit``
because a forbidden plan's penalty looks like a cost that is worth compiling; the timeout because a process that is
frozen inside a transaction would keep its runs locked."""
PLANNER: Final = (PREPARED, *OPTIONS)
"""All options of a coordinator's own session."""
READS: Final = MappingProxyType({"plan_cache_mode": "force_generic_plan", "enable_sort": "off", "jit": "off"})
"""Options of a session of the pool. With two years of months to choose from, planning a read takes longer than reading;
and what an average value has few of, some value has a million of: rows are to come in the order of an index, up to a
limit, and never to be sorted. A sort that is needed anyway is still done."""
ONE_SNAPSHOT: Final = "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY"
"""First in a transaction whose statements have to see the same moment."""
_CACHE: Final = 512
"""Prepared statements that a connection keeps: more than there are blocks."""
_HASTY_SECONDS: Final = 0.5
"""How long the end of a connection may take when the process ends; milliseconds are usual."""


class Database:
    """One process's way to one database. Opening it needs no server; the first use does, within ``patience_ms``."""

    __slots__ = ("_application", "_closed", "_ending", "_pool", "months", "settings", "sql")

    def __init__(self, settings: DatabaseSettings, application: str, pool: asyncpg.Pool[Record]) -> None:
        self.settings = settings
        self.sql = Sql(settings.schema)
        self.months = Months(self.sql)
        self._application = application
        self._pool = pool
        self._closed = False
        self._ending = asyncio.Event()

    @classmethod
    async def open(cls, settings: DatabaseSettings, *, application: str = "partita") -> Self:
        """Prepare the pool; raises UnavailableError only for a URL that cannot be understood."""
        pool = asyncpg.create_pool(
            settings.read_url or settings.url,
            min_size=0,
            max_size=settings.read_connections,
            reset=_nothing_to_reset,
            **_options(settings, application, READS),
        )
        try:
            await pool
        except (ValueError, OSError, asyncpg.InterfaceError) as error:
            raise translate(error) from error
        return cls(settings, application, pool)

    def hurry(self) -> None:
        """The process ends: from now on a server that cannot be reached is tried once more, at once, and waited for no
        longer, on every connection that was made here. One that can be reached answers as before."""
        self._ending.set()

    async def close(self) -> None:
        """Close the pool; reads in flight are broken off after five seconds, for who is in a hurry after a moment."""
        self._closed = True
        try:
            await asyncio.wait_for(self._pool.close(), _HASTY_SECONDS if self._ending.is_set() else 5)
        except DATABASE_ERRORS:
            self._pool.terminate()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def fetch(self, name: str, *values: object) -> list[Record]:
        """Rows of a named block that only reads."""
        text = self.sql(name)
        return await self.read(lambda connection: connection.fetch(text, *values))

    async def fetchrow(self, name: str, *values: object) -> Record | None:
        """First row of a named block that only reads."""
        text = self.sql(name)
        return await self.read(lambda connection: connection.fetchrow(text, *values))

    async def fetchval(self, name: str, *values: object) -> Any:
        """First column of the first row of a named block that only reads."""
        text = self.sql(name)
        return await self.read(lambda connection: connection.fetchval(text, *values))

    async def clock(self) -> datetime:
        """The database's clock, which decides every deadline."""
        return cast("datetime", await self.read(lambda connection: connection.fetchval("SELECT clock_timestamp()")))

    async def read(self, work: Callable[[Connection], Awaitable[T]], *, snapshot: bool = False) -> T:
        """Run a read on a pooled connection, again when the connection is lost under it.

        ``snapshot``: all its statements see one moment, and none may write.
        Raises UnavailableError when the server stays away longer than ``patience_ms``, and what ``translate`` makes of
        any other error.
        """
        backoff = Backoff(self.settings, ending=self._ending)
        while True:
            try:
                return await self._once(work, snapshot)
            except DATABASE_ERRORS as error:
                if (task := asyncio.current_task()) is not None and task.cancelling():
                    raise asyncio.CancelledError from error  # giving the connection back failed, which hid this
                lost = is_disconnect(error) and not (is_refused_login(error) or is_refused_certificate(error))
                if self._closed or not lost or not await backoff.pause():
                    raise translate(error) from error

    async def _once(self, work: Callable[[Connection], Awaitable[T]], snapshot: bool) -> T:
        async with self._pool.acquire(timeout=self.settings.connect_timeout_ms / 1000) as pooled:
            connection = cast("Connection", pooled)
            try:
                return await self._work(connection, work, snapshot)
            except DATABASE_ERRORS as error:
                if is_disconnect(error):
                    connection.terminate()  # the pool would give it out again until it notices by itself
                raise

    async def _work(self, connection: Connection, work: Callable[[Connection], Awaitable[T]], snapshot: bool) -> T:
        if snapshot:
            async with connection.transaction(isolation="repeatable_read", readonly=True):
                return await work(connection)
        if self.settings.pooled:
            async with connection.transaction():
                return await work(connection)
        return await work(connection)

    def dedicated(self, purpose: str, *, planner: bool = True, ending: asyncio.Event | None = None) -> Dedicated:
        """A connection of its own, made at the first use. ``planner``: with the coordinator's planner options.

        ``ending``: what ends its patience with a server that is away, instead of ``hurry``.
        """
        application = f"{self._application}/{purpose}"
        return Dedicated(self.settings, application, planner=planner, ending=ending or self._ending)


class Dedicated:
    """One connection with one user, replaced whenever it is lost.

    Its transactions take turns: one that is begun while another is open waits for it. Who uses ``connection`` without
    ``transaction`` sees to it that nobody else does at the same time.
    """

    __slots__ = ("_application", "_connection", "_ending", "_planner", "_settings", "_turn", "connects")

    def __init__(
        self, settings: DatabaseSettings, application: str, *, planner: bool, ending: asyncio.Event | None = None
    ) -> None:
        """``ending``: once it is set nobody waits for a server that cannot be reached."""
        self._settings = settings
        self._ending = ending
        self._application = application
        self._planner = _planner(settings) if planner else ()
        self._connection: Connection | None = None
        self._turn = asyncio.Lock()
        self.connects = 0
        """How often a connection was made; more than one means that the server was lost."""

    def backoff(self, patience_ms: int | None = None) -> Backoff:
        """Pauses between attempts to reach its server; None takes the setting."""
        return Backoff(self._settings, patience_ms, self._ending)

    async def connection(self, patience_ms: int | None = None) -> Connection:
        """The live connection, made anew if need be. Behind a proxy it may be used inside ``transaction`` only.

        ``patience_ms``: how long to try; afterwards raises UnavailableError. None takes the setting, and does not wait
        for a role or a database that the server does not know.
        """
        if self._connection is not None and not self._connection.is_closed():
            return self._connection
        backoff = self.backoff(patience_ms)
        while True:
            try:
                self._connection = await self._connect()
            except DATABASE_ERRORS as error:
                refused = is_refused_certificate(error) or (patience_ms is None and is_refused_login(error))
                if refused or not is_disconnect(error) or not await backoff.pause():
                    raise translate(error) from error
            else:
                self.connects += 1
                return self._connection

    async def _connect(self) -> Connection:
        options = _options(self._settings, self._application)
        connection = cast("Connection", await asyncpg.connect(self._settings.url, **options))
        arrays.install(connection)
        if self._planner and not self._settings.pooled:
            await connection.execute("; ".join(f"SET {name} = '{value}'" for name, value in self._planner))
        return connection

    @asynccontextmanager
    async def transaction(self, patience_ms: int | None = None, *, first: str = "") -> AsyncIterator[Connection]:
        """A READ COMMITTED transaction: committed at the end of the block, rolled back on any exception.

        ``first``: a statement without parameters that is sent together with BEGIN.
        The database's errors leave it untranslated, for ``errors.verdict``. After one for which ``is_disconnect`` holds
        the outcome of the commit is unknown, and the next transaction begins on a new connection.
        """
        async with self._turn, self._transaction(patience_ms, first) as connection:
            yield connection

    @asynccontextmanager
    async def _transaction(self, patience_ms: int | None, first: str) -> AsyncIterator[Connection]:
        connection = await self.connection(patience_ms)
        try:
            await connection.execute(f"{self._begin}; {first}" if first else self._begin)
            yield connection
            await connection.execute("COMMIT")
        except DATABASE_ERRORS as error:
            await (self.discard() if is_disconnect(error) else self._rollback(connection))
            raise
        except Exception:
            await self._rollback(connection)
            raise
        except BaseException:
            # Cancelled in the middle of a statement: what the session is doing now is unknown.
            await self.discard()
            raise

    @property
    def session(self) -> object:
        """What stays the same while the same server is spoken to; None behind a proxy, where nobody knows how long."""
        connection = self._connection
        return None if self._settings.pooled or connection is None or connection.is_closed() else connection

    async def fetchrow(
        self, text: str, *values: object, patience_ms: int | None = None, session: object = None
    ) -> Record | None:
        """First row of one statement, a transaction of its own: one round trip. Errors as of ``transaction``.

        ``session``: send it over this connection only; None when there is another one now.
        """
        if self._settings.pooled:
            async with self.transaction(patience_ms) as connection:
                return await connection.fetchrow(text, *values)
        async with self._turn:
            connection = await self.connection(patience_ms)
            if session is not None and connection is not session:
                return None
            try:
                return await connection.fetchrow(text, *values)
            except DATABASE_ERRORS as error:
                if is_disconnect(error):
                    await self.discard()
                raise
            except BaseException:
                await self.discard()  # cancelled, or its answer was not understood: as in a transaction
                raise

    @property
    def _begin(self) -> str:
        if not (self._planner and self._settings.pooled):
            return "BEGIN"
        return "; ".join(["BEGIN", *(f"SET LOCAL {name} = '{value}'" for name, value in self._planner)])

    async def _rollback(self, connection: Connection) -> None:
        try:
            await connection.execute("ROLLBACK")
        except DATABASE_ERRORS:
            await self.discard()

    async def discard(self) -> None:
        """Throw the connection away at once; the next use makes another."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.terminate()

    async def close(self) -> None:
        """Close the connection in good order, or throw it away after two seconds, in a hurry after a moment."""
        connection, self._connection = self._connection, None
        hasty = self._ending is not None and self._ending.is_set()
        if connection is not None:
            with suppress(*DATABASE_ERRORS):
                await connection.close(timeout=_HASTY_SECONDS if hasty else 2)


def _planner(settings: DatabaseSettings) -> tuple[tuple[str, str], ...]:
    """The options that no role has set: all of them in a session, or those for each transaction behind a proxy."""
    missing = OPTIONS if settings.planner == "auto" else ()
    return missing if settings.pooled else (PREPARED, *missing)


def _options(
    settings: DatabaseSettings, application: str, session: Mapping[str, str] = MappingProxyType({})
) -> dict[str, Any]:
    """Arguments of asyncpg.connect, for direct connections, with these options, and for those behind a proxy."""
    timeout = settings.statement_timeout_ms / 1000 if settings.statement_timeout_ms else None
    options: dict[str, Any] = {"timeout": settings.connect_timeout_ms / 1000, "command_timeout": timeout}
    if settings.pooled:
        return {**options, "statement_cache_size": 0}
    return {
        **options,
        "statement_cache_size": _CACHE,
        "max_cached_statement_lifetime": 0,
        "server_settings": {"application_name": application, **session},
    }


async def _nothing_to_reset(_: Connection) -> None:
    """Reads leave no trace in the session, so that giving a connection back costs no round trip."""
