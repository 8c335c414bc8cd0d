"""Runs that change between what a batch's first statement sees and what it locks: nobody decides on what is old.

The statement is stopped in between, by an advisory lock that is asked for once its moment has been taken and before it
locks a run.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, Final, TypeAlias
from uuid import UUID

import asyncpg
import pytest

from partita.domain.payload import Json
from partita.domain.state.events import CancelRequested
from partita.engine import ClaimedTask, Engine, ReportReply, opening
from partita.settings import Settings
from tests.engine import support
from tests.engine.support import OFFER, blocked, claim, count, done, opened, start, start_many, status
from tests.engine.test_batches import statements

Connection: TypeAlias = "asyncpg.Connection[Any]"
GATE: Final = 7
STOP: Final = "(SELECT pg_advisory_xact_lock_shared(7)::text) IS NOT NULL AND "
SUMS: Final = {
    "nodes": [
        *(support.task(f"n{number}", input={"number": number}) for number in range(4)),
        support.task("join", "n0", "n1", "n2", "n3", input={"all": "${nodes.n0.output + nodes.n3.output}"}),
        support.task("end", "join"),
    ]
}
"""A join that reads what went before it."""


def stop_at_gate(engine: Engine) -> None:
    """Let this engine's opening statements wait at the gate, between their moment and their locks."""
    months = engine.database.months
    for sql in (months.parents, months._own):
        text = sql("open_reports")
        head, tail = text.split("\n    WHERE ", 1)
        assert head.startswith("WITH locked AS MATERIALIZED (\n    SELECT id, ctid AS place FROM ")
        sql._texts["open_reports"] = f"{head}\n    WHERE {STOP}{tail}"


class Gate:
    """Closed by a session of its own while the block lasts."""

    def __init__(self, engine: Engine, settings: Settings) -> None:
        self._engine = engine
        self._settings = settings
        self._before = engine.coordinator.transactions

    @asynccontextmanager
    async def closed(self) -> AsyncIterator[None]:
        """Nobody passes meanwhile."""
        async with support.connected(self._settings) as keeper:
            await keeper.execute("SELECT pg_advisory_lock($1)", GATE)
            yield
            await keeper.execute("SELECT pg_advisory_unlock($1)", GATE)

    async def passed(self, *reports: asyncio.Task[ReportReply]) -> list[ReportReply]:
        """The answers, which took one transaction: none went wrong and was tried again."""
        replies = await asyncio.gather(*reports)
        assert self._engine.coordinator.transactions - self._before == 1
        return replies


@pytest.fixture
async def stopped(direct: Settings, other: Connection) -> AsyncIterator[Engine]:
    """An engine whose reports stop at the gate; what it has to know of definitions it knows."""
    async with opened(direct) as engine:
        await start(engine, support.CHAIN, name="warm-up")
        (first,) = await claim(other)
        assert (await engine.report(done(first))).outcome == "applied"
        await claim(other)
        stop_at_gate(engine)
        yield engine


async def test_the_other_predecessor_of_a_join_ends_before_the_lock(
    stopped: Engine, engine: Engine, direct: Settings, other: Connection
) -> None:
    run_id = await start(stopped, support.DIAMOND)
    left, right = await claim(other)
    gate = Gate(stopped, direct)
    async with gate.closed():
        report = asyncio.create_task(stopped.report(done(right), OFFER))
        await blocked(other)
        assert (await engine.report(done(left), OFFER)).next is None
    (reply,) = await gate.passed(report)
    assert reply.next is not None, "the first one was seen"
    assert reply.next.node == "join"
    assert (await engine.report(done(reply.next))).outcome == "applied"
    assert await status(other, run_id) == "Succeeded"


async def test_a_cancel_before_the_lock_makes_the_report_stale(
    stopped: Engine, engine: Engine, direct: Settings, other: Connection
) -> None:
    run_id = await start(stopped, support.CHAIN)
    (task,) = await claim(other, run_id)
    gate = Gate(stopped, direct)
    async with gate.closed():
        report = asyncio.create_task(stopped.report(done(task), OFFER))
        await blocked(other)
        await engine.apply(run_id, CancelRequested())
    (reply,) = await gate.passed(report)
    assert reply.outcome == "stale"
    assert await status(other, run_id) == "Cancelled"
    assert await count(other, "task_leases", run_id) == await count(other, "ready_tasks", run_id) == 0


async def test_the_same_report_before_the_lock_is_applied_once(
    stopped: Engine, engine: Engine, direct: Settings, other: Connection
) -> None:
    run_id = await start(stopped, support.CHAIN)
    (task,) = await claim(other, run_id)
    gate, sent = Gate(stopped, direct), done(task, request_id=task.lease_id)
    async with gate.closed():
        report = asyncio.create_task(stopped.report(sent, OFFER))
        await blocked(other)
        first = await engine.report(sent, OFFER)
    (second,) = await gate.passed(report)
    assert (first.outcome, second.outcome) == ("applied", "already_applied")
    assert first.next is not None
    assert second.next is not None
    assert first.next.lease_id == second.next.lease_id
    assert await count(other, "task_leases", run_id) == 1


async def test_a_lease_that_was_given_before_the_lock_is_ended(
    stopped: Engine, direct: Settings, other: Connection
) -> None:
    run_id = await start(stopped, support.CHAIN)
    gate = Gate(stopped, direct)
    async with support.connected(direct) as claimer:
        await claimer.execute("BEGIN")
        (task,) = await claim(claimer, run_id)
        async with gate.closed():
            report = asyncio.create_task(stopped.report(done(task), OFFER))
            await blocked(other)
            await claimer.execute("COMMIT")
    assert [reply.outcome for reply in await gate.passed(report)] == ["applied"]


@pytest.mark.parametrize("end", ["COMMIT", "ROLLBACK"])
async def test_who_locked_a_run_and_changed_nothing_is_no_reason_to_read_again(
    stopped: Engine, direct: Settings, other: Connection, end: str
) -> None:
    run_id = await start(stopped, support.CHAIN)
    (task,) = await claim(other, run_id)
    gate = Gate(stopped, direct)
    with statements(stopped) as sent:
        async with support.connected(direct) as holder, gate.closed():
            report = asyncio.create_task(stopped.report(done(task), OFFER))
            await blocked(other)
            await support.lock_run(holder, run_id)
            if end == "ROLLBACK":
                await holder.execute("UPDATE partita.workflow_runs SET active = 99 WHERE id = $1", run_id)
            await holder.execute(end)
        (reply,) = await gate.passed(report)
    assert reply.outcome == "applied"
    assert reply.next is not None
    assert reply.next.node == "b"
    assert not [text for text in sent if text.startswith("SELECT id FROM")], "it was not locked once more"


async def test_only_the_run_that_changed_is_read_again(
    stopped: Engine, engine: Engine, direct: Settings, other: Connection
) -> None:
    moved, still = await start_many(stopped, SUMS, 2)
    tasks = await claim(other)
    one, two = ([task for task in tasks if task.run_id == run_id] for run_id in (moved, still))
    gate = Gate(stopped, direct)
    async with gate.closed():
        reports = [asyncio.create_task(stopped.report(done(task, 1), OFFER)) for task in (one[0], *two)]
        await blocked(other)
        for task in one[1:]:
            await engine.report(done(task, 1), OFFER)
    replies = await gate.passed(*reports)
    assert {reply.outcome for reply in replies} == {"applied"}
    joins = [reply.next for reply in replies if reply.next is not None]
    assert sorted((task.run_id, task.node) for task in joins) == sorted([(moved, "join"), (still, "join")])
    assert {str(task.input.value) for task in joins} == {"{'all': 2}"}


@pytest.mark.parametrize("seed", range(3))
async def test_processes_that_compete_for_few_runs_end_them_as_with_a_statement_each(
    settings: Settings, other: Connection, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    results = []
    for few in (opening.FEW, 0):
        monkeypatch.setattr(opening, "FEW", few)
        async with AsyncExitStack() as stack:
            engines = [await stack.enter_async_context(opened(settings)) for _ in range(4)]
            runs = await start_many(engines[0], SUMS, 6)
            await work(engines, other, random.Random(seed))  # noqa: S311  # a repeatable order, no secret
            results.append([await told(other, run_id) for run_id in runs])
    assert results[0] == results[1]
    assert {result[0] for result in results[0]} == {"Succeeded"}


async def work(engines: list[Engine], connection: Connection, order: random.Random) -> None:
    """Report every task twice, by two engines at once, until nothing is left."""
    todo = await claim(connection)
    while todo:
        order.shuffle(todo)
        replies = await asyncio.gather(*(report_twice(order.sample(engines, 2), task) for task in todo))
        todo = [reply.next for reply in replies if reply.next is not None] + await claim(connection)


async def report_twice(engines: list[Engine], task: ClaimedTask) -> ReportReply:
    """One of the two takes effect, and both tell the same next task."""
    report = done(task, 1, request_id=task.lease_id)
    first, second = await asyncio.gather(*(engine.report(report, OFFER) for engine in engines))
    assert sorted((first.outcome, second.outcome)) == ["already_applied", "applied"]
    assert (first.next and first.next.lease_id) == (second.next and second.next.lease_id)
    return first


async def told(connection: Connection, run_id: UUID) -> tuple[str, Json, Json]:
    """What became of a run, without times and ids."""
    tasks = await connection.fetch(
        "SELECT node, state, attempt, edges_settled, edges_live, input::text, output::text "
        "FROM partita.task_instances WHERE run_id = $1 ORDER BY node",
        run_id,
    )
    events = await connection.fetch(
        "SELECT event, node, attempt FROM partita.run_history WHERE run_id = $1 ORDER BY event, node, attempt", run_id
    )
    return await status(connection, run_id), [tuple(task) for task in tasks], [tuple(event) for event in events]
