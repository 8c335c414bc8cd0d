"""A peer's turn: a round of runs through its worker processes, then lone runs, and what PostgreSQL counted.

Invariant: a round gives no figure unless the peer's own tables say that no run is open and, where it keeps a record,
that every run has finished, and the worker processes have executed every step exactly once a run. Commits and
write-ahead log are read before the processes start and after they have ended, warm-up and start included.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Any, Final

import asyncpg

from bench.cpu import Cpu, used
from bench.load import postmaster
from bench.peers.child import Child, PeerError, child
from bench.peers.place import Counted, counted
from bench.peers.process import STEPS

_PATIENCE: Final = 30.0
"""Seconds after which runs that have not finished are a fault."""
_ANSWER: Final = 30.0
"""Seconds that a process has for an answer."""
_POLL: Final = 0.01
_SHARE: Final = 20
"""A question to the peer's tables is asked again after this many times what it took: it must not slow them down."""
_WARM_LONE: Final = 10


@dataclass(frozen=True, slots=True)
class Work:
    """How much a turn is."""

    runs: int
    lone: int
    workers: int


@dataclass(frozen=True, slots=True)
class Turn:
    """What one turn measured."""

    rate: float
    """Steps a second."""
    wal: float
    """Bytes a step."""
    commits: float
    """Commits a step."""
    cpu: float | None
    """Microseconds of processor a step, of the peer's processes and of PostgreSQL; None when they cannot be seen."""
    lone: tuple[float, ...]
    """Milliseconds of lone runs."""


@dataclass(frozen=True, slots=True)
class Round:
    """What some runs took, from the first submission until every run is recorded as finished."""

    steps: int
    seconds: float
    cpu: Cpu | None

    @property
    def rate(self) -> float:
        """Steps a second."""
        return self.steps / self.seconds

    @property
    def cpu_us(self) -> float | None:
        """Microseconds of processor a step; None when a part of it cannot be seen."""
        return None if self.cpu is None else (self.cpu.python + self.cpu.postgres) / self.steps * 1e6


@dataclass(slots=True)
class Bench:
    """A peer that is set up in its database."""

    command: Sequence[str]
    variables: Mapping[str, str]
    url: str
    about: dict[str, Any]
    finished: int = 0
    """Runs that should have finished since the database was made."""

    async def turn(self, work: Work) -> Turn:
        """One turn; PeerError when its work is not done."""
        done, cost = await self._throughput(work)
        steps = done.steps + _warm(work) * STEPS
        lone = await self._latency(work.lone)
        return Turn(done.rate, cost.wal_bytes / steps, cost.commits / steps, done.cpu_us, lone)

    async def _throughput(self, work: Work) -> tuple[Round, Counted]:
        """A round, and what the server counted for it and the warm-up before it."""
        before = await counted(self.url)
        async with AsyncExitStack() as stack:
            children = [await stack.enter_async_context(self._child("work")) for _ in range(work.workers)]
            submitter = await stack.enter_async_context(self._child("submit"))
            observer = await asyncpg.connect(self.url)
            stack.push_async_callback(observer.close)
            await self._round(_warm(work), children, submitter, observer)
            done = await self._round(work.runs, children, submitter, observer)
        return done, await counted(self.url) - before

    async def _round(
        self, runs: int, workers: Sequence[Child], submitter: Child, observer: asyncpg.Connection[asyncpg.Record]
    ) -> Round:
        before, server = await executed(workers), await postmaster(observer)
        pids = [submitter.process.pid, *(worker.process.pid for worker in workers)]
        self.finished += runs
        spent, begun = used(server, pids), time.perf_counter()
        await submitter.ask(_ANSWER, do="submit", runs=runs)
        await self._ended(observer)
        seconds = time.perf_counter() - begun
        cpu = None if server is None else used(server, pids) - spent
        check(runs, [after - earlier for after, earlier in zip(await executed(workers), before, strict=True)])
        return Round(runs * STEPS, seconds, cpu)

    async def _ended(self, observer: asyncpg.Connection[asyncpg.Record]) -> None:
        deadline = time.monotonic() + _PATIENCE
        async with observer.transaction():  # one commit; keeps no snapshot between questions
            while True:
                asked = time.perf_counter()
                problem = await self._problem(observer)
                if problem is None:
                    return
                if time.monotonic() > deadline:
                    raise PeerError(f"{problem} after {_PATIENCE:.0f} s")
                await asyncio.sleep(max(_POLL, _SHARE * (time.perf_counter() - asked)))

    async def _problem(self, observer: asyncpg.Connection[asyncpg.Record]) -> str | None:
        """Why the round has not ended; None when it has."""
        if await observer.fetchval(self.about["open"]):
            return "runs are open"
        if self.about["finished"] is None:
            return None
        found = await observer.fetchval(self.about["finished"])
        return None if found == self.finished else f"{found} runs are recorded as finished; expected {self.finished}"

    async def _latency(self, runs: int) -> tuple[float, ...]:
        async with self._child("lone") as process:
            await process.ask(_ANSWER, do="lone", runs=_WARM_LONE)
            answer = await process.ask(_ANSWER, do="lone", runs=runs)
            self.finished += _WARM_LONE + runs
            check(_WARM_LONE + runs, await executed([process]))
        return tuple(answer["milliseconds"])

    def _child(self, role: str) -> Any:
        return child(self.command, role, self.variables)


def _warm(work: Work) -> int:
    """Runs before the clock starts."""
    return max(1, work.runs // 4)


async def ready(command: Sequence[str], variables: Mapping[str, str], url: str) -> Bench:
    """Set a peer up in its database."""
    async with child(command, "set-up", variables) as process:
        return Bench(command, variables, url, process.about)


async def executed(workers: Sequence[Child]) -> list[int]:
    """How often each step was executed by these processes."""
    answers = [await worker.ask(_ANSWER, do="count") for worker in workers]
    return [sum(answer["steps"][step] for answer in answers) for step in range(STEPS)]


def check(runs: int, steps: Sequence[int]) -> None:
    """Raise PeerError unless each step was executed once a run."""
    if list(steps) != [runs] * STEPS:
        raise PeerError(f"steps were executed {', '.join(map(str, steps))} times; expected {runs} each")
