"""Changes of partitions: by one process at a time, and with nobody waiting behind them for long.

Purpose: the turn, the patience and the waits that ``retention`` and ``compaction`` share. Invariant: a lock that the
engine's statements would queue behind is waited for no longer than ``lock_timeout_ms``, and what can be waited for
without a lock (that transactions end) is waited for without one. Other locks (to detach concurrently, to drop what is
detached) are waited for until the server ends an autovacuum in the way, which it does after ``deadlock_timeout``.
Trade-off: where somebody does not make way in time, the change is left for the next call, which goes on where this one
ended.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final, ParamSpec, TypeVar

from partita.domain.errors import UnavailableError
from partita.domain.ids import Month
from partita.settings import Settings
from partita.store import removal
from partita.store.advisory import advisory_key
from partita.store.backoff import Backoff
from partita.store.database import Connection, Dedicated
from partita.store.errors import boundary, sqlstate
from partita.store.migrations import direct
from partita.store.partitions import LOCK_PURPOSE, PartitionTable, partition_tables
from partita.store.sql import Sql

P = ParamSpec("P")
T = TypeVar("T")
_TRIES: Final = 5
_BUSY: Final = {"55P03", "40P01", "57014", "55006"}
"""A lock or a time limit ran out, a deadlock, or what ``compaction_swap`` raises itself."""
_WAITS: Final = 10
"""Lock timeouts for which transactions that are under way are waited for: nobody waits behind that."""
_POLL: Final = 0.005
_LONGEST_POLL: Final = 0.1


class BusyError(Exception):
    """Somebody is in the way; the next call goes on."""


@dataclass(frozen=True, slots=True)
class Changes:
    """A session that has the turn."""

    connection: Connection
    sql: Sql
    settings: Settings

    @property
    def lock_timeout_ms(self) -> int:
        """How long a lock is waited for."""
        return self.settings.retention.lock_timeout_ms

    async def tables(self, month: Month | None = None) -> list[PartitionTable]:
        """Every month's tables, or one month's; those of workflow_runs last."""
        found = await partition_tables(self.connection, self.sql)
        return [table for table in found if month is None or table.month == month]

    async def unfinished(self, month: Month, most: int) -> list[object]:
        """Ids of the month's unfinished runs, at most so many, in order."""
        rows = await self.connection.fetch(self.sql("open_runs_between"), month.lower, month.upper, most)
        return [row["run_id"] for row in rows]

    async def drop(self, names: Sequence[str]) -> None:
        """Drop tables that are attached to nothing, the last of them last."""
        await removal.remove(self, names)

    async def patiently(self, work: Callable[P, Awaitable[T]], *args: P.args, **kwargs: P.kwargs) -> T:
        """Do the work, again a few times when somebody is in the way; raises BusyError."""
        for attempt in range(1, _TRIES + 1):
            try:
                return await work(*args, **kwargs)
            except Exception as error:
                if sqlstate(error) not in _BUSY:
                    raise
                if attempt == _TRIES:
                    raise BusyError(str(error)) from error
                await asyncio.sleep(self.lock_timeout_ms / 1000 * attempt / 2)
        raise AssertionError  # the loop returns or raises

    async def wait_for(self, block: str, *values: object) -> None:
        """Wait until the transactions that a block names have ended, without a lock; raises BusyError."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + _WAITS * self.lock_timeout_ms / 1000
        waiting = [row[0] for row in await self.connection.fetch(self.sql(block), *values)]
        pause = _POLL
        while waiting and (first := await self.connection.fetchrow(self.sql("transactions_left"), waiting)):
            if loop.time() > deadline:
                raise BusyError(first["words"])
            await asyncio.sleep(pause)
            pause = min(2 * pause, _LONGEST_POLL)

    async def wait_for_users(self, tables: Iterable[PartitionTable]) -> None:
        """Wait until the transactions that have touched the parents of these tables have ended; raises BusyError."""
        await self.wait_for("transactions_on", [f"{self.sql.schema}.{table.parent}" for table in tables])


@asynccontextmanager
async def turn(settings: Settings, purpose: str) -> AsyncIterator[Changes]:
    """The only session that changes partitions, until it is closed at the end of the block.

    Raises UnavailableError when another process has the turn for longer than ``patience_ms``.
    """
    dedicated = Dedicated(direct(settings.database), f"partita/{purpose}", planner=False)
    try:
        with boundary():
            connection = await dedicated.connection()
            await _take(connection, settings)
            sql = Sql(settings.database.schema)
            await connection.fetch(sql("outwait_autovacuum"), settings.retention.lock_timeout_ms)
            yield Changes(connection, sql, settings)
    finally:
        await dedicated.close()


async def _take(connection: Connection, settings: Settings) -> None:
    key = advisory_key(settings.database.schema, LOCK_PURPOSE)
    backoff = Backoff(settings.database)
    while not await connection.fetchval("SELECT pg_try_advisory_lock($1)", key):
        if not await backoff.pause():
            raise UnavailableError("partitions: another process is changing them", hint="the same again later")
