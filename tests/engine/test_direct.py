"""Lone transitions that are one statement: written under a proof, or left to the usual transaction."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, TypeAlias
from uuid import UUID

import asyncpg
import pytest

from partita.domain.errors import OutdatedError
from partita.domain.ids import Month
from partita.domain.payload import Payload
from partita.domain.state.events import SuspendRequested
from partita.engine import ClaimedTask, Engine, StartRequest
from partita.engine.direct import Direct
from partita.engine.memory import Memory
from partita.engine.requests import PROTOCOL
from partita.settings import Settings
from partita.store import direct, reads
from tests.engine import support
from tests.engine.support import CHAIN, NAMESPACE, OFFER, count, done, opened, status
from tests.engine.test_eager import Hands
from tests.waiting import until

Connection: TypeAlias = "asyncpg.Connection[Any]"


def one(**fields: Any) -> StartRequest:
    """A start."""
    return StartRequest(namespace=NAMESPACE, definition="order", **fields)


class Lone:
    """An engine whose worker idles, and how its transactions were made."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.hands = Hands(slots=100)
        engine.coordinator.idle.add(self.hands)
        self._transactor = engine.coordinator._lanes[0]._transactor
        self.pooled = engine.settings.database.pooled
        """Behind a proxy nobody knows which server the next statement meets: reports go the usual way."""

    @property
    def memory(self) -> Memory:
        """What the process remembers."""
        return self._transactor._tools.memory

    @property
    def direct(self) -> int:
        """Transactions of one statement so far."""
        statements: Direct = self._transactor._direct
        return statements.transactions

    @property
    def usual(self) -> int:
        """Other transactions so far."""
        return self._transactor._transactions

    async def start(self, **fields: Any) -> ClaimedTask:
        """A new run; its first task."""
        run_id = (await self.engine.start(one(**fields))).run_id
        task = self.hands.kept[-1]
        assert task.run_id == run_id
        return task

    async def report(self, task: ClaimedTask, output: Any = None) -> ClaimedTask:
        """Report success; the next task."""
        reply = await self.engine.report(done(task, output), OFFER)
        assert reply.outcome == "applied"
        assert reply.next is not None
        return reply.next

    async def finish(self, task: ClaimedTask) -> None:
        """Report until the run ends."""
        following: ClaimedTask | None = task
        while following is not None:
            reply = await self.engine.report(done(following), OFFER)
            assert reply.outcome == "applied"
            following = reply.next


@pytest.fixture
async def lone(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Lone]:
    """One that has started a run, which told it the state of the engine."""
    support.steady(monkeypatch)
    async with opened(settings) as engine:
        lone = Lone(engine)
        await engine.deploy(NAMESPACE, "order", CHAIN)
        await lone.finish(await lone.start())
        yield lone
        assert lone.hands.promised == 0


async def history_of(engine: Engine, run_id: UUID) -> list[tuple[int, str, str]]:
    """Its lines."""
    return [(line.seq, line.event, line.node or "") for line in await reads.history(engine.database, run_id)]


WHOLE = [
    (1, "RunStarted", ""), (2, "TaskCompleted", "a"), (3, "TaskCompleted", "b"), (4, "TaskCompleted", "c"),
    (5, "RunFinished", ""),
]  # fmt: skip


async def test_each_transition_of_a_lone_run_is_one_statement(lone: Lone, other: Connection) -> None:
    direct, usual = lone.direct, lone.usual
    task = await lone.start()
    await lone.finish(task)
    assert (lone.direct - direct, lone.usual - usual) == ((1, 3) if lone.pooled else (4, 0))
    assert await status(other, task.run_id) == "Succeeded"
    assert await history_of(lone.engine, task.run_id) == WHOLE
    assert await count(other, "task_instances", task.run_id) == 3
    assert [await count(other, table, task.run_id) for table in ("task_leases", "ready_tasks", "open_runs")] == [0] * 3
    assert await other.fetchval("SELECT status FROM partita.run_endings WHERE run_id = $1", task.run_id) == "Succeeded"


async def test_a_worker_of_another_process_needs_one_usual_transaction(lone: Lone, settings: Settings) -> None:
    task = await lone.start()
    async with opened(settings) as engine:
        second = Lone(engine)
        await second.finish(task)
        assert (second.direct, second.usual) == ((0, 3) if second.pooled else (2, 1))
    assert await history_of(lone.engine, task.run_id) == WHOLE


async def test_of_a_small_run_all_rows_are_read_at_once(lone: Lone, settings: Settings) -> None:
    """Whether d, which waits for two, has a row need not be known before c ends; it is looked up when a does."""
    nodes = [support.task("a"), support.task("x"), support.task("b", "a"), support.task("c", "b")]
    await lone.engine.deploy(NAMESPACE, "order", {"nodes": [*nodes, support.task("d", "c", "x")]})
    run_id = (await lone.start()).run_id
    (first,) = [task for task in lone.hands.kept if (task.run_id, task.node) == (run_id, "a")]
    async with opened(settings) as engine:
        second = Lone(engine)
        await second.finish(first)
        assert (second.direct, second.usual) == ((0, 3) if second.pooled else (2, 1))


async def test_a_run_that_another_process_has_changed_is_read_again(
    lone: Lone, settings: Settings, other: Connection
) -> None:
    task = await lone.start()
    async with opened(settings) as engine:
        await engine.apply(task.run_id, SuspendRequested())
    direct, usual = lone.direct, lone.usual
    reply = await lone.engine.report(done(task), OFFER)
    assert (reply.outcome, reply.next) == ("applied", None), "a suspended run starts nothing"
    assert (lone.direct - direct, lone.usual - usual) == (0, 1)
    assert await status(other, task.run_id) == "Suspended"
    assert await count(other, "task_leases", task.run_id) == 0


async def test_a_report_whose_lease_is_gone_writes_nothing(lone: Lone, other: Connection) -> None:
    task = await lone.start()
    await other.execute("DELETE FROM partita.task_leases")
    before = await other.fetchval("SELECT ctid FROM partita.workflow_runs WHERE id = $1", task.run_id)
    generation_ended = replace(done(task), handed_back=True, output=None)
    assert (await lone.engine.report(generation_ended, OFFER)).outcome == "stale"
    assert await other.fetchval("SELECT ctid FROM partita.workflow_runs WHERE id = $1", task.run_id) == before
    assert await count(other, "run_history", task.run_id) == 0


async def test_a_paused_engine_starts_runs_and_hands_nothing_over(lone: Lone, other: Connection) -> None:
    task = await lone.start()
    await other.execute("UPDATE partita.engine_state SET paused = true")
    direct = lone.direct
    reply = await lone.engine.report(done(task), OFFER)
    assert (reply.outcome, reply.next) == ("applied", None)
    started = (await lone.engine.start(one())).run_id
    assert lone.direct == direct
    assert await count(other, "ready_tasks", task.run_id) == await count(other, "ready_tasks", started) == 1


async def test_a_paused_engine_hands_over_no_new_run(lone: Lone, other: Connection) -> None:
    await other.execute("UPDATE partita.engine_state SET paused = true")
    direct = lone.direct
    started = (await lone.engine.start(one())).run_id
    assert lone.direct == direct
    assert (await count(other, "ready_tasks", started), await count(other, "task_leases", started)) == (1, 0)


async def test_a_newer_protocol_is_obeyed(lone: Lone, other: Connection) -> None:
    task = await lone.start()
    await other.execute("UPDATE partita.engine_state SET oldest_protocol = $1", PROTOCOL + 1)
    with pytest.raises(OutdatedError):
        await lone.engine.report(done(task), OFFER)
    with pytest.raises(OutdatedError):
        await lone.engine.start(one())
    assert await count(other, "run_history", task.run_id) == 0


async def test_a_definition_that_was_deleted_elsewhere_is_not_started(
    lone: Lone, settings: Settings, other: Connection
) -> None:
    async with opened(settings) as engine:
        await engine.definitions.delete(NAMESPACE, "order")
    runs = await other.fetchval("SELECT count(*) FROM partita.workflow_runs")
    with pytest.raises(Exception, match="expected a deployed definition"):
        await lone.engine.start(one())
    assert await other.fetchval("SELECT count(*) FROM partita.workflow_runs") == runs


async def test_a_month_that_has_been_given_up_takes_no_more_starts(lone: Lone, other: Connection) -> None:
    now = await other.fetchval("SELECT clock_timestamp()")
    direct = lone.direct
    await other.execute("UPDATE partita.engine_state SET retention_floor = $1", Month.of(now).plus(1).start)
    with pytest.raises(Exception, match="older months have been dropped"):
        await lone.engine.start(one())
    assert lone.direct == direct


async def test_a_process_that_is_wrong_about_the_time_asks_for_it(lone: Lone, other: Connection) -> None:
    direct = lone.direct
    for seconds in (-10, 10):
        now = await believe(lone, other, seconds)
        task = await lone.start()
        created = await other.fetchval("SELECT created_at FROM partita.workflow_runs WHERE id = $1", task.run_id)
        assert abs(created - now) < timedelta(seconds=5)
    now = await believe(lone, other, 10)
    await lone.report(task)
    ended = await other.fetchval("SELECT at FROM partita.run_history WHERE run_id = $1 AND node = 'a'", task.run_id)
    assert abs(ended - now) < timedelta(seconds=5)
    assert lone.direct == direct


async def believe(lone: Lone, other: Connection, seconds: float) -> datetime:
    """Let a process be so wrong about the database's clock; what that says."""
    now: datetime = await other.fetchval("SELECT clock_timestamp()")
    lone.memory.clock.__init__()  # type: ignore[misc]  # forgets what it has said
    lone.memory.clock.learn(now + timedelta(seconds=seconds), asyncio.get_running_loop().time())
    return now


async def test_an_attempt_ends_no_earlier_than_it_began(lone: Lone, other: Connection) -> None:
    """The process knows the clock a little late, but not less than it knew when it handed the task over."""
    task = await lone.start()
    await believe(lone, other, -3)
    direct = lone.direct
    await lone.report(task)
    assert lone.direct - direct == (0 if lone.pooled else 1)
    ends = "SELECT at >= started_at FROM partita.run_history WHERE run_id = $1 AND node = 'a'"
    assert await other.fetchval(ends, task.run_id)


async def test_only_the_remembered_version_of_a_row_proves_anything(lone: Lone) -> None:
    """Another one of the same run at the same place, as there may be once the first is gone, does not."""
    task = await lone.start()
    known = lone.memory._runs[task.run_id]
    lone.memory._runs[task.run_id] = replace(known, row=known.row._replace(xid=known.row.xid - 1))
    direct, usual = lone.direct, lone.usual
    following = await lone.report(task)
    assert (lone.direct - direct, lone.usual - usual) == (0, 1)
    await lone.report(following)
    assert lone.direct - direct == (0 if lone.pooled else 1)


@pytest.mark.parametrize("table", ["workflow_runs", "task_instances"])
async def test_rows_that_were_moved_are_found_again(lone: Lone, other: Connection, table: str) -> None:
    """VACUUM FULL leaves their transaction and changes their place. For the run that is no proof; a task that does not
    stand where it was left undoes everything."""
    for _ in range(20):  # rows before it that will be gone
        await lone.start()
    task = await lone.start()
    following = await lone.report(task)
    month = Month.of(await other.fetchval("SELECT clock_timestamp()")).suffix
    column = "run_id" if table == "task_instances" else "id"
    await other.execute(f"DELETE FROM partita.{table} WHERE {column} <> $1", task.run_id)  # noqa: S608  # of this file
    where = f"SELECT max(ctid) FROM partita.{table} WHERE {column} = $1"  # noqa: S608  # as above
    stood = await other.fetchval(where, task.run_id)

    async def moved() -> bool:
        await other.execute(f"VACUUM FULL partita.{table}_{month}")  # keeps what an old snapshot may still see
        return bool(await other.fetchval(where, task.run_id) != stood)

    await until(moved, what="rows at other places")
    direct, usual = lone.direct, lone.usual
    last = await lone.report(following)
    assert (lone.direct - direct, lone.usual - usual) == (0, 1)
    await lone.finish(last)
    assert await history_of(lone.engine, task.run_id) == WHOLE
    assert await count(other, "task_instances", task.run_id) == 3


async def test_a_document_that_a_function_changes_afterwards_is_remembered_as_it_was_stored(lone: Lone) -> None:
    spec = {"nodes": [support.task("a"), support.task("b", "a", input={"of": "${nodes.a.output}"})]}
    await lone.engine.deploy(NAMESPACE, "order", spec)
    task = await lone.start()
    output = {"total": 1}
    report = replace(done(task), output=Payload.of(output))
    kept = lone.memory._runs[task.run_id]
    reply = await lone.engine.report(report, OFFER)
    assert reply.next is not None
    output["total"] = 2
    row = lone.memory._runs[task.run_id].slice.tasks[next(iter(kept.slice.tasks))]
    assert row.output is not None
    assert row.output.value == {"total": 1}


async def test_the_statement_waits_for_those_who_exchange_a_months_tables(lone: Lone, other: Connection) -> None:
    """As every transaction on a month's own tables: its first lock is that on all runs, the first time and later."""
    task = await lone.start()
    for _ in range(2):
        async with other.transaction():
            await other.execute("LOCK TABLE ONLY partita.workflow_runs IN ACCESS EXCLUSIVE MODE")
            reporting = asyncio.ensure_future(lone.report(task))
            await support.blocked(other)
            held = await other.fetchval(
                "SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = 'partita.workflow_runs'::regclass"
            )
            assert held == 1
        direct = lone.direct
        task = await reporting
        assert lone.direct - direct in (0, 1)
    assert await count(other, "run_history", task.run_id) == 2


async def test_a_run_that_somebody_holds_is_not_waited_for(lone: Lone, other: Connection) -> None:
    task = await lone.start()
    async with other.transaction():
        await other.execute("SELECT FROM partita.workflow_runs WHERE id = $1 FOR UPDATE", task.run_id)
        usual = lone.usual
        reporting = asyncio.ensure_future(lone.engine.report(done(task), OFFER))

        async def tried() -> bool:
            return lone.usual > usual

        await until(tried, what="the usual way, after a statement that did not wait")
        assert await lone.start(), "another run meanwhile"
        assert not reporting.done()
    assert (await reporting).outcome == "applied"
    assert await count(other, "run_history", task.run_id) == 1


async def test_runs_that_have_ended_or_are_large_are_not_remembered(lone: Lone) -> None:
    assert lone.memory._runs == {}
    task = await lone.start(input={"text": "x" * 100_000})
    assert task.run_id not in lone.memory._runs
    task = await lone.start()
    await lone.report(task, output="x" * 100_000)
    assert lone.memory._runs == {}


async def test_a_statement_that_always_fails_is_told_of_once_a_minute(
    lone: Lone, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The usual transaction does instead."""

    async def fail(*_: object) -> None:
        raise asyncpg.UndefinedColumnError('column "ni" does not exist')

    monkeypatch.setattr(direct, "send", fail)
    usual = lone.usual
    for _ in range(2):
        await lone.start()
    assert lone.usual - usual == 2
    told = [record.getMessage() for record in caplog.records if record.name == "partita.engine.direct"]
    assert len(told) == 1
    assert told[0].endswith('cannot be changed by one statement, trying the usual way: column "ni" does not exist')
