"""Submit: starts a second, batched: one process, many starts under way, each answered after its commit; no workers."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace

from bench.figures import Figure, emit, say
from bench.load import loaded
from bench.loop import run
from bench.options import Options, as_setting, parse
from bench.postgres import measured
from partita.settings import Settings

GOAL = 15_000


def main(arguments: Sequence[str]) -> None:
    """Measure and print."""
    options = parse(arguments, "submit", "Starts a second of one process.", runs=10_000, submitters=1_000, workers=0)
    with measured() as settings:
        emit(run(measure(settings, options)))


async def measure(settings: Settings, options: Options) -> list[Figure]:
    """Rounds of starts; the runs stay open."""
    samples = []
    async with loaded(replace_queues(settings), options) as load:
        await load.submit(max(1, options.runs // 10))
        for number in range(options.repeats):
            begun = time.perf_counter()
            await load.submit(options.runs)
            samples.append(options.runs / (time.perf_counter() - begun))
            say(f"submit {number + 1}/{options.repeats}: {samples[-1]:,.0f} runs/s")
    return [Figure.median("submit", samples, "runs/s", goal=GOAL, setting=as_setting(options))]


def replace_queues(settings: Settings) -> Settings:
    """A worker of another queue, so that nobody takes the tasks."""
    return replace(settings, worker=replace(settings.worker, queues=("nobody",)))
