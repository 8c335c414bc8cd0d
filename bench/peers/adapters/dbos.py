"""dbos: workflows as a library in Python; a process records its own steps over SQLAlchemy.

Setting, from its pages on queues and on configuration: runs are enqueued by a client and executed by both worker
processes from a queue with ``worker_concurrency`` of 20, as many as its pool has connections by default. The queue only
polls: the default is every second, here 50 ms. There is no call that enqueues many; 16 threads enqueue one by one.
Workflows are plain functions, which run in threads: the database calls of coroutines go through threads as well.

It has workflows: three steps, each recorded before the next one begins. A lone run is started directly in its process,
as its guide does, and its end is recorded when the call returns.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from importlib.metadata import version
from typing import Any, Final

from dbos import DBOS, DBOSClient

from bench.peers.process import ENGINE, STEPS, serve

NAME: Final = "bench"
CONCURRENCY: Final = 20
POOL: Final = 20
POLL: Final = 0.05
SUBMITTERS: Final = 16


class Dbos:
    """An application, or a client, a process."""

    def __init__(self) -> None:
        self.steps = [0] * STEPS
        self._lock = threading.Lock()
        self._url = os.environ["PEER_URL"].replace("postgresql://", "postgresql+psycopg://", 1)
        self._client: Any = None
        self._workflow: Any = None
        self._threads = ThreadPoolExecutor(SUBMITTERS)

    def about(self) -> dict[str, Any]:
        """Say what it is and how its work is counted."""
        return {
            "version": version("dbos"),
            "setting": {"worker_concurrency": CONCURRENCY, "pool": POOL, "poll_s": POLL, "enqueuing": SUBMITTERS},
            "steps": f"{ENGINE}, each recorded",
            "open": "SELECT EXISTS (SELECT FROM dbos.workflow_status WHERE status IN ('PENDING', 'ENQUEUED'))",
            "finished": "SELECT count(*) FROM dbos.workflow_status WHERE status = 'SUCCESS'",
        }

    async def set_up(self) -> None:
        """Launch once, which makes the schema, and declare the queue."""
        await asyncio.to_thread(self._launch)
        await asyncio.to_thread(
            lambda: DBOS.register_queue(NAME, worker_concurrency=CONCURRENCY, polling_interval_sec=POLL)
        )
        await asyncio.to_thread(DBOS.destroy)

    @asynccontextmanager
    async def role(self, role: str) -> AsyncIterator[None]:
        """Work, take runs, or both."""
        if role == "submit":
            self._client = DBOSClient(system_database_url=self._url, system_database_pool_size=SUBMITTERS)
            yield
            self._client.destroy()
            return
        await asyncio.to_thread(self._launch)
        yield
        await asyncio.to_thread(DBOS.destroy)

    async def submit(self, runs: int) -> None:
        """Enqueue in threads, each for itself."""
        loop = asyncio.get_running_loop()
        await asyncio.gather(*(loop.run_in_executor(self._threads, self._enqueue) for _ in range(runs)))

    async def lone(self) -> None:
        """Call the workflow, which returns when its end is recorded."""
        await asyncio.get_running_loop().run_in_executor(self._threads, self._workflow)

    def _enqueue(self) -> None:
        self._client.enqueue({"workflow_name": NAME, "queue_name": NAME})

    def _launch(self) -> None:
        config = {"name": NAME, "system_database_url": self._url, "sys_db_pool_size": POOL, "log_level": "ERROR"}
        DBOS(config={**config, "application_version": "1", "executor_id": str(os.getpid())})
        steps = [DBOS.step(name=f"step_{step}")(self._step(step)) for step in range(STEPS)]

        def workflow() -> None:
            for step in steps:
                step()

        self._workflow = DBOS.workflow(name=NAME)(workflow)
        DBOS.launch()

    def _step(self, step: int) -> Any:
        def run() -> None:
            with self._lock:
                self.steps[step] += 1

        return run


if __name__ == "__main__":
    serve(Dbos())
