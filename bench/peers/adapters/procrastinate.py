"""procrastinate: a queue in Python over psycopg, its workers woken by NOTIFY.

Setting, from its pages on concurrency and on deferring batches: asynchronous tasks, ``concurrency`` of 30 as its
example has it, a pool of 10 (its default is smaller), runs deferred in batches. A fallback of 0.1 s instead of 5 s: a
notification that comes during a fetch is forgotten when the fetch ends, and lone runs of five seconds were seen.

It has no workflows: the task of a step defers the next one before it returns. Finished jobs stay in the table, which
is its default. The end of a lone run is taken as known when its last task ran, which is before it is recorded.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.metadata import version
from typing import Any, Final

import procrastinate

from bench.peers.process import QUEUE, STEPS, Ends, serve

CONCURRENCY: Final = 30
POOL: Final = 10
POLL: Final = 0.1
SUBMITTED: Final = 200


class Procrastinate:
    """An app a process."""

    def __init__(self) -> None:
        logging.getLogger("procrastinate").setLevel(logging.WARNING)
        self.steps = [0] * STEPS
        self._ends = Ends()
        self._app = procrastinate.App(
            connector=procrastinate.PsycopgConnector(conninfo=os.environ["PEER_URL"], min_size=1, max_size=POOL)
        )
        self._tasks = [self._app.task(name=f"step_{step}")(self._task(step)) for step in range(STEPS)]

    def about(self) -> dict[str, Any]:
        """Say what it is and how its work is counted."""
        return {
            "version": version("procrastinate"),
            "setting": {"concurrency": CONCURRENCY, "connections": POOL, "poll_s": POLL, "deferred_at_once": SUBMITTED},
            "steps": QUEUE,
            "open": "SELECT EXISTS (SELECT FROM procrastinate_jobs WHERE status IN ('todo', 'doing'))",
            "finished": "SELECT count(*) FROM procrastinate_jobs WHERE task_name = 'step_2' AND status = 'succeeded'",
        }

    async def set_up(self) -> None:
        """Apply its schema."""
        async with self._app.open_async():
            await self._app.schema_manager.apply_schema_async()

    @asynccontextmanager
    async def role(self, role: str) -> AsyncIterator[None]:
        """Work, take runs, or both."""
        async with self._app.open_async():
            if role == "submit":
                yield
                return
            running = asyncio.create_task(
                self._app.run_worker_async(
                    concurrency=CONCURRENCY, fetch_job_polling_interval=POLL, install_signal_handlers=False
                )
            )
            try:
                yield
            finally:
                running.cancel()
                await asyncio.gather(running, return_exceptions=True)

    async def submit(self, runs: int) -> None:
        """Defer first steps in batches."""
        for done in range(0, runs, SUBMITTED):
            await self._tasks[0].batch_defer_async(*[{}] * min(SUBMITTED, runs - done))

    async def lone(self) -> None:
        """Defer one and wait for its last task."""
        self._ends.begin()
        await self._tasks[0].defer_async()
        await self._ends.wait()

    def _task(self, step: int) -> Any:
        async def task() -> None:
            self.steps[step] += 1
            if step < STEPS - 1:
                await self._tasks[step + 1].defer_async()
            else:
                self._ends.tell()

        return task


if __name__ == "__main__":
    serve(Procrastinate())
