"""Dropping old months.

Purpose: retention costs a few catalog changes, whatever the number of runs. Invariant: no month is dropped that is the
current one or later, that has an unfinished run, or whose ids may still be started: the floor is published first, then
the transactions that may have read the old one are waited for, then unfinished runs are looked for, and once more after
the detach. Trade-off: this is driver code in autocommit, since DETACH CONCURRENTLY is refused inside functions and
transactions; whatever a broken-off attempt leaves (a pending or a finished detach, the tables of a compaction) is
completed or cleaned by the next one.

Tables that depend on runs are detached and dropped before them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

from partita.domain.errors import ConflictError
from partita.domain.ids import Month
from partita.settings import Settings
from partita.store import compaction
from partita.store.changes import BusyError, Changes, turn
from partita.store.migrations import direct
from partita.store.partitions import PartitionTable, attach


@dataclass(frozen=True, slots=True)
class DropReport:
    """What a call of ``drop`` did, by month."""

    dropped: tuple[Month, ...]
    kept: dict[Month, str] = field(default_factory=dict)
    """Months that were to go and stay, with the reason."""
    floor: datetime | None = None
    """The retention floor that was published; None when nothing was to go."""
    compacted: dict[Month, int] = field(default_factory=dict)
    """Months that stay with their unfinished runs only, and how many these are."""


async def drop(
    settings: Settings, *, before: Month | None = None, now: datetime | None = None, compact: bool = False
) -> DropReport:
    """Drop the months before ``before`` (by default those that retention does not keep).

    ``compact``: of a month that at most 1,000 unfinished runs keep, drop everything but these.
    ``now``: another time than the database's. Raises ConflictError when ``before`` lies after the current month, or
    when there is no direct connection; UnavailableError when another process is changing partitions.
    """
    if direct(settings.database).pooled:
        raise ConflictError(
            "partitions: a month cannot be dropped through a transaction-pooling proxy; expected a direct connection",
            hint="set PARTITA_MIGRATIONS_URL",
        )
    async with turn(settings, "retention") as changes:
        return await _Drop(changes, compact=compact).run(before, now)


class _Drop:
    """One call."""

    def __init__(self, changes: Changes, *, compact: bool) -> None:
        self._changes = changes
        self._compact = compact
        self._dropped: list[Month] = []
        self._kept: dict[Month, str] = {}
        self._compacted: dict[Month, int] = {}

    async def run(self, before: Month | None, now: datetime | None) -> DropReport:
        changes = self._changes
        current = Month.of(now or await changes.connection.fetchval("SELECT clock_timestamp()"))
        limit = before or current.plus(-changes.settings.retention.months)
        if limit > current:
            raise ConflictError(f"partitions: months before {limit} include the current one, {current}, which stays")
        cluttered = await compaction.clean(changes)
        months: dict[Month, list[PartitionTable]] = {}
        for table in await changes.tables():
            if table.month < limit:
                months.setdefault(table.month, []).append(table)
        if not months:
            return DropReport(())
        await changes.connection.execute(changes.sql("retention_floor_raise"), limit.start)
        for month, tables in sorted(months.items()):
            if month in cluttered:
                self._kept[month] = _in_use(cluttered[month])
            else:
                await self._month(month, tables)
        return DropReport(tuple(self._dropped), self._kept, limit.start, self._compacted)

    async def _month(self, month: Month, tables: Sequence[PartitionTable]) -> None:
        """Drop or compact one month, or say why it stays."""
        names = [table.name for table in tables]
        try:
            await self._nothing_else_pending(names)
            if runs := await self._unfinished(month) or await self._detached(month, tables):
                return await self._keep(month, runs)
            await self._changes.patiently(self._changes.drop, names)
            self._dropped.append(month)
        except BusyError as error:
            self._kept[month] = _in_use(str(error))

    async def _nothing_else_pending(self, names: Sequence[str]) -> None:
        sql = self._changes.sql
        for row in await self._changes.connection.fetch(sql("partitions_pending"), sql.schema):
            if row["name"] not in names:
                raise BusyError(f"{row['name']} is still being detached")

    async def _detached(self, month: Month, tables: Sequence[PartitionTable]) -> list[object]:
        """Detach the month's tables, unless unfinished runs come up; these."""
        await self._changes.wait_for_users(tables)
        if runs := await self._unfinished(month):
            return runs
        for table in tables:
            await self._changes.patiently(self._detach, table)
        return await self._unfinished(month)

    async def _unfinished(self, month: Month) -> list[object]:
        return await self._changes.unfinished(month, compaction.MOST + 1)

    async def _keep(self, month: Month, runs: list[object]) -> None:
        """The month is needed: as a whole, or without the runs that have ended."""
        await self._attach_again(month)
        many = len(runs) > compaction.MOST
        count = f"more than {compaction.MOST:,} unfinished runs" if many else f"{len(runs):,} unfinished run(s)"
        self._kept[month] = f"it has {count}, such as {runs[0]}"
        if many:
            most = f"--compact keeps at most {compaction.MOST:,}"
            self._kept[month] += f"; {most}: let runs of that month end, or end them; try: partita cancel {runs[0]}"
        elif not self._compact:
            self._kept[month] += "; try: partita partitions drop --compact, which keeps only such runs"
        elif (kept := await compaction.compact(self._changes, month)) is None:
            self._kept[month] += ", and no other"
        else:
            del self._kept[month]
            self._compacted[month] = kept

    async def _detach(self, table: PartitionTable) -> None:
        """Detach one table, from whatever state an earlier attempt has left it in."""
        name = f"{self._changes.sql.schema}.{table.name}"
        now = await self._changes.connection.fetchrow(self._changes.sql("partition_state"), name)
        if now is not None:
            block = "partition_finalize" if now["inhdetachpending"] else "partition_detach"
            text = self._changes.sql(block, parent=table.parent, partition=table.name)
            await self._changes.connection.execute(text)

    async def _attach_again(self, month: Month) -> None:
        """Undo what this or an earlier attempt has detached, since a run still needs the month."""
        for table in reversed(await self._changes.tables(month)):
            if table.pending:
                await self._changes.patiently(self._detach, table)
            if table.pending or not table.attached:
                await self._changes.patiently(attach, self._changes.connection, self._changes.sql, table.parent, month)


def _in_use(words: str) -> str:
    return f"its tables are in use ({words}); the next call goes on"
