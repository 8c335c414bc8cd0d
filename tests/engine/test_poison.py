"""An event that cannot be decided or stored fails alone."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any, TypeAlias, cast

import asyncpg
import pytest

from partita.domain.errors import EngineError, InvalidError, NotFoundError, OverloadedError
from partita.domain.state.effects import TimerKey
from partita.domain.state.events import Event, ResumeRequested, SuspendRequested
from partita.domain.state.rows import TimerKind
from partita.engine import Engine, StartRequest
from partita.settings import Settings
from tests.engine import support
from tests.engine.support import claim, count, done, opened, start, start_many, status

Connection: TypeAlias = "asyncpg.Connection[Any]"


@dataclass(frozen=True)
class Unheard:
    """An event that the state machine does not know."""


async def test_an_event_that_cannot_be_decided_fails_alone(engine: Engine, other: Connection) -> None:
    runs = await start_many(engine, support.APPROVAL, 9)
    before = engine.coordinator.transactions
    results = await asyncio.gather(
        *(engine.apply(run_id, support.signal("s")) for run_id in runs[:4]),
        engine.apply(runs[4], cast("Event", Unheard())),
        *(engine.apply(run_id, support.signal("s")) for run_id in runs[5:]),
        return_exceptions=True,
    )
    assert isinstance(results.pop(4), EngineError)
    assert {getattr(reply, "outcome", reply) for reply in results} == {"applied"}
    assert engine.coordinator.transactions - before == 2, "the batch once, and once without the event"
    assert await status(other, runs[4]) == "Running"
    assert await other.fetchval("SELECT count(*) FROM partita.workflow_runs WHERE status = 'Succeeded'") == 8


async def test_the_other_events_of_its_run_happen(engine: Engine, other: Connection) -> None:
    (run_id,) = await start_many(engine, support.APPROVAL, 1)
    before = engine.coordinator.transactions
    results = await asyncio.gather(
        engine.apply(run_id, SuspendRequested()),
        engine.apply(run_id, cast("Event", Unheard())),
        engine.apply(run_id, ResumeRequested()),
        engine.apply(run_id, cast("Event", Unheard())),
        engine.apply(run_id, support.signal("s", name="later")),
        return_exceptions=True,
    )
    assert [getattr(reply, "outcome", type(reply)) for reply in results] == [
        "applied",
        EngineError,
        "applied",
        EngineError,
        "applied",
    ]
    assert engine.coordinator.transactions - before == 3, "once, and once without each of the two"
    assert await status(other, run_id) == "Running"
    assert await count(other, "workflow_events", run_id) == 1


async def test_an_event_that_cannot_be_stored_is_found_by_bisection(engine: Engine, other: Connection) -> None:
    runs = await start_many(engine, support.APPROVAL, 16)
    signals = [support.signal("s", sender="x\0y" if place == 11 else "me") for place in range(16)]
    results = await asyncio.gather(
        *(engine.apply(run_id, signal) for run_id, signal in zip(runs, signals, strict=True)), return_exceptions=True
    )
    assert isinstance(results.pop(11), InvalidError)
    assert {getattr(reply, "outcome", reply) for reply in results} == {"applied"}
    assert await other.fetchval("SELECT count(*) FROM partita.workflow_runs WHERE status = 'Succeeded'") == 15
    assert (await engine.apply(runs[11], support.signal("s"))).outcome == "applied"


async def test_a_failed_report_keeps_its_lease(engine: Engine, other: Connection) -> None:
    run_id = await start(engine, support.CHAIN)
    (task,) = await claim(other)
    with pytest.raises(InvalidError):
        await engine.report(done(task, {"text": "a\0b"}))
    assert await count(other, "task_leases", run_id) == 1
    assert (await engine.report(done(task, {"text": "ab"}))).outcome == "applied"


async def test_a_timer_that_cannot_be_applied_is_postponed_and_at_last_given_up(
    engine: Engine, other: Connection
) -> None:
    run_id = await start(engine, support.PAUSE)
    await other.execute("UPDATE partita.timers SET fire_at = clock_timestamp()")
    await other.execute("UPDATE partita.workflow_runs SET version = 77")  # a version that cannot be loaded
    key = TimerKey(TimerKind.WAIT, "pause", 0)
    for failures in range(1, 11):
        with pytest.raises(EngineError):
            await engine.coordinator.timer_due(run_id, key)
        row = await other.fetchrow("SELECT failures, dead_at, fire_at > clock_timestamp() AS later FROM partita.timers")
        assert row is not None
        assert (row["failures"], row["dead_at"] is not None, row["later"]) == (failures, failures == 10, True)
        await other.execute("UPDATE partita.timers SET fire_at = clock_timestamp()")


async def test_an_event_for_a_run_that_does_not_exist_is_refused(engine: Engine) -> None:
    run_id = StartRequest(namespace="x", definition="y").request_id
    with pytest.raises(NotFoundError):
        await engine.apply(run_id, support.signal("s"))
    reply = await engine.coordinator.timer_due(run_id, TimerKey(TimerKind.WAIT, "pause", 0))
    assert reply.outcome == "stale"


async def test_a_full_queue_refuses_instead_of_growing(settings: Settings) -> None:
    async with opened(settings, queue_size=3) as engine:
        runs = await start_many(engine, support.APPROVAL, 3)
        events = [engine.apply(run_id, support.signal(f"s{n}")) for n in range(2) for run_id in runs]
        results = await asyncio.gather(*events, return_exceptions=True)
    assert [type(result) for result in results[3:]] == [OverloadedError] * 3
    assert {getattr(result, "outcome", result) for result in results[:3]} == {"applied"}
