"""pgqueuer: a queue in Python, its jobs woken by NOTIFY and fetched in batches.

Setting, from its guide on performance tuning: asyncpg on uvloop, a direct connection for the queue manager and a pool
for those who enqueue, a larger batch for short jobs, ``pgq autovac`` and the default durability (all tables logged;
``balanced`` is about twice as fast, and loses jobs). Runs are enqueued in batches. Batches of 50 to 200 jobs and pools
of 10 and 20 did not differ by more than the noise here; one connection for all handlers was slower.

It has no workflows: the handler of a step enqueues the next one before it returns. A finished job moves from the queue
to a log; that is recorded in batches, at the latest after 0.1 s, so that the end of a lone run is taken as known when
its last handler ran, which is before it is recorded.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from importlib.metadata import version
from typing import Any, Final

import asyncpg
from pgqueuer import PgQueuer
from pgqueuer.db import AsyncpgDriver, AsyncpgPoolDriver
from pgqueuer.queries import Queries

from bench.peers.process import QUEUE, STEPS, Ends, serve

BATCH: Final = 100
POOL: Final = 10
SUBMITTED: Final = 200
NAMES: Final = tuple(f"step_{step}" for step in range(STEPS))


class Pgqueuer:
    """A queue manager a process."""

    def __init__(self) -> None:
        self.steps = [0] * STEPS
        self._url = os.environ["PEER_URL"]
        self._ends = Ends()
        self._queries: Any = None

    def about(self) -> dict[str, Any]:
        """Say what it is and how its work is counted."""
        return {
            "version": version("pgqueuer"),
            "setting": {"batch_size": BATCH, "connections": POOL + 1, "enqueued_at_once": SUBMITTED},
            "steps": QUEUE,
            "open": "SELECT EXISTS (SELECT FROM pgqueuer)",
            "finished": "SELECT count(*) FROM pgqueuer_log WHERE entrypoint = 'step_2' AND status = 'successful'",
        }

    async def set_up(self) -> None:
        """Install it, with its own autovacuum settings."""
        connection = await asyncpg.connect(self._url)
        queries = Queries(AsyncpgDriver(connection))
        await queries.install()
        await queries.optimize_autovacuum()
        await connection.close()

    @asynccontextmanager
    async def role(self, role: str) -> AsyncIterator[None]:
        """Work, take runs, or both."""
        pool = await asyncpg.create_pool(self._url, min_size=1, max_size=POOL)
        self._queries = Queries(AsyncpgPoolDriver(pool))
        if role == "submit":
            yield
            return
        manager = PgQueuer(AsyncpgDriver(await asyncpg.connect(self._url)))
        for step, name in enumerate(NAMES):
            manager.entrypoint(name)(self._handler(step))
        batch = BATCH if role == "work" else 10
        running = asyncio.create_task(
            manager.qm.run(
                batch_size=batch, dequeue_timeout=timedelta(seconds=5), log_aggregation_interval=timedelta(0)
            )
        )
        try:
            yield
        finally:
            manager.shutdown.set()
            await running

    async def submit(self, runs: int) -> None:
        """Enqueue first steps in batches."""
        for done in range(0, runs, SUBMITTED):
            count = min(SUBMITTED, runs - done)
            await self._queries.enqueue([NAMES[0]] * count, [b""] * count, [0] * count)

    async def lone(self) -> None:
        """Enqueue one and wait for its last handler."""
        self._ends.begin()
        await self._queries.enqueue(NAMES[0], b"")
        await self._ends.wait()

    def _handler(self, step: int) -> Any:
        async def handle(_: Any) -> None:
            self.steps[step] += 1
            if step < STEPS - 1:
                await self._queries.enqueue(NAMES[step + 1], b"")
            else:
                self._ends.tell()

        return handle


if __name__ == "__main__":
    serve(Pgqueuer())
