"""awa: a queue whose engine is in Rust, here through its Python package; jobs are woken by NOTIFY.

Setting, from its pages on configuration and benchmarking: one queue, ``max_workers`` of 50 (its default in Rust), the
default claim batch of 512 with one claimer, runs enqueued by COPY, 20 connections for the handlers that enqueue.

It has no workflows from Python (its transactional follow-up jobs are declared in Rust): the handler of a step inserts
the next job before it returns. The end of a lone run is taken as known when its last handler ran, which is before it
is recorded.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any, Final

from awa import AsyncClient

from bench.peers.process import QUEUE, STEPS, Ends, serve

NAME: Final = "bench"
WORKERS: Final = 50
POOL: Final = 20
SUBMITTED: Final = 500
FINISHED: Final = """
SELECT ((SELECT coalesce(sum(completed_count), 0) FROM awa.receipt_completion_batches)
      + (SELECT count(*) FROM awa.done_entries WHERE state = 'completed')
      + (SELECT coalesce(sum(pruned_completed_count), 0) FROM awa.queue_terminal_rollups))::bigint / 3
"""
"""Its view of all jobs takes half a second; in these tables it records completed jobs, and how many it forgot."""


@dataclass
class Step:
    """The arguments of a job."""

    number: int


class Awa:
    """A client with a worker a process."""

    def __init__(self) -> None:
        self.steps = [0] * STEPS
        self._url = os.environ["PEER_URL"].replace("@/", "@localhost/", 1)
        self._ends = Ends()
        self._client: Any = AsyncClient(self._url, POOL)

    def about(self) -> dict[str, Any]:
        """Say what it is and how its work is counted."""
        return {
            "version": version("awa-pg"),
            "setting": {"max_workers": WORKERS, "connections": POOL, "copied_at_once": SUBMITTED},
            "steps": QUEUE,
            "open": "SELECT false",
            "finished": FINISHED,
        }

    async def set_up(self) -> None:
        """Apply its migrations."""
        await self._client.migrate()
        await self._client.close()

    @asynccontextmanager
    async def role(self, role: str) -> AsyncIterator[None]:
        """Work, take runs, or both."""
        if role != "submit":
            self._client.task(Step, queue=NAME)(self._handle)
            await self._client.start([{"name": NAME, "max_workers": WORKERS}])
        yield
        if role != "submit":
            await self._client.shutdown()
        await self._client.close()

    async def submit(self, runs: int) -> None:
        """Enqueue first steps by COPY."""
        for done in range(0, runs, SUBMITTED):
            await self._client.enqueue_many_copy([Step(0)] * min(SUBMITTED, runs - done), queue=NAME)

    async def lone(self) -> None:
        """Insert one and wait for its last handler."""
        self._ends.begin()
        await self._client.insert(Step(0), queue=NAME)
        await self._ends.wait()

    async def _handle(self, job: Any) -> None:
        step = job.args.number
        self.steps[step] += 1
        if step < STEPS - 1:
            await self._client.insert(Step(step + 1), queue=NAME)
        else:
            self._ends.tell()


if __name__ == "__main__":
    serve(Awa())
