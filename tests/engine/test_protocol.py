"""A schema that has moved on stops older processes; leases, timers and expiries are fenced by their own rows."""

from __future__ import annotations

import asyncio
from typing import Any, TypeAlias

import asyncpg
import pytest

from partita.domain.errors import OutdatedError
from partita.domain.state.effects import TimerKey
from partita.domain.state.events import ResumeRequested, SuspendRequested
from partita.domain.state.rows import NodeKey, ReadyKey, TimerKind
from partita.engine import Engine
from partita.settings import Settings
from tests.engine import support
from tests.engine.support import claim, count, done, opened, start, status

Connection: TypeAlias = "asyncpg.Connection[Any]"
PAUSE_TIMER = TimerKey(TimerKind.WAIT, "pause", 0)


async def test_an_older_process_stops_and_its_duties_are_told(engine: Engine, other: Connection) -> None:
    told: list[bool] = []
    engine.notices.outdated.append(lambda: told.append(True))
    run_id = await start(engine, support.APPROVAL)
    await other.execute("UPDATE partita.engine_state SET oldest_protocol = 99")
    with pytest.raises(OutdatedError, match="99"):
        await engine.apply(run_id, support.signal("s"))
    assert told == [True]
    assert await status(other, run_id) == "Running"


async def test_a_timer_fires_once_whoever_finds_it(settings: Settings, engine: Engine, other: Connection) -> None:
    run_id = await start(engine, support.PAUSE)
    assert (await engine.coordinator.timer_due(run_id, PAUSE_TIMER)).outcome == "stale", "not yet due"
    assert await count(other, "timers", run_id) == 1
    await other.execute("UPDATE partita.timers SET fire_at = clock_timestamp()")
    async with opened(settings) as second:
        replies = await asyncio.gather(
            *(one.coordinator.timer_due(run_id, PAUSE_TIMER) for one in (engine, second, engine))
        )
    assert sorted(reply.outcome for reply in replies) == ["applied", "stale", "stale"]
    assert [task.node for task in await claim(other)] == ["after"]


async def test_a_lease_is_taken_only_from_a_worker_that_is_gone(engine: Engine, other: Connection) -> None:
    run_id = await start(engine, support.CHAIN)
    (task,) = await claim(other)
    await other.execute(
        "INSERT INTO partita.workers (id, expires_at, protocol, slots, queues) "
        "VALUES ($1, clock_timestamp() + interval '1 minute', 1, 1, '{default}')",
        support.WORKER,
    )
    key = NodeKey("a", 0)
    assert (await engine.coordinator.lease_lost(run_id, key, 1, task.lease_id)).outcome == "stale"
    assert await count(other, "task_leases", run_id) == 1
    await other.execute("UPDATE partita.workers SET expires_at = clock_timestamp()")
    assert (await engine.coordinator.lease_lost(run_id, key, 1, task.lease_id)).outcome == "applied"
    assert (await engine.report(done(task))).outcome == "stale", "it was taken away"


async def test_an_attempt_times_out_only_after_its_deadline(engine: Engine, other: Connection) -> None:
    run_id = await start(engine, {"nodes": [support.task("a")]})
    (task,) = await claim(other)
    key = NodeKey("a", 0)
    assert (await engine.coordinator.attempt_timed_out(run_id, key, 1, task.lease_id)).outcome == "stale"
    await other.execute("UPDATE partita.task_leases SET deadline_at = clock_timestamp()")
    assert (await engine.coordinator.attempt_timed_out(run_id, key, 1, task.lease_id)).outcome == "applied"
    assert await status(other, run_id) == "Failed"
    error = await other.fetchval("SELECT error->>'type' FROM partita.task_attempts WHERE run_id = $1", run_id)
    assert error == "timeout"


async def test_a_ready_task_expires_only_after_schedule_to_start(engine: Engine, other: Connection) -> None:
    run_id = await start(engine, {"nodes": [support.task("a", scheduleToStart="1h")]})
    row = await other.fetchrow("SELECT queue, lane, priority, seq FROM partita.ready_tasks")
    assert row is not None
    ready, key = ReadyKey(*row), NodeKey("a", 0)
    assert (await engine.coordinator.schedule_to_start_expired(run_id, key, 1, ready)).outcome == "stale"
    await other.execute("UPDATE partita.ready_tasks SET expires_at = clock_timestamp()")
    assert (await engine.coordinator.schedule_to_start_expired(run_id, key, 1, ready)).outcome == "applied"
    assert await status(other, run_id) == "Failed"
    assert await count(other, "ready_tasks", run_id) == 0


async def test_an_attempt_that_is_handed_back_is_queued_again_unspent(engine: Engine, other: Connection) -> None:
    await start(engine, support.CHAIN)
    (task,) = await claim(other)
    assert (await engine.report(done(task, output=None, handed_back=True))).outcome == "applied"
    (again,) = await claim(other)
    assert (again.node, again.attempt) == ("a", 1)
    assert again.lease_id != task.lease_id


async def test_suspending_withdraws_what_is_ready_and_freezes_timers(engine: Engine, other: Connection) -> None:
    spec = {"nodes": [support.task("a"), *support.PAUSE["nodes"]]}
    run_id = await start(engine, spec)
    await engine.apply(run_id, SuspendRequested())
    assert await count(other, "ready_tasks", run_id) == 0
    timer = await other.fetchrow("SELECT fire_at = 'infinity' AS frozen, remaining_ms FROM partita.timers")
    assert timer is not None
    assert timer["frozen"]
    assert 3_500_000 < timer["remaining_ms"] <= 3_600_000
    assert (await engine.coordinator.timer_due(run_id, PAUSE_TIMER)).outcome == "stale"
    await engine.apply(run_id, ResumeRequested())
    assert await count(other, "ready_tasks", run_id) == 1
    resumed = await other.fetchrow("SELECT fire_at < 'infinity' AS running, remaining_ms FROM partita.timers")
    assert resumed is not None
    assert tuple(resumed) == (True, None)


async def test_a_signal_counts_once_and_early_ones_wait(engine: Engine, other: Connection) -> None:
    spec = {"nodes": [support.task("a"), {"name": "approval", "dependsOn": ["a"], "waitForEvent": {}}]}
    run_id = await start(engine, spec)
    early = support.signal("one", payload={"by": "me"})
    assert (await engine.apply(run_id, early)).outcome == "applied"
    await engine.apply(run_id, early)
    assert await count(other, "workflow_events", run_id) == 1
    (task,) = await claim(other)
    await engine.report(done(task))
    assert await status(other, run_id) == "Succeeded"
    taken = await other.fetchrow("SELECT consumed_by, consumed_at FROM partita.workflow_events")
    assert taken is not None
    assert taken["consumed_by"] == "approval"
    assert taken["consumed_at"] is not None
