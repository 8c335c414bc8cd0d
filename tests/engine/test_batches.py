"""What a batch costs: a constant number of statements, one transaction, and updates that stay on their page."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, TypeAlias, cast

import asyncpg
import pytest

from partita.domain.state.effects import TimerKey
from partita.domain.state.rows import TimerKind
from partita.engine import ClaimedTask, Engine, Offer, StartRequest
from partita.engine.opening import FEW
from partita.settings import DatabaseSettings, Settings
from partita.store import reads
from partita.store.embedded import Server
from tests.engine import support
from tests.engine.support import OFFER, claim, done, opened, start_many
from tests.waiting import until

Connection: TypeAlias = "asyncpg.Connection[Any]"


@contextmanager
def statements(engine: Engine) -> Iterator[list[str]]:
    """Statements that the engine's only lane sends meanwhile."""
    seen: list[str] = []

    def note(record: Any) -> None:
        seen.append(record.query)

    with _session(engine).query_logger(note):
        yield seen


def _session(engine: Engine) -> Connection:
    """The connection of the engine's only lane."""
    connection = engine.coordinator._lanes[0]._transactor._connection._connection
    assert connection is not None
    return cast("Connection", connection)


async def test_a_batch_of_two_hundred_sends_as_many_statements_as_one_of_twenty(
    settings: Settings, other: Connection
) -> None:
    async with opened(settings, batch_size=500) as engine:
        await start_many(engine, support.CHAIN, 401)
        tasks = await claim(other)
        await report_all(engine, tasks[:20])  # parses, prepares, and looks at what is urgent
        before = engine.coordinator.transactions
        with statements(engine) as few:
            await report_all(engine, tasks[20 : 21 + FEW])
        with statements(engine) as many:
            await report_all(engine, tasks[201:])
        assert engine.coordinator.transactions - before == 2
        settled = [text for text in many if "AS start (" not in text]  # the look at what is urgent, once a second
        assert len(settled) == len([text for text in few if "AS start (" not in text])
        assert len(settled) <= 7, settled


async def report_all(engine: Engine, tasks: list[ClaimedTask]) -> None:
    """Report these tasks in one transaction, and take the next ones."""
    replies = await asyncio.gather(*(engine.report(done(task), OFFER) for task in tasks))
    assert {reply.outcome for reply in replies} == {"applied"}
    assert all(reply.next is not None for reply in replies)


async def test_a_lone_run_sends_a_statement_a_transaction(
    engine: Engine, other: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What this process remembers it need not read. A lease that was claimed has to be: begin, read under the lock,
    write, commit."""
    support.steady(monkeypatch)
    await engine.deploy(support.NAMESPACE, "order", support.CHAIN)
    for number in range(2):  # the first time parses, prepares, and looks at what is urgent
        if number == 0:
            await engine.start(StartRequest(namespace=support.NAMESPACE, definition="order"))
        else:
            with statements(engine) as started:
                await engine.start(StartRequest(namespace=support.NAMESPACE, definition="order"))
            direct = ["BEGIN", "WITH", "COMMIT"] if engine.settings.database.pooled else ["WITH"]
            assert [text.split()[0].strip(";") for text in started] == direct
        (task,) = await claim(other)
        with statements(engine) as lone:
            reply = await engine.report(done(task), OFFER)
            assert reply.next is not None
            reply = await engine.report(done(reply.next), OFFER)
            assert reply.next is not None
            assert (await engine.report(done(reply.next), OFFER)).outcome == "applied"
        words = [text.split()[0].strip(";") for text in lone]
        usual = ["BEGIN", "WITH", "WITH", "COMMIT"]
        assert number == 0 or words == (usual * 3 if engine.settings.database.pooled else [*usual, "WITH", "WITH"])


async def test_starts_and_reports_of_many_runs_share_one_transaction(settings: Settings, other: Connection) -> None:
    async with opened(settings, batch_size=500) as engine:
        await start_many(engine, support.CHAIN, 50)
        tasks = await claim(other)
        before = engine.coordinator.transactions
        requests = [StartRequest(namespace=support.NAMESPACE, definition="order") for _ in range(50)]
        await asyncio.gather(
            *(engine.start(request) for request in requests), *(engine.report(done(task)) for task in tasks)
        )
        assert engine.coordinator.transactions - before <= 2


async def test_several_events_of_one_run_share_a_transaction(engine: Engine, other: Connection) -> None:
    spec = {"nodes": [support.task(f"n{number}") for number in range(8)]}
    (run_id,) = await start_many(engine, spec, 1)
    tasks = await claim(other)
    before = engine.coordinator.transactions
    replies = await asyncio.gather(*(engine.report(done(task)) for task in tasks))
    assert {reply.outcome for reply in replies} == {"applied"}
    assert engine.coordinator.transactions - before == 1
    assert await support.status(other, run_id) == "Succeeded"
    lines = await reads.history(engine.database, run_id)
    assert [line.seq for line in lines] == list(range(1, 11))
    assert [line.event for line in lines] == ["RunStarted", *["TaskCompleted"] * 8, "RunFinished"]
    assert await support.count(other, "run_history", run_id) == 8


async def test_updates_of_records_are_hot(restartable_server: Server) -> None:
    """Every round, on a server of its own: what an update may prune ends at the oldest transaction of the whole server
    when its snapshot was taken, so that a test in another database would decide about the share."""
    settings = Settings(database=DatabaseSettings(url=restartable_server.url("partita")))
    async with opened(settings) as engine, support.connected(settings) as other:
        await other.execute("ALTER SYSTEM SET autovacuum = off")  # an ANALYZE is an old snapshot as well
        await other.execute("SELECT pg_reload_conf()")
        await until(partial(_no_vacuum, other), what="the server to be quiet")
        shares = [await _hot_share(engine, other) for _ in range(3)]
    assert min(shares) >= 0.99, shares


async def _no_vacuum(other: Connection) -> bool:
    return not await other.fetchval("SELECT count(*) FROM pg_stat_activity WHERE backend_type ~ 'autovacuum'")


async def _hot_share(engine: Engine, other: Connection) -> float:
    updates, hot = await _updates(other, 0)
    await start_many(engine, support.CHAIN, 400)
    await support.finish(engine, other, await claim(other))
    assert await other.fetchval("SELECT count(*) FROM partita.workflow_runs WHERE status <> 'Succeeded'") == 0
    await _session(engine).execute("SELECT pg_stat_force_next_flush()")
    after, hot_after = await _updates(other, updates + 400 * 6)
    return (hot_after - hot) / (after - updates)


async def _updates(other: Connection, at_least: int) -> tuple[int, int]:
    """Updates of the records so far, and how many of them were HOT."""

    async def reported() -> tuple[int, int] | None:
        row = await other.fetchrow(
            "SELECT coalesce(sum(n_tup_upd), 0)::int, coalesce(sum(n_tup_hot_upd), 0)::int FROM pg_stat_user_tables "
            "WHERE relname ~ '^(workflow_runs|task_instances)_'"
        )
        return (row[0], row[1]) if row is not None and row[0] >= at_least else None

    found = await until(reported, within=30, what="the engine's statistics")
    assert found is not None
    return found


async def test_a_successor_is_leased_to_the_worker_that_reported(engine: Engine, other: Connection) -> None:
    (run_id,) = await start_many(engine, support.CHAIN, 1)
    (task,) = await claim(other)
    reply = await engine.report(done(task, {"x": 1}), OFFER)
    assert reply.next is not None
    lease = await other.fetchrow("SELECT * FROM partita.task_leases WHERE run_id = $1", run_id)
    assert lease is not None
    assert (lease["node"], lease["lease_id"], lease["worker_id"]) == ("b", reply.next.lease_id, support.WORKER)
    assert await support.count(other, "ready_tasks", run_id) == 0
    assert lease["deadline_at"] == reply.next.deadline


async def test_a_successor_is_queued_when_nobody_offers_or_more_urgent_work_waits(
    settings: Settings, engine: Engine, other: Connection
) -> None:
    runs = await start_many(engine, support.CHAIN, 4)
    first, second, third, fourth = await claim(other)
    assert (await engine.report(done(first))).next is None
    assert (await engine.report(done(second), Offer(worker_id="w", queues=frozenset({"gpu"})))).next is None
    queued = await other.fetch("SELECT run_id FROM partita.ready_tasks")
    assert {row["run_id"] for row in queued} == {first.run_id, second.run_id} <= set(runs)
    await other.execute("UPDATE partita.ready_tasks SET enqueued_at = enqueued_at - interval '1 minute'")
    async with opened(settings) as looking:  # it has not looked at the queue within the last second
        assert (await looking.report(done(third), OFFER)).next is None
    await other.execute("UPDATE partita.ready_tasks SET enqueued_at = clock_timestamp()")
    async with opened(settings) as looking:
        assert (await looking.report(done(fourth), OFFER)).next is not None


async def test_a_paused_engine_hands_nothing_on_and_fires_no_timer(engine: Engine, other: Connection) -> None:
    await start_many(engine, support.CHAIN, 1)
    (task,) = await claim(other)
    waiting = await support.start(engine, support.PAUSE, name="pause")
    await other.execute("UPDATE partita.timers SET fire_at = clock_timestamp()")
    await other.execute("UPDATE partita.engine_state SET paused = true")
    reply = await engine.report(done(task), OFFER)
    assert (reply.outcome, reply.next) == ("applied", None)
    key = TimerKey(TimerKind.WAIT, "pause", 0)
    assert (await engine.coordinator.timer_due(waiting, key)).outcome == "stale"
    assert await support.count(other, "timers", waiting) == 1
    await other.execute("UPDATE partita.engine_state SET paused = false")
    assert (await engine.coordinator.timer_due(waiting, key)).outcome == "applied"
