"""Background duties on a real server: whoever looks, everything happens once and at its time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any
from uuid import UUID

import asyncpg
import pytest
from uuid6 import uuid7

from partita.domain.payload import Payload
from partita.domain.state.effects import TimerKey
from partita.domain.state.events import CancelRequested, Reply, SignalReceived
from partita.engine.requests import PROTOCOL, StartRequest
from partita.engine.service import Service
from partita.engine.supervisor import Supervisor
from partita.engine.timers import Timers
from partita.settings import Settings
from partita.store.duties import DutyStore
from tests.engine.hand_claims import LIVE_WORKER, claim, done
from tests.engine.manual_clock import ManualClock
from tests.postgres import direct_url
from tests.waiting import until
from tests.worker.hosted import NAMESPACE, Host, hosted

TASK = {"name": "only", "task": {"type": "work"}}


@pytest.fixture
def settings(settings: Settings) -> Settings:
    """Loops that wait for a minute unless they know better, so that a test which passes did not wait for a poll."""
    slow = replace(settings.engine, timer_tick_ms=60_000, sweep_interval_ms=60_000, inbox_tick_ms=60_000)
    return replace(settings, engine=slow)


@asynccontextmanager
async def running(*services: Service) -> AsyncIterator[None]:
    supervisor = Supervisor()
    supervisor.start(*services)
    try:
        yield
    finally:
        await supervisor.stop()


async def test_the_sweeper_hands_a_dead_workers_task_over(settings: Settings) -> None:
    async with hosted(settings, duties=False) as host:
        await host.deploy(TASK)
        run_id = await host.start()
        lost = await claim(host, "dead", alive_for=60)
        sweeper = host.duties.sweeper
        async with running(sweeper):
            await sweeper.ticked()
            assert await host.events(run_id, "LeaseLost") == [], "its worker is alive"
            await silence(host, "dead")
            await sweeper.ticked()
        assert await host.events(run_id, "LeaseLost") == [("LeaseLost", "only", 1)]
        second = await claim(host, "w2")
        assert second.attempt == 2
        assert (await host.engine.report(done(second, "w2"))).outcome == "applied"
        assert (await host.engine.report(done(lost, "dead"))).outcome == "stale", "it wakes up late"
        assert (await host.ended(run_id))["status"] == "Succeeded"


async def silence(host: Host, worker_id: str) -> None:
    """Let the worker's time run out, as if the server had been up all the while."""
    await host.fetch(
        "UPDATE partita.workers SET heartbeat_at = pg_postmaster_start_time() - interval '1 hour',"
        " expires_at = pg_postmaster_start_time() - interval '1 hour' + interval '1 millisecond' WHERE id = $1",
        worker_id,
    )
    await host.fetch("SELECT pg_sleep(0.002)")


async def test_workers_have_time_to_be_heard_after_the_server_was_down(settings: Settings) -> None:
    async with hosted(settings, duties=False) as host:
        await host.deploy(TASK)
        run_id = await host.start()
        await claim(host)
        await host.fetch(  # heard a day before the server was started again, with a lease of a day less a minute
            "UPDATE partita.workers SET heartbeat_at = pg_postmaster_start_time() - interval '1 day',"
            " expires_at = pg_postmaster_start_time() - interval '1 minute'"
        )
        async with running(host.duties.sweeper):
            await host.duties.sweeper.ticked()
        assert await host.events(run_id, "LeaseLost") == []


async def test_two_sweepers_end_a_lease_once(settings: Settings) -> None:
    async with hosted(settings, duties=False) as one, hosted(settings, duties=False) as two:
        await one.deploy(TASK)
        runs = [await one.start() for _ in range(20)]
        for _ in runs:
            await claim(one, "dead")
        await silence(one, "dead")
        async with running(one.duties.sweeper, two.duties.sweeper):
            await asyncio.gather(one.duties.sweeper.ticked(), two.duties.sweeper.ticked())
        for run_id in runs:
            assert await one.events(run_id, "LeaseLost") == [("LeaseLost", "only", 1)]
        assert len(await one.fetch("SELECT FROM partita.ready_tasks")) == len(runs)


async def test_an_attempt_of_a_live_worker_ends_at_its_deadline(settings: Settings) -> None:
    async with hosted(settings, duties=False) as host:
        await host.deploy({**TASK, "timeout": "1ms"})
        run_id = await host.start()
        task = await claim(host)
        sweeper = host.duties.sweeper
        async with running(sweeper):
            await sweeper.ticked()
        assert await host.events(run_id, "AttemptTimedOut") == [("AttemptTimedOut", "only", 1)]
        assert (await host.engine.report(done(task))).outcome == "stale"


async def test_a_task_that_nobody_takes_in_time_fails(settings: Settings) -> None:
    async with hosted(settings, duties=False) as host:
        await host.deploy({**TASK, "scheduleToStart": "1ms"})
        run_id = await host.start()
        sweeper = host.duties.sweeper
        async with running(sweeper):
            await sweeper.ticked()
        ended = await host.ended(run_id)
        assert (ended["status"], "schedule_to_start" in ended["error_json"]) == ("Failed", True)


async def test_timers_fire_at_their_time_without_polling(settings: Settings) -> None:
    async with hosted(settings, duties=False) as host, hosted(settings, duties=False) as starter:
        await host.deploy({"name": "pause", "wait": {"duration": "300ms"}})
        async with running(host.duties.timers):
            await host.duties.timers.ticked()
            own = await host.start()
            assert (await host.ended(own))["status"] == "Succeeded", "it knows of the timers that its process sets"
            foreign = await starter.start()
            await host.duties.timers.ticked()
            assert (await host.ended(foreign))["status"] == "Succeeded", "a look tells when the first one falls due"
        assert await host.events(own, "TimerDue") == [("TimerDue", "pause", None)]


async def test_two_loops_fire_a_timer_once(settings: Settings) -> None:
    async with hosted(settings, duties=False) as one, hosted(settings, duties=False) as two:
        await one.deploy({"name": "pause", "wait": {"duration": "1ms"}}, TASK | {"dependsOn": ["pause"]})
        runs = [await one.start() for _ in range(50)]
        async with running(one.duties.timers, two.duties.timers):
            await until(lambda: nothing_left(one, "timers"), what="all timers have fired")
        for run_id in runs:
            assert len(await one.events(run_id, "TimerDue")) == 1
        assert len(await one.fetch("SELECT FROM partita.ready_tasks")) == len(runs)


async def test_a_timer_of_a_transaction_that_commits_late_is_found(settings: Settings) -> None:
    fired: list[tuple[UUID, str]] = []

    class Firing:
        async def timer_due(self, run_id: UUID, timer: TimerKey) -> Reply:
            fired.append((run_id, timer.node))
            return Reply()

    clock, late = ManualClock(), uuid7()
    async with hosted(settings, duties=False) as host:
        store = DutyStore(host.engine.database)
        timers = Timers(store, Firing(), longest_ms=60_000, trail_ms=50, clock=clock)
        connection = await asyncpg.connect(direct_url(settings))
        transaction = connection.transaction()
        await transaction.start()
        await connection.execute(
            "INSERT INTO partita.timers (run_id, fire_at, index, kind, node)"
            " VALUES ($1, clock_timestamp() - interval '1 second', 0, 'wait', 'pause')",
            late,
        )
        await timers.tick()
        assert await timers.tick() == 60
        await transaction.commit()
        await timers.tick()
        assert fired == [], "the position is past it"
        clock.now += 1
        await timers.tick()
        assert fired == [(late, "pause")]
        await connection.close()


async def nothing_left(host: Host, table: str) -> bool:
    return not await host.fetch(f"SELECT FROM partita.{table} LIMIT 1")


async def test_no_timer_fires_while_the_engine_is_paused(settings: Settings) -> None:
    async with hosted(settings, duties=False) as host:
        await host.deploy({"name": "pause", "wait": {"duration": "1ms"}})
        await host.fetch("UPDATE partita.engine_state SET paused = true")
        run_id = await host.start()
        timers = host.duties.timers
        async with running(timers):
            await timers.ticked()
            await timers.ticked()
            assert await host.events(run_id, "TimerDue") == []
            await host.fetch("UPDATE partita.engine_state SET paused = false")
            await until(lambda: ticked_and_ended(timers, host, run_id), what="the timer fires after the pause")


async def ticked_and_ended(timers: Any, host: Host, run_id: UUID) -> bool:
    await timers.ticked()
    return bool(await host.events(run_id, "TimerDue"))


async def test_what_other_transactions_leave_in_the_inbox_is_delivered(settings: Settings) -> None:
    async with hosted(settings, duties=False) as host:
        await host.deploy({"name": "approval", "waitForEvent": {}})
        run_id = await host.start()
        connection = await asyncpg.connect(direct_url(settings))
        inbox = host.duties.inbox
        async with running(inbox):
            async with connection.transaction():
                signal = SignalReceived(id="s1", name="approval", payload=Payload.of({"ok": True}))
                await host.engine.signal_in(connection, run_id, signal)
                await inbox.ticked()
                assert await host.events(run_id, "SignalReceived") == [], "not before the caller's commit"
            await inbox.ticked()
        await connection.close()
        assert (await host.ended(run_id))["status"] == "Succeeded"
        assert await nothing_left(host, "run_inbox")


async def test_a_signal_that_was_left_before_its_runs_start_comes_after_it(settings: Settings) -> None:
    async with hosted(settings, duties=False) as host:
        await host.deploy({"name": "approval", "waitForEvent": {}})
        connection = await asyncpg.connect(direct_url(settings))
        asked = StartRequest(namespace=NAMESPACE, definition="order")
        async with connection.transaction():
            signal = SignalReceived(id="s1", name="approval", payload=Payload.of(None))
            await host.engine.signal_in(connection, asked.request_id, signal)
            run_id = await host.engine.start_in(connection, asked)
        await connection.close()
        async with running(host.duties.inbox):
            await host.duties.inbox.ticked()
        assert (await host.ended(run_id))["status"] == "Succeeded"
        assert await nothing_left(host, "run_inbox")


async def test_one_bad_row_does_not_hold_up_the_inbox(settings: Settings) -> None:
    async with hosted(settings, duties=False) as host:
        await host.deploy({"name": "approval", "waitForEvent": {}})
        run_id = await host.start()
        connection = await asyncpg.connect(direct_url(settings))
        for target in (uuid7(), run_id):
            signal = SignalReceived(id="s1", name="approval", payload=Payload.of(None))
            await host.engine.signal_in(connection, target, signal)
        await connection.close()
        async with running(host.duties.inbox):
            await host.duties.inbox.ticked()
        assert (await host.ended(run_id))["status"] == "Succeeded"
        (row,) = await host.fetch(
            "SELECT failures, last_error, due_at > clock_timestamp() AS later FROM partita.run_inbox"
        )
        assert (row["failures"], row["later"]) == (1, True)
        assert "does not exist" in row["last_error"]


async def test_upkeep_forgets_what_has_expired(settings: Settings) -> None:
    async with hosted(settings, duties=False) as host:
        await host.fetch(
            "INSERT INTO partita.run_keys (run_id, expires_at, scope, namespace, key, input_hash) VALUES"
            " ($1, clock_timestamp() - interval '1 day', 'idempotency', 'shop', 'old', ''),"
            " ($1, clock_timestamp() + interval '1 day', 'idempotency', 'shop', 'new', '')",
            uuid7(),
        )
        await host.fetch(LIVE_WORKER, "alive", 60.0)
        await host.fetch(LIVE_WORKER, "gone", -7200.0)
        async with running(host.duties.upkeep):
            await host.duties.upkeep.ticked()
        assert [row["key"] for row in await host.fetch("SELECT key FROM partita.run_keys")] == ["new"]
        assert [row["id"] for row in await host.fetch("SELECT id FROM partita.workers")] == ["alive"]
        analyzed = "SELECT last_analyze FROM pg_stat_user_tables WHERE relname = 'workflow_runs'"
        assert [row["last_analyze"] for row in await host.fetch(analyzed)] != [None]


@pytest.mark.parametrize("winner", ["claim", "cancel"])
async def test_a_cancel_that_races_a_claim_leaves_no_row(settings: Settings, winner: str) -> None:
    async with hosted(settings, duties=False) as host:
        await host.deploy(TASK)
        run_id = await host.start()
        connection = await asyncpg.connect(direct_url(settings))
        transaction = connection.transaction()
        await transaction.start()
        if winner == "claim":
            assert len(await claim_in(host, connection)) == 1
            async with asyncio.TaskGroup() as group:
                cancel = group.create_task(host.engine.apply(run_id, CancelRequested()))
                await until(lambda: someone_waits(host), what="the cancel waits for the claimed row")
                await transaction.commit()
            assert cancel.result().outcome == "applied"
        else:
            await connection.execute("SELECT FROM partita.ready_tasks WHERE run_id = $1 FOR UPDATE", run_id)
            assert await claim_in(host, host.engine) == [], "SKIP LOCKED: a claim waits for nobody"
            await transaction.rollback()
            await host.engine.apply(run_id, CancelRequested())
            assert await claim_in(host, host.engine) == []
        await connection.close()
        assert (await host.ended(run_id))["status"] == "Cancelled"
        assert await host.left_overs(run_id) == 0


async def claim_in(host: Host, where: Any) -> Sequence[Any]:
    """One claim statement on a connection of the test's (or of the engine's pool), from the beginning."""
    lanes = list(range(16))
    values = (["default"] * 16, lanes, [0] * 16, [0] * 16, 1, 4, uuid7(), "racer", None, PROTOCOL, False)
    text = host.engine.database.sql("claim_tasks")
    rows = await (host.fetch(text, *values) if where is host.engine else where.fetch(text, *values))
    return [row for row in rows if row["run_id"] is not None]


async def someone_waits(host: Host) -> bool:
    return bool(
        await host.fetch("SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'")
    )
