"""Dropping old months.

Purpose: retention costs a few catalog changes, whatever the number of runs. Invariant: no month is dropped that is the
current one or later, that has an unfinished run, or whose ids may still be started: the floor is published first, then
starts in flight are waited for, then unfinished runs are looked for, and once more after the detach. Trade-off: this is
driver code in autocommit, since DETACH CONCURRENTLY is refused inside functions and transactions; whatever a broken-off
attempt leaves (a pending or a finished detach) is completed by the next one.

Tables that depend on runs are detached and dropped before them. No lock is waited for longer than ``lock_timeout_ms``.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, TypeVar

from partita.domain.errors import ConflictError, UnavailableError
from partita.domain.ids import Month
from partita.settings import Settings
from partita.store.advisory import advisory_key
from partita.store.database import Connection, Dedicated
from partita.store.errors import boundary, sqlstate
from partita.store.migrations import direct
from partita.store.partitions import LOCK_PURPOSE, PartitionTable, attach, partition_tables
from partita.store.sql import Sql

T = TypeVar("T")
_TRIES: Final = 5
_BUSY: Final = {"55P03", "40P01"}


@dataclass(frozen=True, slots=True)
class DropReport:
    """What a call of ``drop`` did, by month."""

    dropped: tuple[Month, ...]
    kept: dict[Month, str] = field(default_factory=dict)
    """Months that were to go and stay, with the reason."""
    floor: datetime | None = None
    """The retention floor that was published; None when nothing was to go."""


async def drop(settings: Settings, *, before: Month | None = None, now: datetime | None = None) -> DropReport:
    """Drop the months before ``before`` (by default those that retention does not keep).

    ``now``: another time than the database's. Raises ConflictError when ``before`` lies after the current month, or
    when there is no direct connection; UnavailableError when another process is changing partitions.
    """
    if direct(settings.database).pooled:
        raise ConflictError(
            "partitions: a month cannot be dropped through a transaction-pooling proxy; expected a direct connection",
            hint="set PARTITA_MIGRATIONS_URL",
        )
    dedicated = Dedicated(direct(settings.database), "partita/retention", planner=False)
    try:
        with boundary():
            async with _turn(dedicated, settings) as connection:
                return await _Drop(connection, settings).run(before, now)
    finally:
        await dedicated.close()


@asynccontextmanager
async def _turn(dedicated: Dedicated, settings: Settings) -> AsyncIterator[Connection]:
    """The connection, while no other process changes partitions; closing the session gives the turn back."""
    connection = await dedicated.connection()
    await connection.execute(f"SET lock_timeout = {settings.retention.lock_timeout_ms}")
    key = advisory_key(settings.database.schema, LOCK_PURPOSE)
    if not await connection.fetchval("SELECT pg_try_advisory_lock($1)", key):
        raise UnavailableError("partitions: another process is changing them", hint="the same again later")
    yield connection


class _Drop:
    """One call: connection, settings and names in one place."""

    def __init__(self, connection: Connection, settings: Settings) -> None:
        self._connection = connection
        self._sql = Sql(settings.database.schema)
        self._retention = settings.retention

    async def run(self, before: Month | None, now: datetime | None) -> DropReport:
        current = Month.of(now or await self._connection.fetchval("SELECT clock_timestamp()"))
        limit = before or current.plus(-self._retention.months)
        if limit > current:
            raise ConflictError(f"partitions: months before {limit} include the current one, {current}, which stays")
        months = sorted({table.month for table in await self._tables() if table.month < limit})
        if not months:
            return DropReport(())
        await self._connection.execute(self._sql("retention_floor_raise"), limit.start)
        kept = {month: reason for month in months if (reason := await self._drop_month(month))}
        return DropReport(tuple(month for month in months if month not in kept), kept, limit.start)

    async def _drop_month(self, month: Month) -> str:
        """Drop one month; the reason why it stays, or nothing."""
        try:
            await self._patiently(self._wait_for_starts, month)
            if reason := await self._pinned(month):
                await self._attach_again(month)
                return reason
            for table in await self._tables(month):
                await self._patiently(self._detach, table)
            if reason := await self._pinned(month):
                await self._attach_again(month)
                return reason
            for table in await self._tables(month):
                await self._patiently(self._drop_table, table)
        except _BusyError as error:
            return f"its tables are in use ({error}); the next call goes on"
        return ""

    async def _tables(self, month: Month | None = None) -> list[PartitionTable]:
        tables = await partition_tables(self._connection, self._sql)
        return [table for table in tables if month is None or table.month == month]

    async def _wait_for_starts(self, month: Month) -> None:
        for table in await self._tables(month):
            if table.parent == "workflow_runs" and table.attached and not table.pending:
                async with self._connection.transaction():
                    await self._connection.execute(self._sql("partition_lock", partition=table.name))

    async def _pinned(self, month: Month) -> str:
        rows = await self._connection.fetch(self._sql("open_runs_between"), month.lower, month.upper, 1001)
        if not rows:
            return ""
        count = "more than 1,000 unfinished runs" if len(rows) > 1000 else f"{len(rows)} unfinished run(s)"
        return f"it has {count}, such as {rows[0]['run_id']}"

    async def _detach(self, table: PartitionTable) -> None:
        """Detach one table, from whatever state an earlier attempt has left it in."""
        now = next((each for each in await self._tables(table.month) if each.name == table.name), table)
        if now.attached:
            block = "partition_finalize" if now.pending else "partition_detach"
            await self._connection.execute(self._sql(block, parent=table.parent, partition=table.name))

    async def _attach_again(self, month: Month) -> None:
        """Undo what this or an earlier attempt has detached, since a run came up that still needs the month."""
        for table in reversed(await self._tables(month)):
            if table.pending:
                await self._patiently(self._detach, table)
            if table.pending or not table.attached:
                await self._patiently(self._attach, table)

    async def _attach(self, table: PartitionTable) -> None:
        await attach(self._connection, self._sql, table.parent, table.month)

    async def _drop_table(self, table: PartitionTable) -> None:
        await self._connection.execute(self._sql("partition_drop", partition=table.name))

    async def _patiently(self, work: Callable[[T], Awaitable[None]], subject: T) -> None:
        """Try again a few times when a lock is not to be had; raises _BusyError."""
        for attempt in range(1, _TRIES + 1):
            try:
                return await work(subject)
            except Exception as error:
                if sqlstate(error) not in _BUSY:
                    raise
                if attempt == _TRIES:
                    raise _BusyError(str(error)) from error
                await asyncio.sleep(self._retention.lock_timeout_ms / 1000 * attempt / 2)
        return None


class _BusyError(Exception):
    """A lock was not to be had."""
