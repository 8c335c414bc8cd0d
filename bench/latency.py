"""Idle latency: how long a lone run of three steps takes, against bare SQL that writes the same rows.

Lone runs of the engine and of bare SQL, with transactions and with a statement a transition, take turns, so that all
meet the same disk. A run of the engine goes from ``Engine.start`` to the moment the worker's last report was committed,
as the process that waits for it sees it: through worker and hand-off, with the worker in the same process and idle
between the runs.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field

from bench import bare
from bench.bare import Transition
from bench.figures import Figure, emit, say
from bench.load import working
from bench.loop import run
from bench.options import Options, parse
from bench.postgres import measured
from bench.workload import NAME, NAMESPACE, NODES
from partita.engine.engine import Engine
from partita.engine.requests import Offer, Report, ReportReply, StartRequest
from partita.settings import Settings
from partita.store.database import Dedicated
from partita.store.sql import Sql

GOALS = (1.5, 1.2)
Play = Callable[[Sequence[Transition], Dedicated, Sql], Awaitable[None]]
_PATIENCE = 30.0
_WARM = 20
_PERCENTILES = ((0.5, "p50", GOALS[0]), (0.99, "p99", GOALS[1]))


def main(arguments: Sequence[str]) -> None:
    """Measure and print."""
    options = parse(arguments, "latency", "Milliseconds of a lone run, and its ratio to bare SQL.", runs=200, repeats=5)
    with measured() as settings:
        emit(run(measure(settings, options)))


async def measure(settings: Settings, options: Options) -> list[Figure]:
    """Percentiles of some groups of lone runs."""
    groups: list[Group] = []
    session = Dedicated(settings.database, "bench/bare", planner=True)
    try:
        async with working(settings, WatchedEngine) as engine:
            pair = Pair(engine, session)
            await pair.group(min(_WARM, options.runs))
            for number in range(options.repeats):
                groups.append(await pair.group(options.runs))
                say(f"latency {number + 1}/{options.repeats}: {_shown(groups[-1])}")
    finally:
        await session.close()
    return _figures(groups, options.runs)


@dataclass(slots=True)
class Group:
    """Milliseconds of lone runs."""

    ours: list[float] = field(default_factory=list)
    """Of the engine, until the last step is recorded."""
    bare: list[float] = field(default_factory=list)
    at_once: list[float] = field(default_factory=list)
    """Of bare SQL with a statement a transition."""
    unrecorded: list[float] = field(default_factory=list)
    """Of the engine, until the last step has run."""


class WatchedEngine(Engine):
    """Tells when a worker's report of the last step has been answered, without asking the database."""

    ended: asyncio.Event | None = None
    last_step_ran = 0.0
    """When the function of a last step returned, by ``time.perf_counter``: before its end was recorded."""

    async def report(self, report: Report, offer: Offer | None = None) -> ReportReply:
        """Record the end of an attempt."""
        if report.node == NODES[-1]:
            self.last_step_ran = time.perf_counter()
        reply = await super().report(report, offer)
        if self.ended is not None and report.node == NODES[-1]:
            self.ended.set()
        return reply


class Pair:
    """The engine and bare SQL on one database."""

    def __init__(self, engine: WatchedEngine, session: Dedicated) -> None:
        self._engine = engine
        self._session = session
        self._sql = Sql(engine.settings.database.schema)
        self._parsed = bare.definition()

    async def group(self, runs: int) -> Group:
        """Lone runs of each kind, by turns."""
        group = Group()
        for _ in range(runs):
            await self._run(group)
            await self._play(group)
        return group

    async def apart(self, runs: int) -> Group:
        """The engine's one after the other, and then those of bare SQL."""
        group = Group()
        for _ in range(runs):
            await self._run(group)
        for _ in range(runs):
            await self._play(group)
        return group

    async def _run(self, group: Group) -> None:
        begun = time.perf_counter()
        group.ours.append(await lone(self._engine))
        group.unrecorded.append((self._engine.last_step_ran - begun) * 1e3)

    async def _play(self, group: Group) -> None:
        group.bare.append(await self._played(bare.play, bare.decided(1, self._parsed)))
        group.at_once.append(await self._played(bare.play_at_once, bare.decided_at_once(self._parsed)))

    async def _played(self, play: Play, transitions: Sequence[Transition]) -> float:
        begun = time.perf_counter()
        await play(transitions, self._session, self._sql)
        return (time.perf_counter() - begun) * 1e3


async def lone(engine: WatchedEngine) -> float:
    """Milliseconds of one run, with nothing else to do."""
    ended = engine.ended = asyncio.Event()
    begun = time.perf_counter()
    await engine.start(StartRequest(namespace=NAMESPACE, definition=NAME))
    async with asyncio.timeout(_PATIENCE):
        await ended.wait()
    return (time.perf_counter() - begun) * 1e3


def percentile(samples: Sequence[float], share: float) -> float:
    """The smallest sample that at least this share of them does not exceed."""
    ordered = sorted(samples)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


def _figures(groups: Sequence[Group], runs: int) -> list[Figure]:
    figures, setting = [], {"lone_runs": runs}
    for share, name, goal in _PERCENTILES:
        ours = [percentile(group.ours, share) for group in groups]
        theirs = [percentile(group.bare, share) for group in groups]
        least = [percentile(group.at_once, share) for group in groups]
        ratios = [mine / bare_sql for mine, bare_sql in zip(ours, theirs, strict=True)]
        to_least = [mine / bare_sql for mine, bare_sql in zip(ours, least, strict=True)]
        figures += [
            Figure.median(f"latency_{name}_least", least, "ms", better="lower", setting=setting),
            Figure.median(f"latency_{name}_least_ratio", to_least, "ratio", better="lower", setting=setting),
            Figure.median(f"latency_{name}", ours, "ms", better="lower", setting=setting),
            Figure.median(f"latency_{name}_bare_sql", theirs, "ms", better="lower", setting=setting),
            Figure.median(f"latency_{name}_ratio", ratios, "ratio", goal=goal, better="lower", setting=setting),
        ]
    return figures


def _shown(group: Group) -> str:
    words = [
        f"{name} {percentile(group.ours, share):.1f} ms, bare SQL {percentile(group.bare, share):.1f} ms, "
        f"a statement each {percentile(group.at_once, share):.1f} ms"
        for share, name, _ in _PERCENTILES
    ]
    return "; ".join(words)
