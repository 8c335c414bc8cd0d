"""Reports of attempts that were cancelled while their run goes on: one line of history, and ``stale`` to the worker."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from typing import Any, TypeAlias
from uuid import UUID, uuid4

import asyncpg

from partita.domain.state.events import CancelRequested
from partita.domain.state.rows import ErrorInfo
from partita.engine import ClaimedTask, Engine
from tests.engine import support
from tests.engine.support import claim, count, done, start, status

Connection: TypeAlias = "asyncpg.Connection[Any]"
TWO = {"nodes": [support.task("a"), support.task("z")]}
LINES = (
    "SELECT event, node, index, attempt, who, error, details FROM partita.run_history"
    " WHERE run_id = $1 AND event = 'LateResult' ORDER BY seq"
)


async def cancelled(engine: Engine, other: Connection) -> tuple[UUID, ClaimedTask, ClaimedTask]:
    """A run that goes on with ``z`` after ``a``, which a worker has, was cancelled."""
    run_id = await start(engine, TWO)
    a, z = sorted(await claim(other), key=lambda task: task.node)
    assert (await engine.apply(run_id, CancelRequested(nodes=("a",)))).outcome == "applied"
    assert await count(other, "task_leases", run_id) == 1
    return run_id, a, z


async def test_a_late_result_is_recorded_once_and_answered_stale(engine: Engine, other: Connection) -> None:
    run_id, a, z = await cancelled(engine, other)
    report = done(a, {"v": 1})
    assert (await engine.report(report)).outcome == "stale"
    assert (await engine.report(report)).outcome == "stale", "sent again after an unknown outcome"
    assert (await engine.report(replace(report, request_id=uuid4()))).outcome == "stale"
    (line,) = await other.fetch(LINES, run_id)
    assert tuple(line)[:6] == ("LateResult", "a", 0, 1, support.WORKER, None)
    assert json.loads(line["details"]) == {"outcome": "Completed", "output": {"v": 1}}
    state = await other.fetchval("SELECT state FROM partita.task_instances WHERE run_id = $1 AND node = 'a'", run_id)
    assert state == "Cancelled"
    assert (await engine.report(done(z))).outcome == "applied"
    assert await status(other, run_id) == "Succeeded"


async def test_reports_of_one_transaction_make_one_line(engine: Engine, other: Connection) -> None:
    run_id, a, _ = await cancelled(engine, other)
    report = done(a, error=ErrorInfo("boom", "late"), output=None)
    replies = await asyncio.gather(*(engine.report(report) for _ in range(3)))
    assert {reply.outcome for reply in replies} == {"stale"}
    (line,) = await other.fetch(LINES, run_id)
    assert json.loads(line["error"]) == {"type": "boom", "message": "late"}
    assert json.loads(line["details"]) == {"outcome": "Failed"}


async def test_no_line_for_what_was_not_cancelled(engine: Engine, other: Connection) -> None:
    run_id, a, z = await cancelled(engine, other)
    assert (await engine.report(done(a, attempt=2))).outcome == "stale"
    assert (await engine.report(done(a, node="nobody"))).outcome == "stale"
    assert (await engine.report(done(a, generation=1))).outcome == "stale"
    assert (await engine.report(done(a, handed_back=True))).outcome == "stale"
    assert (await engine.report(done(z, lease_id=uuid4()))).outcome == "stale"
    assert await other.fetch(LINES, run_id) == []


async def test_no_line_after_the_end(engine: Engine, other: Connection) -> None:
    run_id, a, z = await cancelled(engine, other)
    await engine.report(done(z))
    assert (await engine.report(done(a))).outcome == "stale"
    assert (await engine.report(done(z))).outcome == "already_applied"
    assert await other.fetch(LINES, run_id) == []
