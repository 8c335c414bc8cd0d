"""By hand: one transaction a transition over asyncpg, as a careful team would write it without an engine.

A run is a row and its steps are rows. Taking a run, claiming a step (SKIP LOCKED, one at a time) and ending it, which
starts the next step or ends the run, are one statement and one transaction each: 7 commits a run of three steps. Every
transition is atomic and every end is known from its commit. A new run wakes a worker by NOTIFY; a worker that ended a
step looks for the next one itself. Statements are prepared, runs are taken by 8 connections at the same time.

Setting: 8 connections a worker process; of 4, 8 and 16, 8 was the fastest on two cores.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any, Final

import asyncpg

from bench.peers.process import ENGINE, STEPS, Ends, serve

CONNECTIONS: Final = 8
FALLBACK: Final = 0.5
"""Seconds after which an idle worker looks without having been woken."""
SCHEMA: Final = """
CREATE TABLE runs (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    status text NOT NULL DEFAULT 'running',
    created timestamptz NOT NULL DEFAULT now(),
    ended timestamptz
) WITH (fillfactor = 70);
CREATE INDEX runs_open ON runs (id) WHERE status = 'running';
CREATE TABLE steps (
    run bigint NOT NULL REFERENCES runs,
    step int NOT NULL,
    state text NOT NULL DEFAULT 'ready',
    started timestamptz,
    ended timestamptz,
    PRIMARY KEY (run, step)
) WITH (fillfactor = 70);
CREATE INDEX steps_ready ON steps (run) WHERE state = 'ready';
"""
TAKE: Final = """
WITH run AS (INSERT INTO runs DEFAULT VALUES RETURNING id),
     step AS (INSERT INTO steps (run, step) SELECT id, 0 FROM run)
SELECT pg_notify('work', '') FROM run
"""
CLAIM: Final = """
UPDATE steps SET state = 'running', started = now() WHERE (run, step) = (
    SELECT run, step FROM steps WHERE state = 'ready' ORDER BY run LIMIT 1 FOR UPDATE SKIP LOCKED
) RETURNING run, step
"""
END_STEP: Final = """
WITH ended AS (UPDATE steps SET state = 'done', ended = now() WHERE run = $1 AND step = $2 RETURNING run, step)
INSERT INTO steps (run, step) SELECT run, step + 1 FROM ended
"""
END_RUN: Final = """
WITH ended AS (UPDATE steps SET state = 'done', ended = now() WHERE run = $1 AND step = $2 RETURNING run)
UPDATE runs SET status = 'succeeded', ended = now() FROM ended WHERE runs.id = ended.run
"""


class Idle:
    """Workers that found nothing; a notification wakes one of them, or the next one that would become idle."""

    def __init__(self) -> None:
        self._waiting: list[asyncio.Event] = []
        self._missed = False

    def wake(self) -> None:
        """Wake one."""
        if self._waiting:
            self._waiting.pop().set()
        else:
            self._missed = True

    async def wait(self) -> None:
        """Wait until woken, a bounded time."""
        if self._missed:
            self._missed = False
            return
        woken = asyncio.Event()
        self._waiting.append(woken)
        with suppress(TimeoutError):
            await asyncio.wait_for(woken.wait(), FALLBACK)
        if woken in self._waiting:
            self._waiting.remove(woken)


class HandWritten:
    """Workers and submitters over plain connections."""

    def __init__(self) -> None:
        self.steps = [0] * STEPS
        self._url = os.environ["PEER_URL"]
        self._ends = Ends()
        self._idle = Idle()
        self._submitters: asyncio.Queue[Any] = asyncio.Queue()

    def about(self) -> dict[str, Any]:
        """Say what it is and how its work is counted."""
        return {
            "version": f"asyncpg {asyncpg.__version__}",
            "setting": {"connections": CONNECTIONS},
            "steps": f"{ENGINE}, each transition atomic",
            "open": "SELECT EXISTS (SELECT FROM runs WHERE status = 'running')",
            "finished": "SELECT count(*) FROM runs WHERE status = 'succeeded'",
        }

    async def set_up(self) -> None:
        """Make the two tables."""
        connection = await asyncpg.connect(self._url)
        await connection.execute(SCHEMA)
        await connection.close()

    @asynccontextmanager
    async def role(self, role: str) -> AsyncIterator[None]:
        """Work, take runs, or both."""
        tasks = []
        if role != "submit":
            listener = await asyncpg.connect(self._url)
            await listener.add_listener("work", lambda *_: self._idle.wake())
            loops = CONNECTIONS if role == "work" else 1
            tasks = [asyncio.create_task(self._worker(await asyncpg.connect(self._url))) for _ in range(loops)]
        if role != "work":
            for _ in range(CONNECTIONS):
                connection = await asyncpg.connect(self._url)
                self._submitters.put_nowait((connection, await connection.prepare(TAKE)))
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()

    async def submit(self, runs: int) -> None:
        """Take each run in a transaction of its own."""
        todo = iter(range(runs))

        async def submitter() -> None:
            for _ in todo:
                await self._take()

        await asyncio.gather(*(submitter() for _ in range(CONNECTIONS)))

    async def lone(self) -> None:
        """Take one run; its end is known when the transaction of its last step has committed."""
        self._ends.begin()
        await self._take()
        await self._ends.wait()

    async def _take(self) -> None:
        submitter = await self._submitters.get()
        await submitter[1].fetch()
        self._submitters.put_nowait(submitter)

    async def _worker(self, connection: Any) -> None:
        claim, step, run = [await connection.prepare(text) for text in (CLAIM, END_STEP, END_RUN)]
        while True:
            found = await claim.fetchrow()
            if found is None:
                await self._idle.wait()
                continue
            self.steps[found["step"]] += 1
            last = found["step"] == STEPS - 1
            await (run if last else step).fetch(found["run"], found["step"])
            if last:
                self._ends.tell()


if __name__ == "__main__":
    serve(HandWritten())
