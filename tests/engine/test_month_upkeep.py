"""What upkeep does for months: it makes those that are missing, and keeps statistics of what is partitioned."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any, TypeAlias

import asyncpg
import pytest

from partita.domain.ids import Month, make_id, to_milliseconds
from partita.engine import Engine, StartRequest
from partita.engine.duties import Duties
from partita.engine.upkeep import Upkeep
from partita.settings import Settings
from partita.store import partitions, statistics
from partita.store.duties import DutyStore, UpkeepStore
from partita.store.errors import PartitionMissingError
from tests.engine.support import CHAIN, NAMESPACE, opened
from tests.store.records import end_run, insert_run

Connection: TypeAlias = "asyncpg.Connection[Any]"
INHERITED = "SELECT DISTINCT tablename FROM pg_stats WHERE schemaname = 'partita' AND inherited"


async def tick(engine: Engine) -> None:
    """One round of upkeep, as a process makes it after its start."""
    await Duties(engine).upkeep.tick()


async def fill(connection: Connection, month: Month, first: int, number: int) -> None:
    """Ended runs of a month."""
    text = """
    INSERT INTO partita.workflow_runs
        (id, definition_id, start_request_id, created_at, version, total, status, namespace, name, definition,
         context_json)
    SELECT id, id, id, now(), 1, 1, 'Succeeded', 'shop', '', 'order', '{}' FROM unnest($1::uuid[]) AS id"""
    milliseconds = to_milliseconds(month.start)
    await connection.execute(text, [make_id(milliseconds + one, one) for one in range(first, first + number)])
    await connection.execute("SELECT pg_stat_force_next_flush()")  # or they are counted again on top of what is found
    await connection.execute(f"ANALYZE partita.workflow_runs_{month.suffix}")  # as autovacuum does sooner or later


async def analyses(connection: Connection) -> dict[str, int]:
    """How often each partitioned table was analysed."""
    await connection.execute("SELECT pg_stat_force_next_flush()")
    text = """SELECT relname, analyze_count FROM pg_stat_user_tables
              WHERE relid IN (SELECT partrelid FROM pg_partitioned_table)"""
    return {row[0]: row[1] for row in await connection.fetch(text)}


async def test_upkeep_leaves_statistics_of_every_partitioned_table(engine: Engine, other: Connection) -> None:
    month = Month.of(await engine.database.clock())
    names = await engine.database.read(lambda c: partitions.table_names(c, engine.database.sql))
    await fill(other, month, 0, 500)
    assert await other.fetch(INHERITED) == []
    await tick(engine)
    assert [row[0] for row in await other.fetch(INHERITED)] == ["workflow_runs"]  # the others have no row
    assert await other.fetchval("SELECT reltuples FROM pg_class WHERE relname = 'workflow_runs'") == 500
    assert await analyses(other) == dict.fromkeys(names, 1)


async def test_statistics_are_refreshed_when_the_table_has_changed_and_not_before(
    settings: Settings, other: Connection
) -> None:
    month = Month.of(await other.fetchval("SELECT now()"))
    await fill(other, month, 0, 20_000)
    assert "workflow_runs" in await statistics.refresh(settings)
    await fill(other, month.plus(-1), 0, 1_500)
    assert await statistics.refresh(settings) == ()
    await fill(other, month.plus(1), 0, 1_500)
    assert await asyncio.gather(*(statistics.refresh(settings) for _ in range(4))) in (
        [[("workflow_runs",) if one == first else () for one in range(4)] for first in range(4)]
    )
    assert (await analyses(other))["workflow_runs"] == 2


async def test_nothing_waits_for_whoever_holds_a_table(settings: Settings, other: Connection) -> None:
    """The one table is left for the next time; the others have their statistics."""
    month = Month.of(await other.fetchval("SELECT now()"))
    await fill(other, month, 0, 10)
    await other.execute("BEGIN; LOCK TABLE ONLY partita.run_history IN SHARE UPDATE EXCLUSIVE MODE")
    done = await statistics.refresh(settings)
    assert "workflow_runs" in done
    assert "run_history" not in done
    await other.execute("COMMIT")
    assert await statistics.refresh(settings) == ("run_history",)


async def test_a_start_in_a_month_that_is_missing_says_so_and_succeeds_after_upkeep(
    settings: Settings, other: Connection
) -> None:
    """As after a long time without any process: the months ahead have run out."""
    current = Month.of(await other.fetchval("SELECT now()"))
    for row in await other.fetch("SELECT relname FROM pg_class WHERE relkind = 'r' AND relname ~ $1", current.suffix):
        await other.execute(f"DROP TABLE partita.{row[0]}")
    async with opened(settings) as engine:
        await engine.deploy(NAMESPACE, "order", CHAIN)
        request = StartRequest(namespace=NAMESPACE, definition="order")
        with pytest.raises(PartitionMissingError, match=r"no partition .* found.*; try: partita partitions ensure"):
            await engine.start(request)
        assert await other.fetchval("SELECT count(*) FROM partita.open_runs") == 0
        await tick(engine)
        assert (await engine.start(request)).created
        status = await partitions.status(engine.database)
        assert (status.ahead, [month.missing for month in status.months if month.missing]) == (3, [])


async def test_a_missing_month_fails_no_start_of_another(settings: Settings, other: Connection) -> None:
    current = Month.of(await other.fetchval("SELECT now()"))
    await other.execute(f"DROP TABLE partita.task_instances_{current.plus(-1).suffix}")
    early = make_id(to_milliseconds(current.start) - 1, 1)
    async with opened(settings) as engine:
        await engine.deploy(NAMESPACE, "order", CHAIN)
        requests = [StartRequest(namespace=NAMESPACE, definition="order", run_id=run_id) for run_id in (None, early)]
        good, bad = await asyncio.gather(*map(engine.start, requests), return_exceptions=True)
        assert not isinstance(good, BaseException)
        assert good.created
        assert isinstance(bad, PartitionMissingError)
        assert await other.fetchval("SELECT count(*) FROM partita.workflow_runs") == 1


async def test_rows_of_a_month_are_estimated_from_its_own_statistics(engine: Engine, other: Connection) -> None:
    month = Month.of(await engine.database.clock())
    await fill(other, month, 0, 700)
    await insert_run(other, make_id(to_milliseconds(month.plus(1).start), 1))
    found = {one.month: one for one in (await partitions.status(engine.database)).months}
    assert found[month].rows == 700
    assert found[month].bytes > found[month.plus(2)].bytes > 0


async def test_upkeep_fills_in_what_older_processes_left_out_of_lists(settings: Settings, other: Connection) -> None:
    """Also where reads go to another server, which could not write."""
    run_id = make_id(to_milliseconds(Month.of(await other.fetchval("SELECT now()")).start), 1)
    await insert_run(other, run_id, started_by="eve")
    await end_run(other, run_id, "Succeeded")
    await other.execute("UPDATE partita.run_endings SET started_by = NULL")
    elsewhere = replace(settings, database=replace(settings.database, read_url=settings.database.url + "&user=nobody"))
    async with opened(settings) as engine:
        await Upkeep(DutyStore(engine.database), UpkeepStore(engine.database), elsewhere).tick()
    assert await other.fetchval("SELECT started_by FROM partita.run_endings") == "eve"
