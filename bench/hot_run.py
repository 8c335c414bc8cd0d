"""One hot run: events a second while every coordinator has an event of the same run in every batch.

Each process is a coordinator with runs of its own, of which each is suspended and resumed all the time, and all of them
do the same to one more run. A batch skips a run that another process has locked (SKIP LOCKED), and waits for it only
after some skips, alone. The comparison replaces that, in the benchmark's processes only, by plain locking: statement 1
then waits for the hot run, and with it all other runs of the batch.

Suspending and resuming is one update and one row of history, so that the events cost little and the locks show; but
that the events of one run take turns, and so who waits how long for the hot run, is the same for all kinds.
"""

from __future__ import annotations

import argparse
import asyncio
import multiprocessing
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from multiprocessing.queues import Queue
from multiprocessing.synchronize import Barrier
from typing import Any, Final
from uuid import UUID

from bench.figures import Figure, emit, say
from bench.latency import percentile
from bench.loop import run
from bench.postgres import measured
from partita.domain.state.events import ResumeRequested, SuspendRequested
from partita.engine.engine import Engine
from partita.engine.requests import StartRequest
from partita.settings import Settings
from partita.store import slices
from partita.store.database import Connection
from partita.store.sql import Sql

NAMESPACE: Final = "bench"
NAME: Final = "waits"
SPEC: Final = {"nodes": [{"name": "approval", "waitForEvent": {"name": "approval"}}]}
MODES: Final = ("skip", "plain")
_HOT_DRIVERS: Final = 2
"""Events of the hot run that each process has under way, so that each batch has one."""
_PATIENCE: Final = 120.0


@dataclass(frozen=True, slots=True)
class Sizes:
    """How much is measured."""

    coordinators: tuple[int, ...]
    seconds: float
    repeats: int
    runs: int
    """Runs of each process besides the hot one."""


@dataclass(slots=True)
class Tally:
    """What one process did, or all of them."""

    cold: list[float] = field(default_factory=list)
    """Seconds that each event took."""
    hot: list[float] = field(default_factory=list)
    skips: int = 0
    """How often a batch went on without a run."""
    alone: int = 0
    """How often a run was locked alone, waiting."""
    transactions: int = 0

    def add(self, other: Tally) -> None:
        """Add what another process did."""
        self.cold += other.cold
        self.hot += other.hot
        self.skips += other.skips
        self.alone += other.alone
        self.transactions += other.transactions


def main(arguments: Sequence[str]) -> None:
    """Measure and print."""
    sizes = _parse(arguments)
    with measured() as settings:
        emit(measure(settings, sizes))


def measure(settings: Settings, sizes: Sizes) -> list[Figure]:
    """Every number of coordinators, both ways of locking taking turns."""
    found: dict[tuple[int, str], list[Tally]] = {}
    for number in range(sizes.repeats):
        for count in sizes.coordinators:
            for mode in MODES:
                tally = _round(settings, sizes, count, mode)
                found.setdefault((count, mode), []).append(tally)
                say(f"hot_run {number + 1}/{sizes.repeats}: {count} coordinators, {mode}: {_shown(tally, sizes)}")
    return [figure for count in sizes.coordinators for figure in _figures(count, found, sizes)]


def _round(settings: Settings, sizes: Sizes, count: int, mode: str) -> Tally:
    """So many processes, all at work for the same span of time."""
    context = multiprocessing.get_context("spawn")
    answers: Queue[Tally] = context.Queue()
    barrier = context.Barrier(count)
    hot = run(_hot_run(settings))
    work = [
        context.Process(target=_process, args=(settings, sizes, mode, hot, barrier, answers), daemon=True)
        for _ in range(count)
    ]
    for process in work:
        process.start()
    total = Tally()
    for _ in work:
        total.add(answers.get(timeout=_PATIENCE))
    for process in work:
        process.join()
    return total


async def _hot_run(settings: Settings) -> UUID:
    async with await Engine.open(settings, application="partita-bench") as engine:
        await engine.deploy(NAMESPACE, NAME, SPEC)
        return (await engine.start(StartRequest(namespace=NAMESPACE, definition=NAME))).run_id


def _process(settings: Settings, sizes: Sizes, mode: str, hot: UUID, barrier: Barrier, answers: Queue[Tally]) -> None:
    answers.put(run(_work(settings, sizes, mode, hot, barrier)))


async def _work(settings: Settings, sizes: Sizes, mode: str, hot: UUID, barrier: Barrier) -> Tally:
    """One coordinator: its own runs and the hot one, as fast as they go."""
    tally = Tally()
    _watch_locks(tally, plain=mode == "plain")
    async with await Engine.open(settings, application="partita-bench") as engine:
        await engine.deploy(NAMESPACE, NAME, SPEC)
        starts = (engine.start(StartRequest(namespace=NAMESPACE, definition=NAME)) for _ in range(sizes.runs))
        runs = [reply.run_id for reply in await asyncio.gather(*starts)]
        await asyncio.to_thread(barrier.wait, _PATIENCE)
        tally.skips = tally.alone = 0
        before, end = engine.coordinator.transactions, time.perf_counter() + sizes.seconds
        cold = (_toggle(engine, run_id, end, tally.cold) for run_id in runs)
        await asyncio.gather(*cold, *(_toggle(engine, hot, end, tally.hot) for _ in range(_HOT_DRIVERS)))
        tally.transactions = engine.coordinator.transactions - before
    return tally


async def _toggle(engine: Engine, run_id: UUID, end: float, times: list[float]) -> None:
    """Suspend and resume a run until the time is over."""
    suspend = True
    while (begun := time.perf_counter()) < end:
        await engine.apply(run_id, SuspendRequested() if suspend else ResumeRequested())
        times.append(time.perf_counter() - begun)
        suspend = not suspend


def _watch_locks(tally: Tally, *, plain: bool) -> None:
    """Count what statement 1 skips, in this process; ``plain``: let it wait instead."""
    original = slices.lock_runs

    async def lock_runs(connection: Connection, sql: Sql, ids: Sequence[UUID], *, wait: bool = False) -> set[UUID]:
        locked = await original(connection, sql, ids, wait=wait or plain)
        tally.skips += len(ids) - len(locked)
        tally.alone += wait
        return locked

    slices.lock_runs = lock_runs


def _rate(tally: Tally, sizes: Sizes) -> float:
    return (len(tally.cold) + len(tally.hot)) / sizes.seconds


def _figures(count: int, found: dict[tuple[int, str], list[Tally]], sizes: Sizes) -> list[Figure]:
    figures = []
    for mode in MODES:
        tallies = found[count, mode]
        setting: dict[str, Any] = {
            "coordinators": count,
            "runs": sizes.runs,
            "seconds": sizes.seconds,
            "hot_events_per_second": round(statistics.median(len(one.hot) for one in tallies) / sizes.seconds),
            "skips": round(statistics.median(one.skips for one in tallies)),
            "alone": round(statistics.median(one.alone for one in tallies)),
            "transactions": round(statistics.median(one.transactions for one in tallies)),
        }
        name = f"hot_run_{count}" + ("_plain_locking" if mode == "plain" else "")
        longest = [max(one.hot) * 1000 for one in tallies]
        cold = [percentile(one.cold, 0.99) * 1000 for one in tallies]
        figures += [
            Figure.median(name, [_rate(one, sizes) for one in tallies], "events/s", setting=setting),
            Figure.median(f"{name}_longest_wait", longest, "ms", better="lower", setting=setting),
            Figure.median(f"{name}_others_p99", cold, "ms", better="lower", setting=setting),
        ]
    return figures


def _shown(tally: Tally, sizes: Sizes) -> str:
    hot = f"hot run {len(tally.hot) / sizes.seconds:,.0f}/s, p99 {percentile(tally.hot, 0.99) * 1000:.0f} ms"
    return (
        f"{_rate(tally, sizes):,.0f} events/s, {tally.transactions} transactions, {tally.skips} skips, "
        f"{tally.alone} waits alone; {hot}, longest {max(tally.hot) * 1000:.0f} ms; "
        f"others p99 {percentile(tally.cold, 0.99) * 1000:.0f} ms, longest {max(tally.cold) * 1000:.0f} ms"
    )


def _parse(arguments: Sequence[str]) -> Sizes:
    parser = argparse.ArgumentParser(prog="python -m bench hot_run", description="Events a second with one hot run.")
    parser.add_argument("--quick", action="store_true", help="tiny sizes, to see whether it works")
    parser.add_argument("--coordinators", default=None, help="numbers of processes, separated by commas (1,2,4,8)")
    parser.add_argument("--seconds", type=float, default=None, help="length of a measurement (4)")
    parser.add_argument("--repeats", type=int, default=None, help="measurements, of which the median is printed (3)")
    parser.add_argument("--runs", type=int, default=None, help="runs of each process besides the hot one (200)")
    found = parser.parse_args(arguments)
    counts, seconds, repeats, runs = ("1,2", 0.5, 1, 20) if found.quick else ("1,2,4,8", 4.0, 3, 200)
    chosen = tuple(int(count) for count in (found.coordinators or counts).split(","))
    return Sizes(chosen, found.seconds or seconds, found.repeats or repeats, found.runs or runs)
