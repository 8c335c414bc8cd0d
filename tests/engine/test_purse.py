"""A transaction ends before its decisions have taken too long, and what is left goes into the next ones."""

from __future__ import annotations

import asyncio
from typing import Any

from partita.domain.state.events import CancelRequested
from partita.settings import Settings
from tests.engine.support import claim, connected, done, opened, start, start_many, status, task

COUNT = 40
LOOP: dict[str, Any] = {
    "nodes": [{"name": "each", "task": {"type": "noop"}, "forEach": {"items": f"${{range({2 * COUNT})}}"}}]
}


async def test_events_of_one_run_are_spread_over_transactions(settings: Settings) -> None:
    """With a millisecond for each transaction most have few events; all count, each once."""
    async with opened(settings, decide_ms=1) as engine, connected(settings) as connection:
        run_id = await start(engine, LOOP)
        tasks = await claim(connection, run_id)
        before = engine.coordinator.transactions
        replies = await asyncio.gather(*(engine.report(done(one)) for one in tasks))
        assert {reply.outcome for reply in replies} == {"applied"}
        assert engine.coordinator.transactions - before > 3
        again = await asyncio.gather(*(engine.report(done(one)) for one in tasks))
        assert {reply.outcome for reply in again} <= {"already_applied", "stale"}
        assert await status(connection, run_id) == "Succeeded"
        completed = "SELECT count(*) FROM partita.run_history WHERE run_id = $1 AND event = 'TaskCompleted'"
        assert await connection.fetchval(completed, run_id) == 2 * COUNT


async def test_events_of_many_runs_are_spread_too(settings: Settings) -> None:
    async with opened(settings, decide_ms=1) as engine, connected(settings) as connection:
        runs = await start_many(engine, {"nodes": [task("a")]}, COUNT)
        await asyncio.gather(*(engine.apply(run_id, CancelRequested()) for run_id in runs))
        assert {await status(connection, run_id) for run_id in runs} == {"Cancelled"}


async def test_a_usual_batch_is_one_transaction(settings: Settings) -> None:
    async with opened(settings, decide_ms=60_000) as engine, connected(settings) as connection:
        run_id = await start(engine, LOOP)
        tasks = await claim(connection, run_id)
        before = engine.coordinator.transactions
        await asyncio.gather(*(engine.report(done(one)) for one in tasks))
        assert engine.coordinator.transactions - before <= 2
