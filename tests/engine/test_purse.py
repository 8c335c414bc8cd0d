"""A transaction ends before its decisions have taken too long, and what is left goes into the next ones."""

from __future__ import annotations

import asyncio
from typing import Any

import asyncpg
import pytest

from partita.domain.state.events import CancelRequested
from partita.engine import rounds
from partita.engine.batch import Batch
from partita.settings import Settings
from partita.store.database import Connection
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


async def test_runs_that_are_too_large_together_are_cancelled_in_parts(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rounds, "_MOST_ROWS", 3 * COUNT)
    async with opened(settings) as engine, connected(settings) as connection:
        runs = await start_many(engine, LOOP, 12)
        before = engine.coordinator.transactions
        await asyncio.gather(*(engine.apply(run_id, CancelRequested()) for run_id in runs))
        assert {await status(connection, run_id) for run_id in runs} == {"Cancelled"}
        assert engine.coordinator.transactions - before > len(runs), "a run of more rows is alone, and some were cut"


async def test_what_takes_too_long_together_is_tried_in_halves(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = Batch.run

    async def timed_out(batch: Batch, connection: Connection) -> None:
        if len(batch.turns) > 1:
            raise asyncpg.QueryCanceledError("canceling statement due to statement timeout")
        await whole(batch, connection)

    async with opened(settings) as engine, connected(settings) as connection:
        runs = await start_many(engine, {"nodes": [task("a")]}, 5)
        monkeypatch.setattr(Batch, "run", timed_out)
        await asyncio.gather(*(engine.apply(run_id, CancelRequested()) for run_id in runs))
        assert {await status(connection, run_id) for run_id in runs} == {"Cancelled"}
