"""Compacting a month: the unfinished runs stay as they are, the others go, and whatever was broken off is completed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest

from partita.domain.ids import Month, make_id, to_milliseconds
from partita.settings import RetentionSettings, Settings
from partita.store import compaction, partitions, retention
from partita.store.changes import Changes
from partita.store.database import Connection, Database, Dedicated
from tests.store.records import end_run, insert, insert_run, open_run

SHOWN = ("workflow_runs", "task_instances", "workflow_events", "run_history", "run_endings", "run_labels")
"""Tables of which ``record`` writes a row."""
MONTH_TABLES = r"SELECT relname FROM pg_class WHERE relkind = 'r' AND relname ~ '_[0-9]{6}_(new|old)$'"


@pytest.fixture
async def month(database: Database) -> Month:
    """The month before this one, which is to go."""
    return Month.of(await database.clock()).plus(-1)


@pytest.fixture
async def other(database: Database) -> AsyncIterator[Dedicated]:
    """Somebody else."""
    dedicated = database.dedicated("other", planner=False)
    yield dedicated
    await dedicated.close()


def run_of(month: Month, number: int) -> UUID:
    """A run id of a month."""
    return make_id(to_milliseconds(month.start + timedelta(days=14)) + number, number)


async def record(target: Database | Connection, run_id: UUID, *, unfinished: bool) -> None:
    """A run with a row in every table of records."""
    await insert_run(target, run_id, status="Running" if unfinished else "Succeeded")
    await insert(target, "task_instances", run_id=run_id, node="a", kind="task", state="Queued", output='{"big": 1}')
    at = {"run_id": run_id, "seq": 1}
    time = month_time(run_id)
    await insert(target, "workflow_events", **at, created_at=time, id="s", name="paid", payload="1")
    await insert(target, "run_history", **at, at=time, event="NodeQueued", node="a")
    await end_run(target, run_id, "Failed")  # of an earlier generation, if it goes on
    await insert(target, "run_labels", run_id=run_id, label=1, status="Failed")
    if unfinished:
        await open_run(target, run_id)


def month_time(run_id: UUID) -> Any:
    """The start of the month of a run."""
    return Month.of(run_id).start


async def rows(database: Database) -> dict[str, list[tuple[Any, ...]]]:
    """Everything in the tables of records, in the order of the runs."""
    names = await database.read(lambda c: partitions.table_names(c, database.sql))
    return {name: sorted(tuple(row) for row in await database.read(_all(name))) for name in names}


def _all(name: str) -> Any:
    key = "id" if name == "workflow_runs" else "run_id"
    return lambda c: c.fetch(f"SELECT {key}, t::text FROM partita.{name} AS t")  # noqa: S608  # catalog names


async def left(database: Database) -> list[str]:
    """Tables of compactions that are still there."""
    return [row[0] for row in await database.read(lambda c: c.fetch(MONTH_TABLES))]


async def test_only_the_unfinished_runs_of_a_month_stay_and_nothing_of_them_changes(
    database: Database, settings: Settings, month: Month
) -> None:
    for number in range(8):
        await record(database, run_of(month, number), unfinished=number % 4 == 0)
    await record(database, run_of(month.plus(1), 1), unfinished=False)
    stay = {run_of(month, 0), run_of(month, 4), run_of(month.plus(1), 1)}
    before = await rows(database)
    report = await retention.drop(settings, before=month.plus(1), compact=True)
    assert (report.dropped, report.kept, report.compacted) == ((), {}, {month: 2})
    after = await rows(database)
    assert after == {name: [row for row in before[name] if row[0] in stay] for name in before}
    assert {name: len(after[name]) for name in SHOWN} == dict.fromkeys(SHOWN, 3)
    assert await left(database) == []
    status = await partitions.status(database)
    assert status.months[0].missing == ()
    assert status.months[0].unfinished == 2
    await record(database, run_of(month, 9), unfinished=False)  # the tables have their constraints, and take rows
    with pytest.raises(Exception, match="duplicate key"):
        await insert_run(database, run_of(month, 0))


async def test_a_compacted_month_is_like_any_other(database: Database, settings: Settings, month: Month) -> None:
    """It has the same indexes, room and bounds; it is compacted again, and dropped, like one that never was."""
    for number in range(3):
        await record(database, run_of(month, number), unfinished=number > 0)
    before = await _shape(database, month)
    assert (await retention.drop(settings, before=month.plus(1), compact=True)).compacted == {month: 2}
    assert await _shape(database, month) == before
    again = await retention.drop(settings, before=month.plus(1), compact=True)
    assert (again.dropped, again.compacted) == ((), {})
    assert again.kept[month].endswith(f"{run_of(month, 1)}, and no other")
    await _finish(database, run_of(month, 1))
    assert (await retention.drop(settings, before=month.plus(1), compact=True)).compacted == {month: 1}
    await _finish(database, run_of(month, 2))
    assert (await retention.drop(settings, before=month.plus(1))).dropped == (month,)


async def _shape(database: Database, month: Month) -> list[tuple[Any, ...]]:
    text = """
    SELECT c.relname::text, c.reloptions, pg_get_expr(c.relpartbound, c.oid),
           (SELECT array_agg(pg_get_indexdef(indexrelid, 0, false) ORDER BY 1) IS NOT NULL FROM pg_index
            WHERE indrelid = c.oid),
           (SELECT array_agg(regexp_replace(pg_get_indexdef(indexrelid), 'INDEX \\S+ ON', 'INDEX ON') ORDER BY
                             regexp_replace(pg_get_indexdef(indexrelid), 'INDEX \\S+ ON', 'INDEX ON'))
            FROM pg_index JOIN pg_inherits ON inhrelid = indexrelid WHERE indrelid = c.oid),
           (SELECT array_agg(pg_get_constraintdef(oid) ORDER BY pg_get_constraintdef(oid)) FROM pg_constraint
            WHERE conrelid = c.oid)
    FROM pg_class c WHERE c.relkind = 'r' AND c.relname ~ $1 ORDER BY 1"""
    return [tuple(row) for row in await database.read(lambda c: c.fetch(text, f"_{month.suffix}$"))]


async def _finish(database: Database, run_id: UUID) -> None:
    await database.read(lambda c: c.execute("DELETE FROM partita.open_runs WHERE run_id = $1", run_id))


async def test_more_than_a_thousand_unfinished_runs_keep_the_month(
    database: Database, settings: Settings, month: Month
) -> None:
    ids = [run_of(month, number) for number in range(1_001)]
    text = """
    WITH run AS (INSERT INTO partita.workflow_runs
        (id, definition_id, start_request_id, created_at, version, total, status, namespace, name, definition,
         context_json)
        SELECT id, id, id, now(), 1, 1, 'Running', 'shop', '', 'order', '{}' FROM unnest($1::uuid[]) AS id RETURNING id)
    INSERT INTO partita.open_runs (run_id, namespace, definition, name) SELECT id, 'shop', 'order', '' FROM run"""
    await database.read(lambda c: c.execute(text, ids))
    await insert_run(database, run_of(month, 2_000))
    report = await retention.drop(settings, before=month.plus(1), compact=True)
    assert (report.dropped, report.compacted) == ((), {})
    assert "more than 1,000 unfinished runs" in report.kept[month]
    assert f"partita cancel {ids[0]}" in report.kept[month]
    await _finish(database, ids[0])
    assert (await retention.drop(settings, before=month.plus(1), compact=True)).compacted == {month: 1_000}
    left = await database.read(lambda c: c.fetch("SELECT id FROM partita.workflow_runs ORDER BY id"))
    assert [row[0] for row in left] == ids[1:]


async def test_without_the_option_a_month_says_that_it_can_be_compacted(
    database: Database, settings: Settings, month: Month
) -> None:
    await record(database, run_of(month, 0), unfinished=True)
    report = await retention.drop(settings, before=month.plus(1))
    assert "partitions drop --compact" in report.kept[month]


async def test_what_changes_while_it_is_copied_is_copied_again(
    database: Database, settings: Settings, month: Month, other: Dedicated, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run goes on, another ends and a third is locked only, all after they were copied."""
    ids = [run_of(month, number) for number in range(4)]
    for run_id in ids:
        await record(database, run_id, unfinished=run_id != ids[3])
    copied: list[list[UUID]] = []
    fill = compaction._Copies.fill

    async def change_after(copies: compaction._Copies, runs: list[UUID]) -> None:
        await fill(copies, runs)
        copied.append(list(runs))
        if len(copied) == 1:
            await _go_on(other, ids)

    monkeypatch.setattr(compaction._Copies, "fill", change_after)
    monkeypatch.setattr(compaction, "_MOST_CHANGED", 100)
    report = await retention.drop(settings, before=month.plus(1), compact=True)
    assert report.compacted == {month: 3}
    assert copied == [ids[:3], ids[:3]]
    after = await rows(database)
    assert [len(after[name]) for name in SHOWN] == [3, 4, 3, 4, 4, 3]
    state = await database.read(lambda c: c.fetch("SELECT id, revision, status FROM partita.workflow_runs ORDER BY id"))
    assert [tuple(row) for row in state] == [(ids[0], 7, "Running"), (ids[1], 0, "Succeeded"), (ids[2], 0, "Running")]


async def _go_on(other: Dedicated, ids: list[UUID]) -> None:
    """What transactions of the engine do: lock, read, write; the locks first."""
    async with other.transaction() as connection:
        lock = "SELECT FROM partita.workflow_runs WHERE id = ANY ($1) ORDER BY id FOR NO KEY UPDATE"
        await connection.execute(lock, ids[:3])
        await connection.execute("UPDATE partita.workflow_runs SET revision = 7 WHERE id = $1", ids[0])
        await insert(connection, "run_history", run_id=ids[0], seq=2, at=month_time(ids[0]), event="TaskCompleted")
        await connection.execute("UPDATE partita.workflow_runs SET status = 'Succeeded' WHERE id = $1", ids[1])
        await connection.execute("DELETE FROM partita.open_runs WHERE run_id = $1", ids[1])
        await end_run(connection, ids[1], "Succeeded", generation=1)
        # of this run only a task changes, which nothing but the lock shows
        await insert(connection, "task_instances", run_id=ids[2], node="b", kind="task", state="Queued")


async def test_runs_that_change_all_the_time_are_copied_in_rounds_before_anybody_waits(
    database: Database, settings: Settings, month: Month, other: Dedicated, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = [run_of(month, number) for number in range(6)]
    for run_id in ids:
        await record(database, run_id, unfinished=run_id != ids[5])
    monkeypatch.setattr(compaction, "_MOST_CHANGED", 2)
    fill, copied = compaction._Copies.fill, []

    async def change_after(copies: compaction._Copies, runs: list[UUID]) -> None:
        await fill(copies, runs)
        copied.append(len(runs))
        changing = ids[: 5 - 2 * len(copied)]
        if changing:
            async with other.transaction() as connection:
                await connection.execute("UPDATE partita.workflow_runs SET seq = seq + 1 WHERE id = ANY ($1)", changing)

    monkeypatch.setattr(compaction._Copies, "fill", change_after)
    assert (await retention.drop(settings, before=month.plus(1), compact=True)).compacted == {month: 5}
    assert copied == [5, 3]
    seqs = await database.read(lambda c: c.fetch("SELECT seq FROM partita.workflow_runs ORDER BY id"))
    assert [row[0] for row in seqs] == [2, 1, 1, 0, 0]


async def test_a_run_that_came_up_meanwhile_breaks_it_off(
    database: Database, settings: Settings, month: Month, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last look is under the lock. Nothing of the run is lost, and the next call has it among the others."""
    await record(database, run_of(month, 0), unfinished=True)
    await record(database, run_of(month, 1), unfinished=False)
    quick = replace(settings, retention=RetentionSettings(lock_timeout_ms=100))
    replace_originals = compaction._Copies.replace_originals

    async def start_before(copies: compaction._Copies) -> None:
        await record(database, run_of(month, 2), unfinished=True)
        await replace_originals(copies)

    with monkeypatch.context() as patch:
        patch.setattr(compaction._Copies, "replace_originals", start_before)
        report = await retention.drop(quick, before=month.plus(1), compact=True)
    assert "started meanwhile" in report.kept[month]
    assert len((await rows(database))["workflow_runs"]) == 3
    assert (await retention.drop(settings, before=month.plus(1), compact=True)).compacted == {month: 2}
    assert await left(database) == []


@pytest.mark.parametrize("step", ["fill", "replace_originals", "clean"])
async def test_what_was_broken_off_is_completed_by_the_next_call(
    database: Database, settings: Settings, month: Month, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    """A process that dies leaves copies that are not in use yet, or tables that are not in use any more."""
    for number in range(3):
        await record(database, run_of(month, number), unfinished=number == 0)
    begun = 0

    async def die(*_: object) -> dict[Month, str]:
        nonlocal begun
        begun += 1
        if step == "clean" and begun == 1:
            return {}
        raise KeyboardInterrupt

    where = compaction if step == "clean" else compaction._Copies
    with monkeypatch.context() as patch:
        patch.setattr(where, step, die)
        with pytest.raises(KeyboardInterrupt):
            await retention.drop(settings, before=month.plus(1), compact=True)
    assert len(await left(database)) == len(await rows(database))
    report = await retention.drop(settings, before=month.plus(1), compact=step != "clean")
    assert await left(database) == []
    assert report.compacted == ({} if step == "clean" else {month: 1})
    after = await rows(database)
    assert [len(after[name]) for name in SHOWN] == [1] * len(SHOWN)


async def test_old_snapshots_are_waited_for_before_tables_are_replaced(
    database: Database, settings: Settings, month: Month, other: Dedicated
) -> None:
    """A transaction that has not touched the tables yet, but whose snapshot is older than the copies."""
    await record(database, run_of(month, 0), unfinished=True)
    await record(database, run_of(month, 1), unfinished=False)
    quick = replace(settings, retention=RetentionSettings(lock_timeout_ms=20))
    async with other.transaction() as connection:
        await connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        assert await connection.fetchval("SELECT count(*) FROM partita.open_runs") == 1
        report = await retention.drop(quick, before=month.plus(1), compact=True)
        assert "has been open since" in report.kept[month]
        assert await left(database) != []
        assert await connection.fetchval("SELECT count(*) FROM partita.workflow_runs") == 2
    assert (await retention.drop(settings, before=month.plus(1), compact=True)).compacted == {month: 1}


async def test_a_snapshot_from_between_copy_and_replacement_misses_no_row(
    database: Database, settings: Settings, month: Month, other: Dedicated, monkeypatch: pytest.MonkeyPatch
) -> None:
    await record(database, run_of(month, 0), unfinished=True)
    await record(database, run_of(month, 1), unfinished=False)
    swap = compaction._Copies._swap
    found: list[int] = []

    async def swap_amid(copies: compaction._Copies) -> None:
        async with other.transaction() as connection:
            await connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            await connection.fetchval("SELECT 1 FROM partita.open_runs")
            await database.read(
                lambda c: c.execute("UPDATE partita.workflow_runs SET seq = 5 WHERE status = 'Running'")
            )
            await swap(copies)
            found.append(await connection.fetchval("SELECT seq FROM partita.workflow_runs WHERE status = 'Running'"))

    monkeypatch.setattr(compaction._Copies, "_swap", swap_amid)
    assert (await retention.drop(settings, before=month.plus(1), compact=True)).compacted == {month: 1}
    assert found == [0]
    seq = "SELECT seq FROM partita.workflow_runs WHERE status = 'Running'"
    assert await database.read(lambda c: c.fetchval(seq)) == 5


async def test_the_replacement_gives_up_within_its_time_whoever_holds_the_tables(
    database: Database, settings: Settings, month: Month, other: Dedicated, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One who came after the waits: others wait behind the locks for no longer than the limit, and nothing is half
    done."""
    await record(database, run_of(month, 0), unfinished=True)
    await record(database, run_of(month, 1), unfinished=False)
    quick = replace(settings, retention=RetentionSettings(lock_timeout_ms=50))
    before = await rows(database)

    async def no_wait(*_: object) -> None:
        """Instead of a wait."""

    async with other.transaction() as connection:
        with monkeypatch.context() as patch:
            patch.setattr(Changes, "wait_for", no_wait)
            await connection.execute("LOCK TABLE partita.run_endings IN ACCESS SHARE MODE")
            report = await asyncio.wait_for(retention.drop(quick, before=month.plus(1), compact=True), 30)
        assert "in use" in report.kept[month]
    assert await rows(database) == before
    assert (await partitions.status(database)).months[0].missing == ()
    assert (await retention.drop(settings, before=month.plus(1), compact=True)).compacted == {month: 1}


async def test_the_rows_of_a_run_keep_what_it_had(database: Database, settings: Settings, month: Month) -> None:
    """Values of every type, large ones too, which are stored apart."""
    run_id = run_of(month, 0)
    large = '{"text": "' + "".join(str(uuid4()) for _ in range(2_000)) + '"}'
    await record(database, run_id, unfinished=True)
    await record(database, run_of(month, 1), unfinished=False)
    await insert(
        database, "task_instances", run_id=run_id, node="b", kind="task", state="Waiting", output=large,
        route=["x", "y"], retries='{"a": 1}', detail=large, first_failed_at=month_time(run_id), ready_seq=1 << 60,
    )  # fmt: skip  # the columns
    before = [row for row in (await rows(database))["task_instances"] if row[0] == run_id]
    assert (await retention.drop(settings, before=month.plus(1), compact=True)).compacted == {month: 1}
    assert (await rows(database))["task_instances"] == before
