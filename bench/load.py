"""The engine under load: runs are submitted as fast as they are taken, executed by real workers, and awaited.

Invariant: a round ends when the database says that no run is open and every run has succeeded, so that nothing counts
that is not durable. With ``--workers 0`` one process submits and works, which leaves the other core to PostgreSQL; with
more, this process only submits and the workers are processes of ``partita worker``.
"""

from __future__ import annotations

import asyncio
import time
from asyncio.subprocess import Process
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, TypeVar

import asyncpg

from bench import processes
from bench.cpu import Cpu, used
from bench.noop import app
from bench.options import Options
from bench.workload import NAME, NAMESPACE, STEPS, spec
from partita.engine.duties import Duties
from partita.engine.engine import Engine
from partita.engine.requests import StartRequest
from partita.engine.supervisor import Supervisor
from partita.settings import Settings
from partita.store.sql import substitute
from partita.worker.runtime import Worker

_PATIENCE: Final = 120.0
"""Seconds after which runs that do not end are a fault."""
_POLL: Final = 0.01


@dataclass(frozen=True, slots=True)
class Round:
    """What some runs took, from the first submission to the last end."""

    runs: int
    seconds: float
    cpu: Cpu

    @property
    def rate(self) -> float:
        """Steps a second."""
        return self.runs * STEPS / self.seconds

    def python_us(self) -> float:
        """Microseconds of Python a step."""
        return self.cpu.python / (self.runs * STEPS) * 1e6

    def postgres_us(self) -> float:
        """Microseconds of PostgreSQL a step."""
        return self.cpu.postgres / (self.runs * STEPS) * 1e6


@dataclass(slots=True)
class Load:
    """An engine with workers, ready for rounds."""

    engine: Engine
    observer: asyncpg.Connection[asyncpg.Record]
    submitters: int
    postmaster: int | None
    workers: list[int]
    """Process ids."""
    call: int = 0
    """Runs that one call starts; 0: one start a call."""
    expected: int = 0
    """Runs that should have succeeded by now."""

    async def round(self, runs: int) -> Round:
        """Submit some runs and wait until all have ended."""
        before, begun = used(self.postmaster, self.workers), time.perf_counter()
        await self.submit(runs)
        await self.ended()
        seconds = time.perf_counter() - begun
        cpu = used(self.postmaster, self.workers) - before
        await self._check()
        return Round(runs, seconds, cpu)

    async def submit(self, runs: int) -> None:
        """Start runs, a bounded number of starts at a time."""
        size = self.call or 1
        todo = iter(range(0, runs, size))

        async def submitter() -> None:
            for first in todo:
                await self._start(min(size, runs - first))

        async with asyncio.TaskGroup() as group:
            for _ in range(max(1, min(self.submitters, runs) // size)):
                group.create_task(submitter())
        self.expected += runs

    async def _start(self, count: int) -> None:
        if self.call == 0:
            await self.engine.start(StartRequest(namespace=NAMESPACE, definition=NAME))
            return
        requests = [StartRequest(namespace=NAMESPACE, definition=NAME) for _ in range(count)]
        for answer in await self.engine.start_many(requests):
            if isinstance(answer, Exception):
                raise answer

    async def ended(self) -> None:
        """Wait until no run is open."""
        deadline = time.monotonic() + _PATIENCE
        question = _sql(self.engine.settings, 'SELECT EXISTS (SELECT FROM :"schema".open_runs)')
        async with self.observer.transaction():  # one commit; keeps no snapshot between questions
            while await self.observer.fetchval(question):
                if time.monotonic() > deadline:
                    raise SystemExit(f"bench: runs are still open after {_PATIENCE:.0f} s; see partita list")
                await asyncio.sleep(_POLL)

    async def _check(self) -> None:
        succeeded = await self.succeeded()
        if succeeded != self.expected:
            raise SystemExit(f"bench: {succeeded} runs have succeeded; expected {self.expected}")

    async def succeeded(self) -> int:
        """Runs that have succeeded since the database was made."""
        text = """SELECT count(*) FROM :"schema".run_endings WHERE namespace = $1 AND status = 'Succeeded'"""
        found: int = await self.observer.fetchval(_sql(self.engine.settings, text), NAMESPACE)
        return found


E = TypeVar("E", bound=Engine)


@asynccontextmanager
async def working(settings: Settings, kind: type[E]) -> AsyncIterator[E]:
    """An engine with its duties and a worker in this process, as ``partita worker`` has them."""
    async with await kind.open(settings, application="partita-bench") as engine:
        await engine.deploy(NAMESPACE, NAME, spec())
        duties, supervisor = Duties(engine, listen=True), Supervisor()
        worker = Worker(engine, app, duties.wakeups)
        supervisor.start(*duties.services)
        await worker.start()
        try:
            yield engine
        finally:
            await worker.stop()
            await supervisor.stop()


@asynccontextmanager
async def submitting(settings: Settings) -> AsyncIterator[Engine]:
    """An engine that only starts runs."""
    async with await Engine.open(settings, application="partita-bench") as engine:
        await engine.deploy(NAMESPACE, NAME, spec())
        duties, supervisor = Duties(engine), Supervisor()
        supervisor.start(*duties.services)
        try:
            yield engine
        finally:
            await supervisor.stop()


@asynccontextmanager
async def loaded(settings: Settings, options: Options) -> AsyncIterator[Load]:
    """Engine and workers as the options say."""
    settings = replace(settings, worker=replace(settings.worker, slots=options.slots))
    async with AsyncExitStack() as stack:
        observer = await asyncpg.connect(settings.database.url)
        stack.push_async_callback(observer.close)
        role = submitting(settings) if options.workers else working(settings, Engine)
        engine = await stack.enter_async_context(role)
        workers = [
            await stack.enter_async_context(processes.partita(settings, *processes.worker(settings)))
            for _ in range(options.workers)
        ]
        await _signed_on(observer, settings, max(1, options.workers), workers)
        pids = [one.pid for one in workers]
        load = Load(engine, observer, options.submitters, await postmaster(observer), pids, options.call)
        load.expected = await load.succeeded()
        yield load


def _sql(settings: Settings, text: str) -> str:
    return substitute(text, {"schema": settings.database.schema})


async def _signed_on(
    observer: asyncpg.Connection[asyncpg.Record], settings: Settings, count: int, workers: list[Process]
) -> None:
    """Wait until this many workers have signed on."""
    deadline = time.monotonic() + _PATIENCE
    question = _sql(settings, 'SELECT count(*) FROM :"schema".workers')
    async with observer.transaction():  # one commit, as above
        while await observer.fetchval(question) < count:
            processes.check(workers)
            if time.monotonic() > deadline:
                raise SystemExit(f"bench: no {count} workers after {_PATIENCE:.0f} s")
            await asyncio.sleep(_POLL)


async def postmaster(observer: asyncpg.Connection[asyncpg.Record]) -> int | None:
    """The server's process id when it is on this machine."""
    try:
        folder = await observer.fetchval("SHOW data_directory")
        return int((Path(folder) / "postmaster.pid").read_text().split("\n", 1)[0])
    except (OSError, ValueError, asyncpg.InsufficientPrivilegeError):
        return None
