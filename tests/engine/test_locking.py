"""The order of locks and reads: what is decided upon is read after the run was locked, and nobody is held up."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any, TypeAlias

import asyncpg
import pytest

from partita.domain.errors import UnavailableError
from partita.domain.state.effects import TimerKey
from partita.domain.state.events import CancelRequested, Reply
from partita.domain.state.rows import TimerKind
from partita.engine import Engine
from partita.settings import Settings
from tests.engine import support
from tests.engine.support import blocked, claim, count, done, lock_run, opened, start, start_many, status
from tests.waiting import until

Connection: TypeAlias = "asyncpg.Connection[Any]"


async def test_two_predecessors_of_a_join_finish_in_two_processes_and_the_join_starts_once(
    settings: Settings, other: Connection
) -> None:
    async with opened(settings) as first, opened(settings) as second:
        run_id = await start(first, support.DIAMOND)
        left, right = await claim(other)
        await lock_run(other, run_id)
        reports = [asyncio.create_task(first.report(done(left))), asyncio.create_task(second.report(done(right)))]
        await blocked(other, 2)
        await other.execute("COMMIT")
        assert [reply.outcome for reply in await asyncio.gather(*reports)] == ["applied", "applied"]
        ready = await claim(other)
        assert [task.node for task in ready] == ["join"]
        await first.report(done(ready[0]))
        assert await status(other, run_id) == "Succeeded"


async def test_a_run_that_is_held_does_not_hold_up_others(engine: Engine, other: Connection) -> None:
    runs = await start_many(engine, support.APPROVAL, 20)
    await lock_run(other, runs[0])
    held = asyncio.create_task(engine.apply(runs[0], support.signal("s")))
    replies = await asyncio.gather(*(engine.apply(run_id, support.signal("s")) for run_id in runs[1:]))
    assert {reply.outcome for reply in replies} == {"applied"}
    await blocked(other)
    later = asyncio.create_task(engine.apply(runs[0], support.signal("t")))
    assert (await engine.apply(runs[1], support.signal("u"))).outcome in {"applied", "refused"}
    assert not held.done()
    await other.execute("COMMIT")
    assert (await held).outcome == "applied"
    await later
    assert await status(other, runs[0]) == "Succeeded"


async def test_a_run_that_stays_held_is_answered_when_patience_ends(settings: Settings, other: Connection) -> None:
    impatient = replace(settings, database=replace(settings.database, patience_ms=300))
    async with opened(impatient, lock_timeout_ms=50) as engine:
        run_id = await start(engine, support.APPROVAL)
        await lock_run(other, run_id)
        with pytest.raises(UnavailableError, match=f"run {run_id}: another session keeps it locked"):
            await engine.apply(run_id, support.signal("s"))
        await other.execute("COMMIT")
        assert (await engine.apply(run_id, support.signal("s"))).outcome == "applied"


async def test_a_claim_that_races_a_cancel_leaves_no_row(engine: Engine, other: Connection) -> None:
    run_id = await start(engine, support.CHAIN)
    await other.execute("BEGIN")
    (task,) = await claim(other)
    cancel = asyncio.create_task(engine.apply(run_id, CancelRequested()))
    await blocked(other)
    await other.execute("COMMIT")
    await cancel
    assert await status(other, run_id) == "Cancelled"
    assert [await count(other, table, run_id) for table in ("ready_tasks", "task_leases", "timers", "waits")] == [0] * 4
    assert (await engine.report(done(task))).outcome == "stale"


async def test_a_cancel_clears_ready_leases_timers_and_waits(engine: Engine, other: Connection) -> None:
    spec = {
        "timeout": "1h",
        "nodes": [support.task("a"), support.task("b"), *support.PAUSE["nodes"], *support.APPROVAL["nodes"]],
    }
    run_id = await start(engine, spec)
    await other.execute("SELECT FROM partita.ready_tasks")
    await claim(other)
    await start(engine, spec, name="bystander")
    assert await count(other, "timers", run_id) == 2
    await engine.apply(run_id, CancelRequested())
    for table in ("ready_tasks", "task_leases", "timers", "waits", "open_runs"):
        assert await count(other, table, run_id) == 0, table
    assert await other.fetchval("SELECT count(*) FROM partita.ready_tasks") == 2
    assert await other.fetchval("SELECT count(*) FROM partita.timers") == 2


async def test_a_timer_that_falls_due_while_its_run_is_held_fires(settings: Settings, other: Connection) -> None:
    async with opened(settings, skips_before_blocking=1) as engine:
        run_id = await start(engine, support.PAUSE)
        await other.execute("UPDATE partita.timers SET fire_at = clock_timestamp() + interval '0.5 s'")
        await lock_run(other, run_id)
        firing = asyncio.create_task(engine.coordinator.timer_due(run_id, TimerKey(TimerKind.WAIT, "pause", 0)))
        await blocked(other)
        assert await other.fetchval("SELECT fire_at > clock_timestamp() FROM partita.timers"), "the wait began in time"

        async def due() -> bool:
            return bool(await other.fetchval("SELECT fire_at < clock_timestamp() FROM partita.timers"))

        await until(due)
        await other.execute("COMMIT")
        assert (await firing).outcome == "applied"
        assert [task.node for task in await claim(other)] == ["after"]


async def test_an_open_transaction_of_a_caller_holds_nobody_up(engine: Engine, other: Connection) -> None:
    run_id = await start(engine, support.APPROVAL)
    await other.execute("BEGIN")
    await engine.signal_in(other, run_id, support.signal("from-a-transaction", payload={"by": "caller"}))
    assert (await engine.apply(run_id, support.signal("x", name="unrelated"))).outcome == "applied"
    assert await status(other, run_id) == "Running"
    await other.execute("COMMIT")
    (row,) = await other.fetch("SELECT id, run_id, kind, body FROM partita.run_inbox")
    replies = await asyncio.gather(engine.deliver(row), engine.deliver(row))
    assert sorted(reply.outcome for reply in replies if isinstance(reply, Reply)) == ["applied", "stale"]
    assert await status(other, run_id) == "Succeeded"
    assert await other.fetchval("SELECT count(*) FROM partita.run_inbox") == 0
