"""Loops on a real database: their rows, what is made lazily, and what a long one leaves behind."""

from __future__ import annotations

import asyncio
from typing import Any, TypeAlias
from uuid import UUID

import asyncpg
import orjson
import pytest

from partita.domain.state.events import CancelRequested, ResumeRequested, SuspendRequested
from partita.engine import Engine
from tests.engine.support import claim, count, done, start, status, task
from tests.waiting import until

Connection: TypeAlias = "asyncpg.Connection[Any]"
STATES = (
    "SELECT state, count(*) FROM partita.task_instances WHERE run_id = $1 AND node = 'each' AND index >= 0 GROUP BY 1"
)


def each(count: int, **fields: Any) -> Any:
    """A forEach over so many numbers, and a task that sees its output."""
    node = {"forEach": {"items": f"${{range(0, {count})}}", **fields}, "input": {"n": "${item}", "i": "${index}"}}
    return {"nodes": [task("each", **node), task("after", "each")], "output": {"all": "${nodes.each.output}"}}


async def states(connection: Connection, run_id: UUID) -> dict[str, int]:
    """How many items are in each state."""
    return {row[0]: row[1] for row in await connection.fetch(STATES, run_id)}


async def work(engine: Engine, connection: Connection, run_id: UUID) -> int:
    """Do what is ready until nothing is, together; how much that was."""
    finished = 0
    while tasks := await claim(connection, run_id):
        await asyncio.gather(*(engine.report(done(one, one.index)) for one in tasks))
        finished += len(tasks)
    return finished


async def result(connection: Connection, run_id: UUID) -> Any:
    """The output of a run that has ended."""

    async def ended() -> bool:
        return await status(connection, run_id) in ("Succeeded", "Failed", "Cancelled")

    await until(ended, what=f"the end of run {run_id}")
    text = await connection.fetchval("SELECT output_json FROM partita.workflow_runs WHERE id = $1", run_id)
    return orjson.loads(text) if text else None


@pytest.mark.parametrize("items", [3, 1_200])
async def test_every_item_runs_once_and_gives_its_place(engine: Engine, other: Connection, items: int) -> None:
    run_id = await start(engine, each(items, maxParallel=100))
    assert await work(engine, other, run_id) == items + 1
    assert await result(other, run_id) == {"all": list(range(items))}
    assert await states(other, run_id) == {"Completed": items}
    inputs = await other.fetch(
        "SELECT input FROM partita.task_instances WHERE run_id = $1 AND node = 'each' AND index >= 0 ORDER BY index",
        run_id,
    )
    assert [orjson.loads(row[0]) for row in inputs] == [{"n": n, "i": n} for n in range(items)]
    for table in ("ready_tasks", "task_leases", "timers", "waits", "run_inbox"):
        assert await count(other, table, run_id) == 0, table


async def test_a_window_larger_than_a_chunk_is_filled_by_messages(engine: Engine, other: Connection) -> None:
    run_id = await start(engine, each(1_200, maxParallel=1_200))

    async def filled() -> bool:
        return await count(other, "ready_tasks", run_id) == 1_200

    await until(filled, what="all items are ready")
    assert await work(engine, other, run_id) == 1_201
    assert await result(other, run_id) == {"all": list(range(1_200))}


async def test_a_loop_is_suspended_resumed_and_cancelled(engine: Engine, other: Connection) -> None:
    run_id = await start(engine, each(10, maxParallel=2))
    held = await claim(other, run_id)
    await engine.apply(run_id, SuspendRequested())
    for one in held:
        await engine.report(done(one, one.index))
    assert await claim(other, run_id) == []
    await engine.apply(run_id, ResumeRequested())
    assert [one.index for one in await claim(other, run_id)] == [2, 3]
    await engine.apply(run_id, CancelRequested())
    assert await status(other, run_id) == "Cancelled"
    assert await states(other, run_id) == {"Completed": 2, "Cancelled": 8}


async def test_a_repeat_goes_on_until_it_has_enough(engine: Engine, other: Connection) -> None:
    node = {"repeat": {"until": "${output >= 3}", "collect": "${output * 10}"}, "input": {"last": "${previous}"}}
    spec = {"nodes": [task("again", **node)], "output": {"all": "${nodes.again.output}"}}
    run_id = await start(engine, spec)
    assert await work(engine, other, run_id) == 4
    assert await result(other, run_id) == {"all": [0, 10, 20, 30]}
