"""What others do between a process's transactions on a run that it remembers, and while its statement is under way."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any, Final, TypeAlias

import asyncpg
import pytest

from partita.domain.ids import Month
from partita.domain.state.effects import TimerKey
from partita.domain.state.events import CancelRequested
from partita.domain.state.rows import ErrorInfo, NodeKey, TimerKind
from partita.engine import ClaimedTask, memory
from partita.engine.lane import Lane
from partita.engine.memory import Remembered
from partita.settings import Settings
from partita.store.direct import _text
from tests.engine import support
from tests.engine.proxy import Loss, Proxy, proxy_to
from tests.engine.support import CHAIN, NAMESPACE, OFFER, claim, count, done, opened, status
from tests.engine.test_direct import WHOLE, Lone, history_of, one
from tests.engine.test_opening import STOP, Gate
from tests.waiting import until

Connection: TypeAlias = "asyncpg.Connection[Any]"
PLACE: Final = "SELECT ctid FROM partita.task_instances WHERE run_id = $1 AND node = $2"
HELD: Final = """
SELECT relname::text FROM pg_locks JOIN pg_class ON pg_class.oid = relation
WHERE granted AND relnamespace = 'partita'::regnamespace
  AND pid IN (SELECT pid FROM pg_stat_activity WHERE pg_backend_pid() = ANY (pg_blocking_pids(pid)))
"""
"""What those who wait for this session have locked."""
BRANCHES: Final = {"nodes": [support.task("l"), support.task("r"), support.task("m", "l", "r")]}
REMOTE: Final = {"nodes": [support.task("a"), support.task("b", "a"), support.task("c", "b"), support.task("d", "c")]}
REMOTE["nodes"][-1]["input"] = {"of": "${nodes.a.output}"}
"""Its last task needs what a transaction of the middle does not read."""


@pytest.fixture
async def way(direct: Settings) -> AsyncIterator[tuple[Lone, Proxy]]:
    """One whose statements may be lost on their way."""
    async with proxy_to(direct.database.url) as proxy:
        settings = replace(direct, database=replace(direct.database, url=proxy.url))
        async with opened(settings) as engine:
            lone = Lone(engine)
            await engine.deploy(NAMESPACE, "order", CHAIN)
            for _ in range(2):  # prepares what will be lost
                await lone.finish(await lone.start())
            proxy.statements = True
            yield lone, proxy
            assert proxy.lost == 1
            assert lone.hands.promised == 0


@pytest.fixture
async def lone(direct: Settings) -> AsyncIterator[Lone]:
    """One that has started a run, which told it the state of the engine."""
    async with opened(direct) as engine:
        lone = Lone(engine)
        await engine.deploy(NAMESPACE, "order", CHAIN)
        await lone.finish(await lone.start())
        yield lone
        assert lone.hands.promised == 0


def known(lone: Lone, task: ClaimedTask) -> Remembered:
    """What is remembered of a task's run."""
    return lone.memory._runs[task.run_id]


@pytest.mark.parametrize("runs", [0, 7], ids=["a custom plan", "a generic plan"])
async def test_the_lock_on_all_runs_is_the_first_one(lone: Lone, other: Connection, runs: int) -> None:
    """Whoever exchanges a month's tables, or migrates them, has that one before he asks for a month's own."""
    for _ in range(runs):
        await lone.finish(await lone.start())
    task, direct = await lone.start(), lone.direct
    async with other.transaction():
        await other.execute("LOCK TABLE ONLY partita.workflow_runs IN ACCESS EXCLUSIVE MODE")
        reporting = asyncio.ensure_future(lone.report(task))
        await support.blocked(other)
        assert [row[0] for row in await other.fetch(HELD)] == []
    await reporting
    assert lone.direct - direct == 1


async def test_what_was_asked_for_in_vain_is_not_taken_for_read(
    lone: Lone, other: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The decision is given up, and the usual transaction skips the run, which somebody holds who changes nothing."""
    await lone.engine.deploy(NAMESPACE, "order", REMOTE)
    task = await lone.start()
    for output in ("stored", "another"):
        lone.memory.forget([task.run_id])  # as if another process had come in between
        task = await lone.report(task, output)
    read = known(lone, task).slice.outputs
    before, after = set(read), [set[NodeKey]()]

    async def release(*_: object) -> None:
        after.append(set(known(lone, task).slice.outputs))
        await other.execute("COMMIT")

    monkeypatch.setattr(Lane, "_pause", release)
    await support.lock_run(other, task.run_id)
    assert (await lone.report(task)).input.value == {"of": "stored"}
    assert after == [set(), before]


async def test_tasks_that_were_moved_to_each_others_places_keep_their_ends(lone: Lone, other: Connection) -> None:
    """Their table is rewritten in another order (CLUSTER, pg_repack); the run's own row stays as it was."""
    await lone.engine.deploy(NAMESPACE, "order", BRANCHES)
    table = f"partita.task_instances_{Month.of(await other.fetchval('SELECT clock_timestamp()')).suffix}"
    await other.execute(f"TRUNCATE {table}")
    task = await lone.start()
    place = await other.fetchval(PLACE, task.run_id, "l")
    await other.execute(
        f"CREATE TEMP TABLE rewritten AS SELECT * FROM {table}; TRUNCATE {table}; "  # noqa: S608  # names of this file
        f"INSERT INTO {table} SELECT * FROM rewritten ORDER BY node DESC"
    )
    assert await other.fetchval(PLACE, task.run_id, "r") == place
    assert (await lone.engine.report(done(task, "left"))).outcome == "applied"
    rows = await other.fetch("SELECT node, state, output FROM partita.task_instances WHERE run_id = $1", task.run_id)
    assert {tuple(row) for row in rows if row[0] != "m"} == {("l", "Completed", '"left"'), ("r", "Queued", None)}


@pytest.mark.parametrize("change", ["report", "cancel", "sweep", "hold"])
async def test_what_is_committed_after_the_statements_moment_is_no_surprise(
    lone: Lone, direct: Settings, other: Connection, change: str
) -> None:
    """The statement is stopped once its moment has been taken and before it locks the run."""
    await lone.engine.deploy(NAMESPACE, "order", BRANCHES)
    stop_at_gate(lone)
    task = await lone.start()
    (right,) = await claim(other, task.run_id)
    before, usual = lone.direct, lone.usual
    async with opened(direct) as second, Gate(lone.engine, direct).closed():
        reporting = asyncio.ensure_future(lone.engine.report(done(task, "left"), OFFER))
        await support.blocked(other)
        match change:
            case "report":
                assert (await second.report(done(right, "right"), OFFER)).outcome == "applied"
            case "cancel":
                await second.apply(task.run_id, CancelRequested(mode="Now"))
            case "sweep":
                await other.execute("UPDATE partita.task_leases SET deadline_at = '2000-01-01' WHERE node = 'l'")
                await second.coordinator.attempt_timed_out(task.run_id, NodeKey("l", 0), 1, task.lease_id)
            case _:
                await support.lock_run(other, task.run_id)
                await other.execute("ROLLBACK")
    reply = await reporting
    assert (lone.direct - before, lone.usual - usual) == ((1, 0) if change == "hold" else (0, 1))
    assert reply.outcome == ("applied" if change in ("report", "hold") else "stale")
    assert (reply.next is not None and reply.next.node == "m") == (change == "report")
    ends = {"report": 2, "cancel": 0, "sweep": 0, "hold": 1}
    done_ = "SELECT count(*) FROM partita.run_history WHERE run_id = $1 AND event = 'TaskCompleted'"
    assert await other.fetchval(done_, task.run_id) == ends[change]


def stop_at_gate(lone: Lone) -> None:
    """Let this engine's statements wait at the gate, between their moment and their locks."""
    sql = lone.engine.database.months._own
    head, tail = sql("run_proof").split("\nWHERE ", 1)
    sql._texts["run_proof"] = f"{head}\nWHERE {STOP}{tail}"
    _text.cache_clear()


async def test_a_session_that_has_ended_proves_nothing_any_more(lone: Lone, other: Connection) -> None:
    """Its successor may lead to another server, where the same place and transaction are something else's."""
    task = await lone.start()
    lost = lone._transactor._connection._connection
    assert lost is not None
    await other.execute("SELECT pg_terminate_backend($1)", lost.get_server_pid())

    async def closed() -> bool:
        return lost.is_closed()

    await until(closed, what="the connection is closed")
    direct, usual = lone.direct, lone.usual
    await lone.report(task)
    assert (lone.direct - direct, lone.usual - usual) == (0, 1)


@pytest.mark.parametrize("loss", [Loss.REQUEST, Loss.ANSWER])
async def test_a_start_that_was_lost_is_made_once(way: tuple[Lone, Proxy], other: Connection, loss: Loss) -> None:
    lone, proxy = way
    proxy.loss = loss
    reply = await lone.engine.start(one())
    await asyncio.sleep(0)  # those who wait for the answer hear of it
    assert (reply.created, reply.status) == (True, "Running")
    (lease,) = await other.fetch("SELECT claim_id, node FROM partita.task_leases WHERE run_id = $1", reply.run_id)
    assert await count(other, "ready_tasks", reply.run_id) == 0
    told = [task for task in lone.hands.kept if task.run_id == reply.run_id]
    assert (len(told), lease["claim_id"] in lone.hands.doubted) == ((1, False) if loss is Loss.REQUEST else (0, True))


@pytest.mark.parametrize("loss", [Loss.REQUEST, Loss.ANSWER])
@pytest.mark.parametrize("last", [False, True])
async def test_a_report_that_was_lost_is_recorded_once(
    way: tuple[Lone, Proxy], other: Connection, loss: Loss, last: bool
) -> None:
    lone, proxy = way
    task = await lone.start()
    if last:
        task = await lone.report(await lone.report(task))
    proxy.loss = loss
    reply = await lone.engine.report(done(task), OFFER)
    assert reply.outcome == ("applied" if loss is Loss.REQUEST else "already_applied")
    assert (reply.next is None) == last
    if reply.next is not None:
        await lone.finish(reply.next)
    assert await history_of(lone.engine, task.run_id) == WHOLE
    assert await count(other, "task_leases", task.run_id) == 0
    assert await status(other, task.run_id) == "Succeeded"


async def test_a_report_that_the_server_still_executes_is_recorded_once(
    way: tuple[Lone, Proxy], other: Connection
) -> None:
    """Its client is gone, and it waits for the lease that somebody looks at."""
    lone, proxy = way
    task = await lone.start()
    async with other.transaction():
        await other.execute("SELECT FROM partita.task_leases WHERE run_id = $1 FOR UPDATE", task.run_id)
        proxy.loss = Loss.CLIENT
        reporting = asyncio.ensure_future(lone.engine.report(done(task), OFFER))
        await support.blocked(other, 2)  # the lost one, and one that waits for the run
    reply = await reporting
    assert reply.outcome == "already_applied"
    assert reply.next is not None
    await lone.finish(reply.next)
    assert await history_of(lone.engine, task.run_id) == WHOLE


async def test_a_start_that_the_server_still_executes_is_made_once(way: tuple[Lone, Proxy], other: Connection) -> None:
    lone, proxy = way
    async with other.transaction():
        await other.execute("LOCK TABLE ONLY partita.workflow_runs IN ACCESS EXCLUSIVE MODE")
        proxy.loss = Loss.CLIENT
        starting = asyncio.ensure_future(lone.engine.start(one()))
        await support.blocked(other, 2)
        assert lone.hands.doubted == [], "nobody looks for the lease before it can be there"
    reply = await starting
    await asyncio.sleep(0)  # as above
    assert reply.created
    claim_id = await other.fetchval("SELECT claim_id FROM partita.task_leases WHERE run_id = $1", reply.run_id)
    assert lone.hands.doubted[-1] == claim_id, "told after it was certain"


async def test_of_attempts_that_have_ended_nothing_is_kept(lone: Lone, other: Connection) -> None:
    retry = [{"maxRetries": 100, "initialDelay": "1s", "jitter": 0}]
    await lone.engine.deploy(NAMESPACE, "order", {"nodes": [support.task("a", retry=retry), support.task("b")]})
    task, sizes = await lone.start(), []
    for _ in range(3):
        report = replace(done(task), output=None, error=ErrorInfo("boom", "failed"))
        assert (await lone.engine.report(report, OFFER)).outcome == "applied"
        await other.execute("UPDATE partita.timers SET fire_at = clock_timestamp()")
        await lone.engine.coordinator.timer_due(task.run_id, TimerKey(TimerKind.BACKOFF, "a", 0))
        task = lone.hands.kept[-1]
        sizes.append(len(known(lone, task).leases))
    assert (task.attempt, sizes) == (4, [1, 1, 1])


async def test_what_was_committed_is_answered_whatever_becomes_of_the_memory(
    lone: Lone, other: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("a defect")

    monkeypatch.setattr(memory, "_remembered", broken)
    task = await lone.start()  # by one statement, and the reports by usual transactions
    await lone.finish(task)
    assert await history_of(lone.engine, task.run_id) == WHOLE
    assert await status(other, task.run_id) == "Succeeded"
