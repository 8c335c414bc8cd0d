"""Month partitions: made ahead, dropped late, by many at once, at the ends of months."""

from __future__ import annotations

import asyncio
import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import UUID

import asyncpg
import pytest

from partita.domain.errors import ConflictError, UnavailableError
from partita.domain.ids import Month, make_id, time_of, to_milliseconds
from partita.settings import RetentionSettings, Settings
from partita.store import partitions, retention
from partita.store.changes import Changes
from partita.store.database import Database
from partita.store.errors import PartitionMissingError
from tests.postgres import direct_url
from tests.store.records import insert_run, open_run
from tests.waiting import until

RECORDS = {"workflow_runs", "task_instances", "workflow_events", "run_history", "run_endings", "run_labels"}


def in_month(month: Month, free: int = 1) -> UUID:
    """A run id from the middle of a month."""
    return make_id(to_milliseconds(month.start + timedelta(days=14)), free)


async def outside(settings: Settings, statement: str) -> None:
    """Execute what no transaction may surround."""
    connection = await asyncpg.connect(direct_url(settings))
    await connection.execute(statement)
    await connection.close()


async def months(database: Database) -> list[Month]:
    return [each.month for each in (await partitions.status(database)).months]


async def test_ensure_makes_every_month_of_every_table_of_records(database: Database, settings: Settings) -> None:
    current = Month.of(await database.clock())
    status = await partitions.status(database)
    assert [each.month for each in status.months] == [current.plus(n) for n in range(-1, 4)]
    assert all(each.missing == () for each in status.months)
    assert status.ahead == settings.retention.months_ahead == 3
    assert status.floor == current.plus(-1).start
    names = await database.read(lambda c: partitions.table_names(c, database.sql))
    assert set(names) == RECORDS
    assert names[-1] == "workflow_runs"


async def test_months_of_updated_tables_leave_room_on_the_page(database: Database) -> None:
    rows = await database.read(
        lambda c: c.fetch("SELECT relname, reloptions FROM pg_class WHERE relkind = 'r' AND relname ~ '_[0-9]{6}$'")
    )
    with_room = {row["relname"][:-7]: row["reloptions"] for row in rows if row["reloptions"]}
    assert with_room == {name: [f"fillfactor={share}"] for name, share in partitions.FILLFACTORS.items()}
    assert len(rows) == 5 * len(RECORDS)


async def test_ten_at_once_make_each_partition_once(database: Database, settings: Settings) -> None:
    later = (await database.clock()) + timedelta(days=200)
    made = await asyncio.gather(*(partitions.ensure(settings, now=later) for _ in range(10)))
    names = [name for each in made for name in each]
    assert len(names) == len(set(names)) > 0
    assert all(each.missing == () for each in (await partitions.status(database)).months)


async def test_ensure_fills_a_hole_that_an_absence_left(database: Database, settings: Settings) -> None:
    current = Month.of(await database.clock())
    await partitions.ensure(settings, now=current.plus(9).start)
    assert await months(database) == [current.plus(n) for n in range(-1, 13)]


async def test_a_table_added_later_gets_all_months(database: Database, settings: Settings) -> None:
    await database.read(lambda c: c.execute("CREATE TABLE partita.notes (run_id uuid) PARTITION BY RANGE (run_id)"))
    made = await partitions.ensure(settings)
    assert [name[:-7] for name in made] == ["notes"] * 5


@pytest.mark.parametrize(
    ("now", "ahead"),
    [
        (datetime(2031, 1, 31, 23, 59, 59, 999_000, tzinfo=UTC), Month(2031, 2)),
        (datetime(2031, 2, 1, tzinfo=UTC), Month(2031, 3)),
        (datetime(2031, 12, 31, 23, 30, tzinfo=UTC), Month(2032, 1)),
        (datetime.fromisoformat("2032-01-01T01:30:00+02:00"), Month(2032, 1)),
    ],
)
async def test_months_end_in_utc(database: Database, settings: Settings, now: datetime, ahead: Month) -> None:
    one_ahead = replace(settings, retention=RetentionSettings(months_ahead=1))
    await partitions.ensure(one_ahead, now=now)
    assert (await months(database))[-1] == ahead


async def test_an_id_lands_in_its_month_to_the_millisecond(database: Database) -> None:
    current = Month.of(await database.clock())
    last = make_id(to_milliseconds(current.plus(1).start) - 1, (1 << 74) - 1)
    first = make_id(to_milliseconds(current.plus(1).start), 0)
    await insert_run(database, last)
    await insert_run(database, first)
    rows = await database.read(lambda c: c.fetch("SELECT id, tableoid::regclass::text AS t FROM partita.workflow_runs"))
    assert {row["id"]: row["t"] for row in rows} == {
        last: f"partita.workflow_runs_{current.suffix}",
        first: f"partita.workflow_runs_{current.plus(1).suffix}",
    }


async def test_a_run_outside_the_partitions_is_refused(database: Database) -> None:
    current = Month.of(await database.clock())
    for month in (current.plus(-2), current.plus(4)):
        with pytest.raises(PartitionMissingError, match="partita partitions ensure"):
            await insert_run(database, in_month(month))


async def test_drop_keeps_the_current_month_and_what_retention_keeps(database: Database, settings: Settings) -> None:
    current = Month.of(await database.clock())
    with pytest.raises(ConflictError, match="current"):
        await retention.drop(settings, before=current.plus(1))
    assert await retention.drop(settings) == retention.DropReport(())
    report = await retention.drop(settings, now=current.plus(12).start)
    assert report.dropped == (current.plus(-1),)
    assert (await months(database))[0] == current
    assert (await retention.drop(settings, before=current)).dropped == ()


async def test_drop_publishes_the_floor_and_forgets_the_month_for_ever(database: Database, settings: Settings) -> None:
    current = Month.of(await database.clock())
    await insert_run(database, in_month(current.plus(-1)))
    report = await retention.drop(settings, before=current)
    assert (report.dropped, report.kept, report.floor) == ((current.plus(-1),), {}, current.start)
    assert (await partitions.status(database)).floor == current.start
    assert await partitions.ensure(settings) == ()
    left = await database.read(lambda c: c.fetchval("SELECT count(*) FROM partita.workflow_runs"))
    assert left == 0


async def test_a_month_with_an_unfinished_run_stays_and_says_why(database: Database, settings: Settings) -> None:
    current = Month.of(await database.clock())
    run_id = in_month(current.plus(-1))
    await insert_run(database, run_id)
    await open_run(database, run_id)
    report = await retention.drop(settings, before=current)
    assert report.dropped == ()
    assert str(run_id) in report.kept[current.plus(-1)]
    assert (await partitions.status(database)).months[0].unfinished == 1
    await database.read(lambda c: c.execute("DELETE FROM partita.open_runs"))
    assert (await retention.drop(settings, before=current)).dropped == (current.plus(-1),)


async def test_a_pinned_month_gets_tables_that_a_migration_adds(database: Database, settings: Settings) -> None:
    current = Month.of(await database.clock())
    await insert_run(database, in_month(current.plus(-1)))
    await open_run(database, in_month(current.plus(-1)))
    await retention.drop(settings, before=current)
    await database.read(lambda c: c.execute("CREATE TABLE partita.notes (run_id uuid) PARTITION BY RANGE (run_id)"))
    assert f"notes_{current.plus(-1).suffix}" in await partitions.ensure(settings)


async def test_a_start_in_flight_keeps_its_month(database: Database, settings: Settings) -> None:
    """The start read the floor before it was published and commits while the drop is under way."""
    current = Month.of(await database.clock())
    run_id = in_month(current.plus(-1))
    starter = database.dedicated("starter")
    async with starter.transaction() as connection:
        await insert_run(connection, run_id)
        await open_run(connection, run_id)
        dropping = asyncio.create_task(retention.drop(settings, before=current))
        await until(lambda: _floor_is(database, current), what="the floor is published")
    report = await dropping
    await starter.close()
    assert report.dropped == ()
    assert str(run_id) in report.kept[current.plus(-1)]
    assert await database.read(lambda c: c.fetchval("SELECT id FROM partita.workflow_runs")) == run_id


async def _floor_is(database: Database, month: Month) -> bool:
    return (await partitions.status(database)).floor == month.start


async def test_a_reader_that_does_not_end_delays_the_drop_and_nothing_else(
    database: Database, settings: Settings
) -> None:
    """It is waited for before anything is changed; new work goes on, and a later call drops the month."""
    current = Month.of(await database.clock())
    impatient = replace(settings, retention=RetentionSettings(lock_timeout_ms=20))
    reader = database.dedicated("reader")
    async with reader.transaction() as connection:
        await connection.fetch("SELECT count(*) FROM partita.task_instances")
        pid = await connection.fetchval("SELECT pg_backend_pid()")
        report = await retention.drop(impatient, before=current)
        assert report.dropped == ()
        assert re.search(rf"in use .*pid {pid}, .*since .* UTC.*the next call", report.kept[current.plus(-1)])
        status = await partitions.status(database)
        assert (status.months[0].month, status.months[0].missing) == (current.plus(-1), ())
        await asyncio.wait_for(insert_run(database, in_month(current)), 5)
    await reader.close()
    assert (await retention.drop(settings, before=current)).dropped == (current.plus(-1),)
    assert (await months(database))[0] == current


async def test_a_detach_that_a_reader_keeps_pending_is_finished_by_the_next_call(
    database: Database, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such a reader came between the wait and the detach. Later months wait, since a table detaches one at a time."""
    current = Month.of(await database.clock())
    later = current.plus(2)
    impatient = replace(settings, retention=RetentionSettings(lock_timeout_ms=20))
    reader = database.dedicated("reader")
    async with reader.transaction() as connection:
        await connection.fetch("SELECT count(*) FROM partita.workflow_runs")
        with monkeypatch.context() as patch:
            patch.setattr(Changes, "wait_for_users", _no_wait)
            report = await retention.drop(impatient, before=later, now=later.start)
        pending = "SELECT inhrelid::regclass::text FROM pg_inherits WHERE inhdetachpending"
        assert await database.read(lambda c: c.fetchval(pending)) == f"partita.workflow_runs_{current.plus(-1).suffix}"
        assert {month for month, why in report.kept.items() if "in use" in why} == set(report.kept)
        assert set(report.kept) == {current.plus(-1), current, current.plus(1)}
        assert "still being detached" in report.kept[current]
        assert await partitions.ensure(settings) == ()
        await asyncio.wait_for(insert_run(database, in_month(later)), 5)
    await reader.close()
    report = await retention.drop(settings, before=later, now=later.start)
    assert report.dropped == (current.plus(-1), current, current.plus(1))


async def _no_wait(*_: object) -> None:
    """Instead of a wait."""


async def test_drop_finishes_what_a_broken_off_drop_left(database: Database, settings: Settings) -> None:
    month = Month.of(await database.clock()).plus(-1)
    await outside(
        settings, f"ALTER TABLE partita.run_history DETACH PARTITION partita.run_history_{month.suffix} CONCURRENTLY"
    )
    await database.read(lambda c: c.execute(f"DROP TABLE partita.run_endings_{month.suffix}"))
    assert (await retention.drop(settings, before=month.plus(1))).dropped == (month,)
    left = await database.read(lambda c: c.fetch("SELECT relname FROM pg_class WHERE relname ~ $1", month.suffix))
    assert left == []


async def test_a_half_dropped_month_is_put_together_again_for_a_late_run(
    database: Database, settings: Settings
) -> None:
    month = Month.of(await database.clock()).plus(-1)
    for table, how in (("run_history", "CONCURRENTLY"), ("task_instances", "")):
        detach = f"ALTER TABLE partita.{table} DETACH PARTITION partita.{table}_{month.suffix} {how}"
        await outside(settings, detach)
    await open_run(database, in_month(month))
    assert str(in_month(month)) in (await retention.drop(settings, before=month.plus(1))).kept[month]
    assert (await partitions.status(database)).months[0].missing == ()
    await insert_run(database, in_month(month))


async def test_only_one_process_changes_partitions(database: Database, settings: Settings) -> None:
    holder = database.dedicated("holder")
    async with holder.transaction() as connection:
        await partitions.take_turn(connection, settings)
        quick = replace(settings, database=replace(settings.database, patience_ms=0))
        with pytest.raises(UnavailableError, match="another process"):
            await retention.drop(quick, before=Month.of(await database.clock()))
        with pytest.raises(UnavailableError, match="lock"):
            await partitions.ensure(quick)
    await holder.close()


def test_months_are_ranges_of_ids() -> None:
    month = Month(2026, 11)
    assert month.lower < make_id(to_milliseconds(month.start), 0) < month.upper
    assert time_of(month.upper) == datetime(2026, 12, 1, tzinfo=UTC)
    assert (month.plus(2), month.plus(-11)) == (Month(2027, 1), Month(2025, 12))
