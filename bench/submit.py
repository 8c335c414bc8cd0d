"""Submit: starts a second of one process, many in a call or each its own request, and of two processes at once.

Invariant: every start is answered after its commit; nobody takes the tasks, and the runs stay open. Trade-off: a round
ends with its last answer, so that its first and its last transaction overlap with nothing.
"""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from multiprocessing.queues import Queue
from multiprocessing.synchronize import Barrier
from typing import Final

from bench.cpu import Cpu, used
from bench.figures import Figure, emit, say
from bench.load import Load, loaded
from bench.loop import run
from bench.options import Options, as_setting, parse
from bench.postgres import measured
from bench.workload import NAME, NAMESPACE
from partita.engine.engine import Engine
from partita.engine.requests import StartReply, StartRequest
from partita.settings import Settings

GOAL: Final = 15_000
_CALL: Final = 5_000
"""Most requests of one call."""
_PROCESSES: Final = 2
_PATIENCE: Final = 120.0


@dataclass(frozen=True, slots=True)
class Sample:
    """One round."""

    runs: int
    seconds: float
    cpu: Cpu

    @property
    def rate(self) -> float:
        """Starts a second."""
        return self.runs / self.seconds


def main(arguments: Sequence[str]) -> None:
    """Measure and print."""
    options = parse(arguments, "submit", "Starts a second, batched and one by one.", runs=20_000, submitters=1_000)
    options = replace(options, workers=0)
    with measured() as settings:
        figures = run(measure(replace_queues(settings), options))
        figures.append(together(settings, options))
        emit(figures)


async def measure(settings: Settings, options: Options) -> list[Figure]:
    """Rounds of one process; the runs stay open."""
    async with loaded(settings, options) as load:
        single = await rounds(load, options, "one by one", load.submit)
        batched = await rounds(load, options, "batched", lambda count: start_many(load.engine, count))
    setting = {**as_setting(options), "call": _CALL, "transaction": settings.engine.batch_size}
    python = [sample.cpu.python / sample.runs * 1e6 for sample in batched]
    postgres = [sample.cpu.postgres / sample.runs * 1e6 for sample in batched]
    return [
        Figure.median("submit", [each.rate for each in batched], "runs/s", goal=GOAL, setting=setting),
        Figure.median("submit_one_by_one", [each.rate for each in single], "runs/s", setting=as_setting(options)),
        Figure.median("submit_python", python, "µs/run", better="lower", setting=setting),
        Figure.median("submit_postgres", postgres, "µs/run", better="lower", setting=setting),
    ]


async def rounds(load: Load, options: Options, what: str, submit: Callable[[int], Awaitable[None]]) -> list[Sample]:
    """Samples, after a warm-up."""
    await submit(max(1, options.runs // 10))
    samples = []
    for number in range(options.repeats):
        before, begun = used(load.postmaster), time.perf_counter()
        await submit(options.runs)
        seconds = time.perf_counter() - begun
        samples.append(Sample(options.runs, seconds, used(load.postmaster) - before))
        say(f"submit, {what}, {number + 1}/{options.repeats}: {samples[-1].rate:,.0f} runs/s")
    return samples


async def start_many(engine: Engine, count: int) -> None:
    """So many runs, in calls of many requests; whatever is not started is a fault."""
    for first in range(0, count, _CALL):
        size = min(_CALL, count - first)
        answers = await engine.start_many([StartRequest(namespace=NAMESPACE, definition=NAME) for _ in range(size)])
        failed = [answer for answer in answers if not (isinstance(answer, StartReply) and answer.created)]
        if failed:
            raise SystemExit(f"bench: {len(failed)} of {size} runs were not started: {failed[0]}")


def together(settings: Settings, options: Options) -> Figure:
    """Two processes at once, each with its share of the runs."""
    context = multiprocessing.get_context("spawn")
    barrier: Barrier = context.Barrier(_PROCESSES)
    spans: Queue[tuple[float, float]] = context.Queue()
    share, samples = max(1, options.runs // _PROCESSES), []
    arguments = (settings, share, options.repeats, barrier, spans)
    processes = [context.Process(target=_process, args=arguments, daemon=True) for _ in range(_PROCESSES)]
    for process in processes:
        process.start()
    for number in range(options.repeats):
        begun, ended = zip(*(spans.get(timeout=_PATIENCE) for _ in processes), strict=True)
        samples.append(share * _PROCESSES / (max(ended) - min(begun)))
        say(f"submit, {_PROCESSES} processes, {number + 1}/{options.repeats}: {samples[-1]:,.0f} runs/s")
    for process in processes:
        process.join(_PATIENCE)
    setting = {**as_setting(options), "processes": _PROCESSES, "call": _CALL}
    return Figure.median("submit_two_processes", samples, "runs/s", setting=setting)


def _process(settings: Settings, share: int, repeats: int, barrier: Barrier, spans: Queue[tuple[float, float]]) -> None:
    run(_rounds(settings, share, repeats, barrier, spans))


async def _rounds(
    settings: Settings, share: int, repeats: int, barrier: Barrier, spans: Queue[tuple[float, float]]
) -> None:
    async with await Engine.open(settings, application="partita-bench") as engine:
        await start_many(engine, max(1, share // 10))
        for _ in range(repeats):
            barrier.wait(_PATIENCE)
            begun = time.monotonic()
            await start_many(engine, share)
            spans.put((begun, time.monotonic()))


def replace_queues(settings: Settings) -> Settings:
    """A worker of another queue, so that nobody takes the tasks."""
    return replace(settings, worker=replace(settings.worker, queues=("nobody",)))
