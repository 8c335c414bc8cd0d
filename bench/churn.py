"""The engine kept busy for as long as a figure takes: a constant number of runs in flight, in one or more processes.

Invariant: a step counts when its report was answered, which is after its commit; readers take the difference of two
readings. Each process submits and works, so that two of them compete for runs' tasks as workers do. Trade-off: the
counters of several processes are read one after the other; over seconds that is nothing.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import time
from collections.abc import AsyncIterator, MutableSequence, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from multiprocessing.process import BaseProcess
from multiprocessing.synchronize import Event as ProcessEvent
from typing import Any, Final

import asyncpg

from bench.cpu import Cpu, used
from bench.load import postmaster, working
from bench.loop import run
from bench.workload import NAME, NAMESPACE, NODES
from partita.engine.engine import Engine
from partita.engine.requests import Offer, Report, ReportReply, StartRequest
from partita.settings import Settings

_PUMP: Final = 0.002
"""Seconds between looks whether runs have ended."""
_PATIENCE: Final = 60.0
_FIELDS: Final = 3
_STARTED, _ENDED, _STEPS = range(_FIELDS)


@dataclass(frozen=True, slots=True)
class Window:
    """What happened in a span of time."""

    seconds: float
    steps: int
    cpu: Cpu

    @classmethod
    def of(cls, parts: Sequence[Window]) -> Window:
        """Several spans together."""
        cpu = Cpu(sum(part.cpu.python for part in parts), sum(part.cpu.postgres for part in parts))
        return cls(sum(part.seconds for part in parts), sum(part.steps for part in parts), cpu)

    @property
    def rate(self) -> float:
        """Steps a second."""
        return self.steps / self.seconds

    @property
    def postgres_us(self) -> float:
        """Microseconds of PostgreSQL a step."""
        return self.cpu.postgres / max(1, self.steps) * 1e6

    @property
    def python_us(self) -> float:
        """Microseconds of Python a step."""
        return self.cpu.python / max(1, self.steps) * 1e6


@dataclass(frozen=True, slots=True)
class Churn:
    """The running load."""

    observer: asyncpg.Connection[asyncpg.Record]
    server: int | None
    processes: Sequence[BaseProcess]
    counts: Sequence[int]

    async def window(self, seconds: float) -> Window:
        """Let this much time pass and say what happened in it."""
        pids = [process.pid for process in self.processes if process.pid]
        before, cpu, begun = _sum(self.counts, _STEPS), used(self.server, pids), time.perf_counter()
        await asyncio.sleep(seconds)
        if dead := [process.name for process in self.processes if not process.is_alive()]:
            raise SystemExit(f"bench: {', '.join(dead)} has ended; expected it to work until it is told to stop")
        spent, taken = time.perf_counter() - begun, used(self.server, pids) - cpu
        return Window(spent, _sum(self.counts, _STEPS) - before, taken)


@asynccontextmanager
async def churning(settings: Settings, *, processes: int, in_flight: int, slots: int) -> AsyncIterator[Churn]:
    """Processes that keep ``in_flight`` runs in flight between them, until the block ends."""
    settings = replace(settings, worker=replace(settings.worker, slots=slots))
    context = multiprocessing.get_context("spawn")
    counts: Any = context.Array("q", _FIELDS * processes, lock=False)
    stop = context.Event()
    started = [
        context.Process(
            target=_process,
            args=(settings, number, processes, in_flight, counts, stop),
            name=f"load {number}",
            daemon=True,
        )
        for number in range(processes)
    ]
    async with AsyncExitStack() as stack:
        observer = await asyncpg.connect(settings.database.url)
        stack.push_async_callback(observer.close)
        for process in started:
            process.start()
        try:
            churn = Churn(observer, await postmaster(observer), started, counts)
            await _working(churn)
            yield churn
        finally:
            stop.set()
            for process in started:
                await asyncio.to_thread(process.join, _PATIENCE)
                if process.is_alive():
                    process.kill()


async def _working(churn: Churn) -> None:
    """Wait until every process has recorded steps."""
    deadline = time.monotonic() + _PATIENCE
    while not all(churn.counts[_STEPS::_FIELDS]):
        await churn.window(0.05)
        if time.monotonic() > deadline:
            raise SystemExit(f"bench: no steps after {_PATIENCE:.0f} s; load average {os.getloadavg()[0]:.1f}")


def _sum(counts: Sequence[int], field: int) -> int:
    return sum(counts[field::_FIELDS])


class _CountingEngine(Engine):
    """Counts the reports that were recorded."""

    counts: MutableSequence[int] = ()  # type: ignore[assignment]  # set before the first report
    place = 0

    async def report(self, report: Report, offer: Offer | None = None) -> ReportReply:
        """Record the end of an attempt."""
        reply = await super().report(report, offer)
        if reply.outcome == "applied":
            self.counts[self.place + _STEPS] += 1
            self.counts[self.place + _ENDED] += report.node == NODES[-1]
        return reply


def _process(
    settings: Settings, number: int, processes: int, in_flight: int, counts: MutableSequence[int], stop: ProcessEvent
) -> None:
    """One process of the load."""
    run(_load(settings, number, processes, in_flight, counts, stop))


async def _load(
    settings: Settings, number: int, processes: int, in_flight: int, counts: MutableSequence[int], stop: ProcessEvent
) -> None:
    async with working(settings, _CountingEngine) as engine:
        engine.counts, engine.place = counts, number * _FIELDS
        async with asyncio.TaskGroup() as group:
            while not stop.is_set():
                room = in_flight - _sum(counts, _STARTED) + _sum(counts, _ENDED)
                for _ in range(-(-room // processes)):
                    counts[engine.place + _STARTED] += 1
                    group.create_task(_start(engine))
                await asyncio.sleep(_PUMP)


async def _start(engine: Engine) -> None:
    await engine.start(StartRequest(namespace=NAMESPACE, definition=NAME))
