"""Month partitions of the records: made ahead, and what they look like.

Purpose: retention is DROP TABLE (see ``retention``), and a month exists long before its first run. Invariant: every
table of records has a partition for every month from the retention floor to ``months_ahead`` after now, and for every
older month with an unfinished run; an id at or above the floor therefore always finds its partition. Whoever may use
the parent may use a month, whose tables transactions name (see ``months``). Trade-off: a new table is made like its
parent and then attached, which takes several statements, because CREATE … PARTITION OF locks the parent against reads
and writes, and ATTACH does not. (The CHECK that would spare ATTACH a scan is left out: the table is empty, and each
insert would pay for it.)
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from partita.domain.errors import UnavailableError
from partita.domain.ids import Month, month_range
from partita.settings import Settings
from partita.store.advisory import advisory_key
from partita.store.backoff import Backoff
from partita.store.database import Connection, Database, Dedicated
from partita.store.errors import SchemaMissingError, boundary, sqlstate
from partita.store.migrations import direct
from partita.store.sql import Sql

FILLFACTORS: Final = {"workflow_runs": 30, "task_instances": 45}
"""Tables whose rows are updated after their insert: their months leave room on each page, so that updates are HOT.
A run is updated by each of its steps, and while another transaction is open nothing can be removed from its page."""
LOCK_PURPOSE: Final = "partitions"
_NEVER: Final = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class PartitionTable:
    """A month's table of one table of records."""

    parent: str
    name: str
    month: Month
    attached: bool
    pending: bool
    """A concurrent detach was begun and not finished."""
    bytes: int
    rows: int
    """As the server estimates them."""


@dataclass(frozen=True, slots=True)
class MonthStatus:
    """A month over all tables of records."""

    month: Month
    runs: int
    """Finished and unfinished, as the server estimates them, which it does again whenever a tenth has changed."""
    rows: int
    """Of all tables, estimated in the same way."""
    bytes: int
    """On disk, with indexes and free space."""
    unfinished: int
    """Unfinished runs, counted up to 1,000."""
    missing: tuple[str, ...]
    """Tables of records without an attached partition for the month."""


@dataclass(frozen=True, slots=True)
class PartitionStatus:
    """All months in order."""

    months: tuple[MonthStatus, ...]
    ahead: int
    """Whole months after the current one that exist in every table."""
    left: tuple[str, ...]
    """Tables of no month, which a broken-off drop has left; the next one removes them or attaches them again."""
    floor: datetime
    """Runs whose id is older are refused."""
    now: datetime
    """The database's clock."""


async def ensure(settings: Settings, *, now: datetime | None = None) -> tuple[str, ...]:
    """Make the missing partitions and return their names; any number of processes may do so at once.

    ``now``: another time than the database's. Raises UnavailableError when the locks are not to be had in time.
    """
    dedicated = Dedicated(direct(settings.database), "partita/partitions", planner=False)
    backoff = Backoff(settings.database)
    try:
        while True:
            try:
                return await _ensure(dedicated, settings, now)
            except LockedError as error:
                if not await backoff.pause():
                    raise UnavailableError(
                        f"partitions: {error}", hint="find the session that keeps the tables locked"
                    ) from error
    finally:
        await dedicated.close()


class LockedError(Exception):
    """A lock was not to be had within ``lock_timeout_ms``."""


async def _ensure(dedicated: Dedicated, settings: Settings, now: datetime | None) -> tuple[str, ...]:
    sql = Sql(settings.database.schema)
    made = []
    with boundary():
        try:
            async with dedicated.transaction() as connection:
                await take_turn(connection, settings)
                tables = await table_names(connection, sql)
                existing = {table.name: table for table in await partition_tables(connection, sql)}
                for month in await _months(connection, sql, settings, now):
                    for parent in tables:
                        table = existing.get(f"{parent}_{month.suffix}")
                        if table is None or not table.attached:
                            made.append(await _add(connection, sql, parent, month, exists=table is not None))
        except Exception as error:
            if sqlstate(error) == "55P03":
                raise LockedError(str(error)) from error
            raise
    return tuple(made)


async def take_turn(connection: Connection, settings: Settings) -> None:
    """Within a transaction: nobody else changes partitions until it ends, and waits for locks are short.

    The limit is ``lock_timeout_ms``; beyond it the statement fails with SQLSTATE 55P03.
    """
    await connection.execute(f"SET LOCAL lock_timeout = {settings.retention.lock_timeout_ms}")
    key = advisory_key(settings.database.schema, LOCK_PURPOSE)
    await connection.execute("SELECT pg_advisory_xact_lock($1)", key)


async def table_names(connection: Connection, sql: Sql) -> tuple[str, ...]:
    """Tables of records, runs last; raises SchemaMissingError when there are none."""
    rows = await connection.fetch(sql("partitioned_tables"), sql.schema)
    if not rows:
        raise SchemaMissingError(f"database: schema {sql.schema}: has no tables of records", hint="partita migrate")
    return tuple(row["name"] for row in rows)


async def partition_tables(connection: Connection, sql: Sql) -> tuple[PartitionTable, ...]:
    """Every month's table, attached or not; those of workflow_runs last."""
    rows = await connection.fetch(sql("partition_tables"), sql.schema)
    return tuple(PartitionTable(**{**dict(row), "month": Month.parse(row["month"])}) for row in rows)


async def _months(connection: Connection, sql: Sql, settings: Settings, now: datetime | None) -> tuple[Month, ...]:
    """Months that must exist; a new installation's floor is set to the first of them."""
    row = await connection.fetchrow(sql("retention_floor"))
    if row is None:
        raise SchemaMissingError(f"database: schema {sql.schema}: engine_state is empty", hint="partita migrate")
    floor, current = row["retention_floor"], Month.of(now or row["now"])
    if floor <= _NEVER:
        existing = [table.month for table in await partition_tables(connection, sql)]
        floor = min([current.plus(-settings.retention.months_behind), *existing]).start
        await connection.execute(sql("retention_floor_raise"), floor)
    first = Month.of(floor)
    pinned = await connection.fetch(sql("open_runs_below"), first.lower)
    wanted = {*month_range(first, current.plus(settings.retention.months_ahead))}
    return tuple(sorted(wanted | {Month.of(row["run_id"]) for row in pinned}))


async def _add(connection: Connection, sql: Sql, parent: str, month: Month, *, exists: bool) -> str:
    name = f"{parent}_{month.suffix}"
    if not exists:
        await create(connection, sql, parent, name)
    await attach(connection, sql, parent, month)
    return name


async def create(connection: Connection, sql: Sql, parent: str, name: str) -> None:
    """Make a table that may become a partition, for the same roles as its parent."""
    await connection.execute(sql("partition_create", parent=parent, partition=name))
    await connection.execute(sql("partition_rights", parent=parent, partition=name))
    if parent in FILLFACTORS:
        await connection.execute(sql("partition_fillfactor", partition=name, fillfactor=str(FILLFACTORS[parent])))


async def attach(connection: Connection, sql: Sql, parent: str, month: Month) -> None:
    """Attach an existing table as the month's partition."""
    limits = {"lower": str(month.lower), "upper": str(month.upper)}
    text = sql("partition_attach", parent=parent, partition=f"{parent}_{month.suffix}", **limits)
    await connection.execute(text)


async def status(database: Database) -> PartitionStatus:
    """What exists, how large it is and what keeps it."""
    sql = database.sql

    async def load(connection: Connection) -> PartitionStatus:
        row = await connection.fetchrow(sql("retention_floor"))
        if row is None:
            raise SchemaMissingError(f"database: schema {sql.schema}: engine_state is empty", hint="partita migrate")
        names = await table_names(connection, sql)
        found = await partition_tables(connection, sql)
        tables = [table for table in found if table.attached and not table.pending]
        copies = await connection.fetch(sql("compaction_leftovers"), sql.schema)
        left = sorted(
            {table.name for table in found} - {table.name for table in tables} | {row["name"] for row in copies}
        )
        months = []
        for month in sorted({table.month for table in tables}):
            open_runs = await connection.fetch(sql("open_runs_between"), month.lower, month.upper, 1000)
            months.append(_month_status(month, [t for t in tables if t.month == month], names, len(open_runs)))
        ahead = _ahead(months, Month.of(row["now"]))
        return PartitionStatus(tuple(months), ahead, tuple(left), row["retention_floor"], row["now"])

    return await database.read(load)


def _month_status(month: Month, tables: list[PartitionTable], names: tuple[str, ...], unfinished: int) -> MonthStatus:
    missing = tuple(name for name in names if name not in {table.parent for table in tables})
    runs = sum(table.rows for table in tables if table.parent == "workflow_runs")
    rows, size = sum(table.rows for table in tables), sum(table.bytes for table in tables)
    return MonthStatus(month, runs, rows, size, unfinished, missing)


def _ahead(months: list[MonthStatus], current: Month) -> int:
    complete = {status.month for status in months if not status.missing}
    ahead = 0
    while current.plus(ahead + 1) in complete:
        ahead += 1
    return ahead
