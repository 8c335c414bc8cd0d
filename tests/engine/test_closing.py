"""The stages of a run's end, on the database: what is stored between them, and that nothing is left after them."""

from __future__ import annotations

import asyncio
import json
from typing import Any, TypeAlias
from uuid import UUID

import asyncpg
import pytest

from partita.domain.payload import Json
from partita.domain.state.effects import TimerKey
from partita.domain.state.events import CancelRequested, ResumeRequested, SuspendRequested
from partita.domain.state.rows import ErrorInfo, TimerKind
from partita.engine import ClaimedTask, Engine
from tests.engine import support
from tests.engine.support import claim, count, done, start, status

Connection: TypeAlias = "asyncpg.Connection[Any]"
SCHEDULING = ("ready_tasks", "task_leases", "timers", "waits", "run_inbox")
DRAIN = TimerKey(TimerKind.DRAIN, "", 0)


def undoable(name: str, *after: str) -> Json:
    """A task with an undo."""
    undo = {"task": {"type": "noop"}, "input": {"i": "${input.v}", "o": "${output.v}"}}
    return support.task(name, *after, input={"v": name}, undo=undo)


SAGA: Json = {
    "nodes": [undoable("a"), undoable("b", "a"), support.task("c", "b")],
    "output": {"v": "${nodes.a.output.v}"},
    "finally": {
        "timeout": "5m",
        "nodes": [
            support.task("audit", input={"s": "${run.status}"}),
            support.task("last", "audit", input={"o": "${run.output}", "r": "${run.reason}"}),
        ],
    },
}


async def one(other: Connection, name: str) -> ClaimedTask:
    """The only task that is ready."""
    (task,) = await claim(other)
    assert task.node == name
    return task


async def input_of(other: Connection, task: ClaimedTask) -> Json:
    """The stored input of a task."""
    statement = "SELECT input FROM partita.task_instances WHERE run_id = $1 AND node = $2 AND index = $3"
    return json.loads(await other.fetchval(statement, task.run_id, task.node, task.index))


async def nothing_is_left(other: Connection, run_id: UUID) -> None:
    """No row of the scheduling tables is the run's."""
    assert {table: await count(other, table, run_id) for table in SCHEDULING} == dict.fromkeys(SCHEDULING, 0)


async def ended(other: Connection, run_id: UUID) -> tuple[str, str, int, int, int]:
    """Status, reason and counters of a run that has ended."""
    await nothing_is_left(other, run_id)
    statement = "SELECT status, reason, done, total, active FROM partita.workflow_runs WHERE id = $1"
    row = await other.fetchrow(statement, run_id)
    assert row is not None
    return tuple(row)


async def failed_at_c(engine: Engine, other: Connection) -> UUID:
    """A run of the saga whose ``c`` has failed."""
    run_id = await start(engine, SAGA)
    for name in ("a", "b"):
        await engine.report(done(await one(other, name), {"v": name.upper()}))
    await engine.report(done(await one(other, "c"), output=None, error=ErrorInfo("boom", "no")))
    return run_id


async def test_a_failed_run_undoes_and_runs_finally(engine: Engine, other: Connection) -> None:
    run_id = await failed_at_c(engine, other)
    for name in ("b", "a"):
        task = await one(other, f"{name}~undo")
        assert await input_of(other, task) == {"i": name, "o": name.upper()}
        assert (await engine.report(done(task))).outcome == "applied"
    audit = await one(other, "audit")
    assert await input_of(other, audit) == {"s": "Failed"}
    assert [row["kind"] for row in await other.fetch("SELECT kind FROM partita.timers")] == ["deadline"]
    await engine.report(done(audit))
    last = await one(other, "last")
    assert await input_of(other, last) == {"o": None, "r": "NodeFailed"}
    await engine.report(done(last))
    assert await ended(other, run_id) == ("Failed", "NodeFailed", 5, 5, 0)
    lines = await other.fetch("SELECT event FROM partita.run_history WHERE run_id = $1 ORDER BY seq", run_id)
    assert [line["event"] for line in lines if line["event"].endswith(("Started", "Finished"))] == [
        "UndoStarted", "FinallyStarted", "RunFinished",
    ]  # fmt: skip  # in one line


async def test_a_success_shows_its_output_to_every_node_of_finally(engine: Engine, other: Connection) -> None:
    run_id = await start(engine, SAGA)
    for name in ("a", "b", "c", "audit"):
        await engine.report(done(await one(other, name), {"v": name}))
    last = await one(other, "last")
    assert await input_of(other, last) == {"o": {"v": "a"}, "r": ""}
    await engine.report(done(last))
    assert await ended(other, run_id) == ("Succeeded", "", 5, 5, 0)
    output = await other.fetchval("SELECT output_json FROM partita.workflow_runs WHERE id = $1", run_id)
    assert json.loads(output) == {"v": "a"}


async def test_an_attempt_in_flight_is_waited_for_until_the_timer_fires(engine: Engine, other: Connection) -> None:
    node = support.task("a", undo={"task": {"type": "noop"}, "input": {"o": "${output}"}})
    run_id = await start(engine, {"nodes": [node, support.task("x")]})
    a, x = sorted(await claim(other), key=lambda task: task.node)
    await engine.report(done(x, output=None, error=ErrorInfo("boom", "no")))
    assert (await status(other, run_id), await count(other, "task_leases", run_id)) == ("Running", 1)
    assert (await engine.coordinator.timer_due(run_id, DRAIN)).outcome == "stale", "not yet due"
    await other.execute("UPDATE partita.timers SET fire_at = clock_timestamp()")
    assert (await engine.coordinator.timer_due(run_id, DRAIN)).outcome == "applied"
    assert (await engine.report(done(a, {"v": 1}))).outcome == "stale"
    undo = await one(other, "a~undo")
    assert await input_of(other, undo) == {"o": None}
    await engine.report(done(undo))
    assert await ended(other, run_id) == ("Failed", "NodeFailed", 2, 2, 0)


@pytest.mark.parametrize("reached", ["drain", "undo", "finally"])
@pytest.mark.parametrize("suspended", [False, True])
async def test_cancel_now_leaves_nothing_in_any_stage(
    engine: Engine, other: Connection, reached: str, suspended: bool
) -> None:
    if reached == "drain":
        run_id = await start(engine, {"nodes": [undoable("a"), support.task("x")]})
        _, x = sorted(await claim(other), key=lambda task: task.node)
        await engine.report(done(x, output=None, error=ErrorInfo("boom", "no")))
    elif reached == "undo":
        run_id = await failed_at_c(engine, other)
    else:
        run_id = await start(engine, SAGA)
        for name in ("a", "b", "c"):
            await engine.report(done(await one(other, name), {"v": name}))
    if suspended:
        await engine.apply(run_id, SuspendRequested())
    assert (await engine.apply(run_id, CancelRequested(mode="Now"))).outcome == "applied"
    assert (await ended(other, run_id))[0] == "Cancelled"


async def test_a_suspended_undo_goes_on_where_it_stood(engine: Engine, other: Connection) -> None:
    run_id = await failed_at_c(engine, other)
    undo = await one(other, "b~undo")
    await engine.apply(run_id, SuspendRequested())
    await engine.report(done(undo))
    assert await claim(other) == []
    await engine.apply(run_id, ResumeRequested())
    await one(other, "a~undo")


async def test_nodes_that_were_cancelled_by_name_stay_so(engine: Engine, other: Connection) -> None:
    run_id = await start(engine, support.CHAIN)
    assert (await engine.apply(run_id, CancelRequested(nodes=("b",)))).outcome == "applied"
    assert (await engine.apply(run_id, CancelRequested(nodes=("b",)))).outcome == "already_applied"
    await engine.report(done(await one(other, "a")))
    assert (await ended(other, run_id))[:4] == ("Succeeded", "", 3, 3)
    states = await other.fetch("SELECT node, state FROM partita.task_instances WHERE run_id = $1 ORDER BY node", run_id)
    assert [tuple(row) for row in states] == [("a", "Completed"), ("b", "Cancelled"), ("c", "Skipped")]


async def test_a_success_that_shares_a_transaction_with_the_failure_before_it_is_undone(
    engine: Engine, other: Connection
) -> None:
    run_id = await start(engine, {"nodes": [support.task("a"), undoable("b")]})
    a, b = sorted(await claim(other), key=lambda task: task.node)
    before = engine.coordinator.transactions
    failed = engine.report(done(a, output=None, error=ErrorInfo("boom", "no")))
    answers = await asyncio.gather(failed, engine.report(done(b, {"v": "B"})))
    assert engine.coordinator.transactions == before + 1
    assert [answer.outcome for answer in answers] == ["applied", "applied"]
    undo = await one(other, "b~undo")
    assert await input_of(other, undo) == {"i": "b", "o": "B"}
    await engine.report(done(undo))
    assert (await ended(other, run_id))[:2] == ("Failed", "NodeFailed")
