"""absurd: workflows whose engine is a set of SQL functions, with a thin SDK; here the one in Python.

Setting, from its page on the Python SDK: the asynchronous client, several worker processes, ``concurrency`` raised
from 1 to 20; 50 was alike, 4 and 10 slower. A worker has one connection, on which its tasks take turns. It only polls:
the default is every 0.25 s, which would be most of a lone run, so that it is 5 ms here. There is no call that spawns
many tasks; they are spawned one by one over several connections.

It has workflows: a run is a task of three steps, each step's end a checkpoint that is written once. The end of a lone
run is taken as known when its task returned, which is before it is recorded; its own way to wait for a result polls.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.metadata import version
from typing import Any, Final

import absurdctl
import psycopg
from absurd_sdk import AsyncAbsurd

from bench.peers.process import ENGINE, STEPS, Ends, serve

NAME: Final = "bench"
CONCURRENCY: Final = 20
POLL: Final = 0.005
SUBMITTERS: Final = 4


class Absurd:
    """A client with a worker a process."""

    def __init__(self) -> None:
        self.steps = [0] * STEPS
        self._url = os.environ["PEER_URL"]
        self._ends = Ends()
        self._clients: list[Any] = []

    def about(self) -> dict[str, Any]:
        """Say what it is and how its work is counted."""
        return {
            "version": version("absurd-sdk"),
            "setting": {"concurrency": CONCURRENCY, "poll_s": POLL, "spawning_connections": SUBMITTERS},
            "steps": f"{ENGINE}, each a checkpoint",
            "open": "SELECT EXISTS (SELECT FROM absurd.r_bench WHERE state IN ('pending', 'running', 'sleeping'))",
            "finished": "SELECT count(*) FROM absurd.t_bench WHERE state = 'completed'",
        }

    async def set_up(self) -> None:
        """Apply the schema that its tool carries, and make a queue."""
        async with await psycopg.AsyncConnection.connect(self._url, autocommit=True) as connection:
            await connection.execute(absurdctl.BUNDLED_SCHEMA_SQL)
        client = AsyncAbsurd(self._url, queue_name=NAME)
        await client.create_queue(NAME)
        await client.close()

    @asynccontextmanager
    async def role(self, role: str) -> AsyncIterator[None]:
        """Work, take runs, or both."""
        self._clients = [AsyncAbsurd(self._url, queue_name=NAME) for _ in range(SUBMITTERS)]
        if role == "submit":
            yield
        else:
            worker = AsyncAbsurd(self._url, queue_name=NAME)
            worker.register_task(NAME)(self._task)
            running = asyncio.create_task(worker.start_worker(concurrency=CONCURRENCY, poll_interval=POLL))
            try:
                yield
            finally:
                worker.stop_worker()
                await running
                await worker.close()
        for client in self._clients:
            await client.close()

    async def submit(self, runs: int) -> None:
        """Spawn tasks over several connections."""
        todo = iter(range(runs))

        async def submitter(client: Any) -> None:
            for _ in todo:
                await client.spawn(NAME, {}, queue=NAME)

        await asyncio.gather(*map(submitter, self._clients))

    async def lone(self) -> None:
        """Spawn one and wait until its task returned."""
        self._ends.begin()
        await self._clients[0].spawn(NAME, {}, queue=NAME)
        await self._ends.wait()

    async def _task(self, _: Any, context: Any) -> None:
        for step in range(STEPS):
            await context.step(f"step_{step}", self._step(step))
        self._ends.tell()

    def _step(self, step: int) -> Any:
        async def run() -> None:
            self.steps[step] += 1

        return run


if __name__ == "__main__":
    serve(Absurd())
