"""The last and the first millisecond of months, with a clock that is put forward over midnight."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta
from typing import Any, TypeAlias
from uuid import UUID

import asyncpg
import pytest

from partita.domain.errors import ExpiredError, TooEarlyError
from partita.domain.ids import Month, make_id, to_milliseconds
from partita.domain.state.effects import TimerKey
from partita.domain.state.rows import TimerKind
from partita.engine import Engine, StartRequest
from partita.engine.duties import Duties
from partita.settings import RetentionSettings, Settings
from partita.store import partitions, retention
from tests.engine import support
from tests.engine.shifted_clock import ShiftedClock
from tests.engine.support import CHAIN, NAMESPACE, OFFER, PAUSE, done, opened
from tests.store.records import insert_run

Connection: TypeAlias = "asyncpg.Connection[Any]"
HOUR = timedelta(hours=1)
ALL = (1 << 74) - 1


@pytest.fixture
async def clock(settings: Settings) -> AsyncIterator[ShiftedClock]:
    """The database's clock, for everyone who connects after it."""
    clock = await ShiftedClock.of(settings)
    yield clock
    await clock.close()


@pytest.fixture
async def month(clock: ShiftedClock, engine: Engine) -> Month:
    """The month that is coming to its end: the next one, at an hour before midnight."""
    assert clock
    month = Month.of(await engine.database.clock()).plus(1)
    await clock.put(month.plus(1).start - HOUR)
    return month


def last(month: Month) -> UUID:
    """The last id of a month."""
    return make_id(to_milliseconds(month.plus(1).start) - 1, ALL)


def first(month: Month) -> UUID:
    """The first id of a month."""
    return make_id(to_milliseconds(month.start), 0)


async def start(engine: Engine, *ids: UUID) -> None:
    """Runs of three steps with these ids, submitted at the same moment."""
    requests = [StartRequest(namespace=NAMESPACE, definition="order", run_id=run_id) for run_id in ids]
    assert all(reply.created for reply in await asyncio.gather(*map(engine.start, requests)))


async def months_of(connection: Connection, table: str) -> dict[UUID, set[str]]:
    """In which months' tables the rows of each run lie."""
    key = "id" if table == "workflow_runs" else "run_id"
    rows = await connection.fetch(f"SELECT {key}, right(tableoid::regclass::text, 6) FROM partita.{table}")  # noqa: S608  # names of this file
    found: dict[UUID, set[str]] = {}
    for run_id, suffix in rows:
        found.setdefault(run_id, set()).add(suffix)
    return found


async def test_runs_that_start_before_midnight_finish_after_it_in_transactions_that_span_both_months(
    engine: Engine, other: Connection, clock: ShiftedClock, month: Month
) -> None:
    """The ids of the new month come from clients whose clocks are a little ahead."""
    await engine.deploy(NAMESPACE, "order", CHAIN)
    new = month.plus(1)
    midnight = to_milliseconds(new.start)
    old_ids, new_ids = [last(month), make_id(midnight - 1, 0)], [first(new), make_id(midnight + 5, 7)]
    before = engine.coordinator.transactions
    await start(engine, old_ids[0], *new_ids, old_ids[1])
    assert engine.coordinator.transactions - before <= 2
    (some, *others) = await support.claim(other)
    assert (await engine.report(done(some), OFFER)).outcome == "applied"
    await clock.put(new.start + HOUR)
    before = engine.coordinator.transactions
    await support.finish(engine, other, others)
    assert engine.coordinator.transactions - before <= 8
    (rest,) = [run_id for run_id in (*old_ids, *new_ids) if run_id == some.run_id]
    leased = await other.fetch("SELECT * FROM partita.task_leases WHERE run_id = $1", rest)
    assert len(leased) == 1, "the task that was handed on before midnight is still held"
    report = replace(done(some), node=leased[0]["node"], lease_id=leased[0]["lease_id"])
    reply = await engine.report(report, OFFER)
    assert reply.next is not None
    await support.finish(engine, other, [reply.next])
    statuses = await other.fetch("SELECT status FROM partita.workflow_runs")
    assert [row[0] for row in statuses] == ["Succeeded"] * 4
    expected = {run_id: {month.suffix} for run_id in old_ids} | {run_id: {new.suffix} for run_id in new_ids}
    for table in ("workflow_runs", "task_instances", "run_history", "run_endings"):
        assert await months_of(other, table) == expected, table
    finished = await other.fetch("SELECT finished_at FROM partita.run_endings")
    assert all(row[0] >= new.start for row in finished)


async def test_a_timer_that_was_set_before_midnight_fires_after_it(
    engine: Engine, other: Connection, clock: ShiftedClock, month: Month
) -> None:
    await engine.deploy(NAMESPACE, "order", PAUSE)
    await start(engine, last(month))
    key = TimerKey(TimerKind.WAIT, "pause", 0)
    assert (await engine.coordinator.timer_due(last(month), key)).outcome == "stale"
    await clock.put(month.plus(1).start + HOUR)
    assert (await engine.coordinator.timer_due(last(month), key)).outcome == "applied"
    assert await months_of(other, "task_instances") == {last(month): {month.suffix}}


async def test_an_id_is_taken_up_to_a_day_ahead_and_back_to_the_floor_to_the_millisecond(
    engine: Engine, other: Connection, clock: ShiftedClock, month: Month
) -> None:
    """At a day before midnight the new month begins to be taken. What is refused leaves nothing behind."""
    await engine.deploy(NAMESPACE, "order", CHAIN)
    new, floor = month.plus(1), month.plus(-2)
    await clock.put(new.start - timedelta(days=1, seconds=30))
    for run_id, error in ((first(new), TooEarlyError), (last(floor.plus(-1)), ExpiredError)):
        request = StartRequest(namespace=NAMESPACE, definition="order", run_id=run_id, idempotency_key="key")
        with pytest.raises(error, match=str(run_id)):
            await engine.start(request)
        for table in ("workflow_runs", "open_runs", "run_keys", "run_inbox", "task_instances"):
            assert await other.fetchval(f"SELECT count(*) FROM partita.{table}") == 0  # noqa: S608  # names of this test
    await clock.put(new.start - timedelta(days=1))
    await start(engine, first(new), first(floor))
    assert await months_of(other, "workflow_runs") == {first(new): {new.suffix}, first(floor): {floor.suffix}}


async def test_months_ahead_follow_the_databases_clock_over_midnight(
    settings: Settings, engine: Engine, clock: ShiftedClock, month: Month
) -> None:
    """Upkeep of both sides of midnight; a second round of the same month has nothing to do."""
    upkeep = Duties(engine).upkeep
    await upkeep.tick()
    assert (await partitions.status(engine.database)).months[-1].month == month.plus(3)
    assert await partitions.ensure(settings) == ()
    await clock.put(month.plus(1).start)
    made = await partitions.ensure(settings)
    assert {name[-6:] for name in made} == {month.plus(4).suffix}
    status = await partitions.status(engine.database)
    assert (status.ahead, status.now >= month.plus(1).start) == (3, True)
    await Duties(engine).upkeep.tick()
    assert (await partitions.status(engine.database)).months == status.months


async def test_a_month_becomes_droppable_at_midnight_and_not_before(
    settings: Settings, engine: Engine, other: Connection, clock: ShiftedClock, month: Month
) -> None:
    """One month is kept besides the current one."""
    one = replace(settings, retention=RetentionSettings(months=1))
    old = month.plus(-1)
    await insert_run(other, last(old))
    await insert_run(other, first(month))
    await clock.put(month.plus(1).start - timedelta(seconds=60))
    report = await retention.drop(one)
    assert report.dropped == (old.plus(-1),)
    assert await months_of(other, "workflow_runs") == {last(old): {old.suffix}, first(month): {month.suffix}}
    await clock.put(month.plus(1).start)
    report = await retention.drop(one)
    assert (report.dropped, report.floor) == ((old,), month.start)
    assert await months_of(other, "workflow_runs") == {first(month): {month.suffix}}
    await engine.deploy(NAMESPACE, "order", CHAIN)
    with pytest.raises(ExpiredError, match=f"expected {month.start:%Y-%m-%d} or later"):
        await engine.start(StartRequest(namespace=NAMESPACE, definition="order", run_id=last(old)))
    await start(engine, make_id(to_milliseconds(month.start), 1))


async def test_a_batch_of_starts_is_not_failed_by_those_outside_the_window(
    engine: Engine, other: Connection, month: Month
) -> None:
    """Each is answered for itself."""
    await engine.deploy(NAMESPACE, "order", CHAIN)
    ids = [last(month), first(month.plus(2)), first(month.plus(1)), last(month.plus(-4)), first(month)]
    requests = [StartRequest(namespace=NAMESPACE, definition="order", run_id=run_id) for run_id in ids]
    answers = await asyncio.gather(*map(engine.start, requests), return_exceptions=True)
    assert [type(answer).__name__ for answer in answers] == [
        "StartReply", "TooEarlyError", "StartReply", "ExpiredError", "StartReply"
    ]  # fmt: skip  # as the ids
    assert set(await months_of(other, "workflow_runs")) == {ids[0], ids[2], ids[4]}


async def test_without_a_month_ahead_starts_stop_at_midnight_until_upkeep_comes(
    settings: Settings, clock: ShiftedClock, other: Connection, month: Month
) -> None:
    """As when nothing but clients was running for months."""
    await clock.put(month.plus(8).start + HOUR)
    async with opened(settings) as engine:
        await engine.deploy(NAMESPACE, "order", CHAIN)
        request = StartRequest(namespace=NAMESPACE, definition="order", run_id=first(month.plus(8)))
        with pytest.raises(Exception, match="partita partitions ensure"):
            await engine.start(request)
        await Duties(engine).upkeep.tick()
        assert (await engine.start(request)).created
        assert await months_of(other, "workflow_runs") == {first(month.plus(8)): {month.plus(8).suffix}}
