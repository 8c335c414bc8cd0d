"""A COMMIT whose answer is lost: applied once, and the caller is told what really happened."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any, TypeAlias
from uuid import uuid4

import asyncpg
import pytest

from partita.engine import Engine, StartRequest
from partita.settings import Settings
from tests.engine import support
from tests.engine.proxy import Loss, Proxy, proxy_to
from tests.engine.support import OFFER, blocked, claim, count, done, lock_run, opened, start, status

Connection: TypeAlias = "asyncpg.Connection[Any]"


@pytest.fixture
async def proxy(settings: Settings) -> AsyncIterator[Proxy]:
    async with proxy_to(settings.database.url) as proxy:
        yield proxy


@pytest.fixture
async def behind(settings: Settings, proxy: Proxy) -> AsyncIterator[Engine]:
    """An engine whose connections go through the proxy."""
    async with opened(replace(settings, database=replace(settings.database, url=proxy.url))) as engine:
        yield engine


@pytest.mark.parametrize("loss", [Loss.ANSWER, Loss.REQUEST])
async def test_a_report_is_applied_once_and_its_worker_gets_the_next_task(
    behind: Engine, proxy: Proxy, other: Connection, loss: Loss
) -> None:
    run_id = await start(behind, support.CHAIN)
    (task,) = await claim(other)
    proxy.loss = loss
    reply = await behind.report(done(task), OFFER)
    assert proxy.lost == 1
    assert reply.outcome == "applied"
    assert reply.next is not None
    assert reply.next.node == "b"
    completed = "SELECT count(*) FROM partita.run_history WHERE event = 'TaskCompleted'"
    assert await other.fetchval(completed) == 1
    assert await count(other, "task_leases", run_id) == 1
    assert (await behind.report(done(reply.next))).outcome == "applied"


@pytest.mark.parametrize("loss", [Loss.ANSWER, Loss.REQUEST])
async def test_a_start_is_applied_once(behind: Engine, proxy: Proxy, other: Connection, loss: Loss) -> None:
    await behind.deploy(support.NAMESPACE, "order", support.CHAIN)
    proxy.loss = loss
    reply = await behind.start(StartRequest(namespace=support.NAMESPACE, definition="order"))
    assert proxy.lost == 1
    assert reply.created
    assert await other.fetchval("SELECT count(*) FROM partita.workflow_runs") == 1
    assert await other.fetchval("SELECT count(*) FROM partita.ready_tasks") == 1


async def test_after_a_failover_the_report_is_sent_again_and_its_fence_tells_what_happened(
    behind: Engine, proxy: Proxy, other: Connection
) -> None:
    """A promoted standby may give the same transaction id to something else, so the id is not asked for."""
    await start(behind, support.CHAIN)
    (task,) = await claim(other)
    transactor = behind.coordinator._lanes[0]._transactor
    transactor._timeline = (transactor._timeline[0], "00000000")
    proxy.loss = Loss.ANSWER
    reply = await behind.report(done(task), OFFER)
    assert reply.outcome == "already_applied"
    assert reply.next is not None
    assert reply.next.node == "b"


async def test_a_report_sent_again_by_its_worker_is_answered_with_the_task_that_was_handed_on(
    engine: Engine, other: Connection
) -> None:
    await start(engine, support.CHAIN)
    (task,) = await claim(other)
    report = done(task)
    first = await engine.report(report, OFFER)
    again = await engine.report(report, OFFER)
    assert (first.outcome, again.outcome) == ("applied", "already_applied")
    assert first.next is not None
    assert again.next is not None
    assert again.next.lease_id == first.next.lease_id
    assert again.next.node == "b"


async def test_a_session_that_is_terminated_in_its_transaction_is_replaced_and_the_batch_sent_again(
    engine: Engine, other: Connection
) -> None:
    run_id = await start(engine, support.CHAIN)
    (task,) = await claim(other)
    await other.execute("BEGIN; LOCK TABLE partita.run_history IN ACCESS EXCLUSIVE MODE")
    report = asyncio.create_task(engine.report(done(task)))
    await blocked(other)
    ended = await other.fetchval(
        "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity "
        "WHERE wait_event_type = 'Lock' AND datname = current_database()"
    )
    assert ended == 1
    await other.execute("COMMIT")
    assert (await report).outcome == "applied"
    assert await count(other, "run_history", run_id) == 1


async def test_a_worker_that_was_overtaken_is_told_so(engine: Engine, other: Connection) -> None:
    run_id = await start(engine, support.CHAIN)
    (task,) = await claim(other)
    assert (await engine.report(done(task, lease_id=uuid4()))).outcome == "stale"
    assert (await engine.report(done(task, attempt=2))).outcome == "stale"
    assert (await engine.report(done(task))).outcome == "applied"
    assert (await engine.report(done(task, worker_id="somebody-else"))).outcome == "stale"
    assert (await engine.report(done(task))).outcome == "already_applied"
    assert await status(other, run_id) == "Running"


async def test_one_report_sent_twice_at_once_counts_once(engine: Engine, other: Connection) -> None:
    run_id = await start(engine, support.CHAIN)
    (task,) = await claim(other)
    await lock_run(other, run_id)
    replies = [asyncio.create_task(engine.report(done(task))) for _ in range(2)]
    await blocked(other)
    await other.execute("COMMIT")
    assert sorted(reply.outcome for reply in await asyncio.gather(*replies)) == ["already_applied", "applied"]
    assert [one.node for one in await claim(other)] == ["b"]
