"""Conflicts and lost connections in the middle of a batch: it is tried again, and everything happens once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any, TypeAlias

import asyncpg
import pytest

from partita.engine import ClaimedTask, Engine
from partita.settings import Settings
from tests.engine import support
from tests.engine.proxy import Loss, Proxy, proxy_to
from tests.engine.support import OFFER, blocked, claim, done, opened, start_many
from tests.waiting import until

Connection: TypeAlias = "asyncpg.Connection[Any]"
COUNT = 30
COMPLETED = "SELECT count(*) FROM partita.run_history WHERE event = 'TaskCompleted'"
ONCE = """
CREATE SEQUENCE partita.failures;
CREATE FUNCTION partita.fail_once() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF nextval('partita.failures') = 1 THEN RAISE EXCEPTION 'injected' USING ERRCODE = '{code}'; END IF;
    RETURN new;
END $$;
CREATE TRIGGER fail_once BEFORE INSERT ON partita.run_history FOR EACH ROW EXECUTE FUNCTION partita.fail_once();
"""


async def leased(engine: Engine, connection: Connection) -> list[ClaimedTask]:
    """Tasks of as many runs."""
    await start_many(engine, support.CHAIN, COUNT)
    return await claim(connection)


async def report_all(engine: Engine, tasks: list[ClaimedTask]) -> list[str]:
    """Report these tasks in one batch; the outcomes."""
    return [reply.outcome for reply in await asyncio.gather(*(engine.report(done(task), OFFER) for task in tasks))]


async def happened_once(connection: Connection) -> None:
    """Each report was recorded once, and each run has its next task leased once."""
    assert await connection.fetchval(COMPLETED) == COUNT
    assert await connection.fetchval("SELECT count(*) FROM partita.task_leases WHERE node = 'b'") == COUNT
    states = "SELECT count(*) FROM partita.task_instances WHERE node = 'a' AND state = 'Completed' AND attempt = 1"
    assert await connection.fetchval(states) == COUNT


async def deadlocks(connection: Connection) -> int:
    await connection.execute("SELECT pg_stat_clear_snapshot()")
    query = "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()"
    return int(await connection.fetchval(query))


@pytest.mark.parametrize("code", ["40001", "40P01", "57P01"])
async def test_a_batch_that_fails_for_a_reason_that_passes_is_sent_again_whole(
    engine: Engine, other: Connection, code: str
) -> None:
    tasks = await leased(engine, other)
    await other.execute(ONCE.format(code=code))
    before = engine.coordinator.transactions
    assert await report_all(engine, tasks) == ["applied"] * COUNT
    assert engine.coordinator.transactions - before == 2, "once in vain, once again with all of them"
    await happened_once(other)


async def test_a_deadlock_with_a_session_that_locks_in_the_opposite_order_is_survived(
    engine: Engine, other: Connection
) -> None:
    """The session holds a lease and wants the run, the batch holds the run and wants the lease: the batch gives way."""
    tasks = await leased(engine, other)
    before = await deadlocks(other)
    await other.execute("SET deadlock_timeout = '1min'")
    await other.execute("BEGIN")
    await other.execute("SELECT FROM partita.task_leases WHERE run_id = $1 FOR UPDATE", tasks[0].run_id)
    reports = asyncio.create_task(report_all(engine, tasks))
    await blocked(other)
    await other.execute("SELECT FROM partita.workflow_runs WHERE id = $1 FOR UPDATE", tasks[0].run_id)
    await other.execute("COMMIT")
    assert await reports == ["applied"] * COUNT
    await happened_once(other)
    await until(_grown(other, before), what="the server has counted the deadlock")


def _grown(connection: Connection, before: int) -> Any:
    async def check() -> bool:
        return await deadlocks(connection) > before

    return check


async def test_batches_of_two_processes_in_opposite_orders_never_deadlock(
    settings: Settings, other: Connection
) -> None:
    """Statement 1 locks in the order of ids, whatever the order of arrival, also where it waits."""
    before = await deadlocks(other)
    async with opened(settings, skips_before_blocking=1) as first, opened(settings, skips_before_blocking=1) as second:
        runs = await start_many(first, support.APPROVAL, 40)
        for number in range(5):
            there = [first.apply(run_id, support.signal(f"one-{number}", name="x")) for run_id in runs]
            back = [second.apply(run_id, support.signal(f"two-{number}", name="x")) for run_id in reversed(runs)]
            replies = await asyncio.gather(*there, *back)
            assert {reply.outcome for reply in replies} == {"applied"}
    assert await other.fetchval("SELECT count(*) FROM partita.workflow_events") == 400
    assert await deadlocks(other) == before


async def test_a_session_that_is_terminated_under_a_batch_costs_no_event(engine: Engine, other: Connection) -> None:
    tasks = await leased(engine, other)
    await other.execute("BEGIN; LOCK TABLE partita.run_history IN ACCESS EXCLUSIVE MODE")
    reports = asyncio.create_task(report_all(engine, tasks))
    await blocked(other)
    ended = await other.fetchval(
        "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity "
        "WHERE wait_event_type = 'Lock' AND datname = current_database()"
    )
    assert ended == 1
    await other.execute("COMMIT")
    assert await reports == ["applied"] * COUNT
    await happened_once(other)


@pytest.fixture
async def proxy(settings: Settings) -> AsyncIterator[Proxy]:
    async with proxy_to(settings.database.url) as proxy:
        yield proxy


@pytest.mark.parametrize("loss", [Loss.ANSWER, Loss.REQUEST])
async def test_a_batch_whose_commit_is_lost_happens_once(
    settings: Settings, proxy: Proxy, other: Connection, loss: Loss
) -> None:
    async with opened(replace(settings, database=replace(settings.database, url=proxy.url))) as behind:
        tasks = await leased(behind, other)
        proxy.loss = loss
        assert await report_all(behind, tasks) == ["applied"] * COUNT
        assert proxy.lost == 1
    await happened_once(other)
