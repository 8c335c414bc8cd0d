"""Compacting a month: its unfinished runs stay, everything else of it goes.

Purpose: one run that waits for a year does not keep a month of a million. Invariant: at no moment is a row of an
unfinished run out of anybody's sight, because the month is never without partitions: the rows are copied into new
tables while everybody works, and one transaction, bounded as a whole by ``lock_timeout_ms``, replaces the tables under
locks that no transaction on runs can overlap. So the engine needs to know nothing of it: it finds the run before, or
waits for that moment and finds it after.

Runs are copied with their rows locked, a few at a time. What tables without an index by run hold of them, which is what
the end of a run writes, is copied after that in one go, since it may take a scan of the month.

Which runs were changed after they were copied is seen in their rows: the copying transaction locks them, which leaves
its id (xmax) there, and every transaction of the engine begins by locking its runs. Those few are copied once more
under the locks, unless one of them has ended: then they are copied without locks first. Transactions that began before
the copies were committed are waited for, without a lock, before the tables are replaced: a snapshot of before would
find the new tables empty. Trade-off: a snapshot that was taken in between, and used on these tables only after, sees
such a run as it was when it was copied.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final
from uuid import UUID

from partita.domain.ids import Month
from partita.store.changes import BusyError, Changes
from partita.store.database import PLANNER
from partita.store.partitions import PartitionTable, create

MOST: Final = 1_000
"""Unfinished runs of a month that is compacted."""
_CHUNK: Final = 100
"""Runs that are locked at the same time while they are copied."""
_MOST_CHANGED: Final = 100
"""Runs that are copied while everybody waits."""
_ROUNDS: Final = 5
"""How often runs that change while the others are copied are copied again before that."""


async def clean(changes: Changes) -> dict[Month, str]:
    """Drop what broken-off compactions have left; months whose leftovers are in use, with the words for it."""
    busy: dict[Month, str] = {}
    left: dict[Month, list[str]] = {}
    for name, month in await changes.connection.fetch(changes.sql("compaction_leftovers"), changes.sql.schema):
        left.setdefault(Month.parse(month), []).append(name)
    for month, names in left.items():
        try:
            await changes.patiently(changes.drop, names)
        except BusyError as error:
            busy[month] = str(error)
    return busy


async def compact(changes: Changes, month: Month) -> int | None:
    """Leave only the unfinished runs of a month; their number, or None when it has no other runs.

    The caller has published a retention floor above the month. Raises BusyError when somebody does not make way.
    """
    bounds, schema = (month.lower, month.upper), changes.sql.schema
    if not await changes.connection.fetchval(changes.sql("compaction_gain"), *bounds):
        return None
    tables = [table for table in await changes.tables(month) if table.attached]
    await changes.wait_for_users(tables)  # starts from before the floor
    runs = await changes.connection.fetch(changes.sql("open_runs_between"), *bounds, MOST + 1)
    keyed = frozenset(row["name"] for row in await changes.connection.fetch(changes.sql("compaction_keyed"), schema))
    copies = _Copies(changes, month, tables, keyed)
    await copies.make()
    await copies.fill([row["run_id"] for row in runs])
    await copies.replace_originals()
    await clean(changes)
    return len(copies.marks)


@dataclass(slots=True)
class _Copies:
    """The new tables of one month."""

    changes: Changes
    month: Month
    tables: Sequence[PartitionTable]
    """The month's present tables."""
    keyed: frozenset[str]
    """Parents that have an index by run."""
    marks: dict[UUID, str] = field(default_factory=dict)
    """Id of the transaction that copied each run."""

    async def make(self) -> None:
        """Make the tables, empty."""
        await self.changes.patiently(self._make)

    async def _make(self) -> None:
        sql, connection = self.changes.sql, self.changes.connection
        limits = {"lower": str(self.month.lower), "upper": str(self.month.upper)}
        async with connection.transaction():
            for table in self.tables:
                name = f"{table.name}_new"
                await create(connection, sql, table.parent, name)
                await connection.execute(sql("compaction_bound", partition=name, key=_key(table), **limits))

    async def fill(self, runs: Sequence[UUID]) -> None:
        """Copy runs into the tables, anew where they were copied before."""
        for first in range(0, len(runs), _CHUNK):
            await self.changes.patiently(self._copy_locked, runs[first : first + _CHUNK])
        for table in self.tables:
            if table.parent not in self.keyed:
                await self.changes.patiently(self._copy_rest, table, runs)

    async def _copy_locked(self, runs: Sequence[UUID]) -> None:
        connection, sql = self.changes.connection, self.changes.sql
        async with connection.transaction():
            await self._plan_by_index()
            await connection.execute(f"SET LOCAL lock_timeout = {self.changes.lock_timeout_ms}")
            marks = await connection.fetch(sql("compaction_lock"), runs, min(runs), max(runs))
            for table in self.tables:
                if table.parent in self.keyed:
                    await self._copy(table, runs)
        self.marks |= dict.fromkeys(runs, marks[0][0] if marks else "")

    async def _copy_rest(self, table: PartitionTable, runs: Sequence[UUID]) -> None:
        async with self.changes.connection.transaction():
            await self._copy(table, runs)

    async def _copy(self, table: PartitionTable, runs: Sequence[UUID]) -> None:
        sql, names = self.changes.sql, {"partition": f"{table.name}_new", "key": _key(table)}
        await self.changes.connection.execute(sql("compaction_forget", **names), runs)
        text = sql("compaction_copy", parent=table.parent, **names)
        await self.changes.connection.execute(text, runs, self.month.lower, self.month.upper)

    async def replace_originals(self) -> None:
        """Attach the new tables instead of the present ones, as soon as few enough runs are being changed."""
        await self.changes.wait_for("transactions_of_users")
        await self.changes.patiently(self._replace)

    async def _replace(self) -> None:
        for _ in range(_ROUNDS):
            changed, ended = await self._changed()
            if not ended and len(changed) <= _MOST_CHANGED // 2:
                break
            await self.fill(changed)
        await self._swap()

    async def _changed(self) -> tuple[list[UUID], bool]:
        """Runs that were changed since they were copied, and whether one of them has ended."""
        text = self.changes.sql("compaction_changed")
        values = (list(self.marks), list(self.marks.values()), self.month.lower, self.month.upper)
        rows = await self.changes.connection.fetch(text, *values)
        return [row["id"] for row in rows], any(row["ended"] for row in rows)

    async def _swap(self) -> None:
        parents = [table.parent for table in self.tables if table.parent != "workflow_runs"]
        text = self.changes.sql(
            "compaction_swap",
            copied=_array(map(str, self.marks)),
            marks=_array(self.marks.values()),
            lower=str(self.month.lower),
            upper=str(self.month.upper),
            tables=_array(["workflow_runs", *parents]),
            keyed=_array(self.keyed),
            suffix=self.month.suffix,
            most=str(_MOST_CHANGED),
        )
        async with self.changes.connection.transaction():
            await self._plan_by_index()
            for table in self.tables:
                await self.changes.connection.execute(self.changes.sql("compaction_still", partition=table.name))
            await self.changes.connection.execute(f"SET LOCAL statement_timeout = {self.changes.lock_timeout_ms}")
            await self.changes.connection.execute(text)

    async def _plan_by_index(self) -> None:
        """A handful of a month's runs is read by index, whatever the statistics say."""
        settings = "; ".join(f"SET LOCAL {name} = '{value}'" for name, value in PLANNER)
        await self.changes.connection.execute(settings)


def _key(table: PartitionTable) -> str:
    """The column that names the run."""
    return "id" if table.parent == "workflow_runs" else "run_id"


def _array(values: Iterable[str]) -> str:
    """An array's literal, of values without quotes or commas."""
    return f"{{{','.join(values)}}}"
