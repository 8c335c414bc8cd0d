"""Ceiling: steps a second of bare SQL that writes the same rows as the engine, in batches of the same size.

What ``bench.bare`` has decided beforehand is sent over one and over two connections; the better of the two is the
ceiling, since an engine may use as many as it likes.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence

from bench import bare
from bench.figures import Figure, emit, say
from bench.options import Options, as_setting, parse
from bench.postgres import measured
from bench.workload import STEPS
from partita.settings import Settings
from partita.store.database import Dedicated
from partita.store.sql import Sql


def main(arguments: Sequence[str]) -> None:
    """Measure and print."""
    options = parse(arguments, "ceiling", "Steps a second of bare SQL that writes the same rows.")
    with measured() as settings:
        emit(asyncio.run(measure(settings, options)))


async def measure(settings: Settings, options: Options) -> list[Figure]:
    """Rates over one and two connections, and the better one."""
    await rate(settings, options.runs, 2)
    samples: dict[int, list[float]] = {1: [], 2: []}
    for number in range(options.repeats):
        for connections, found in samples.items():
            found.append(await rate(settings, options.runs, connections))
        say(f"ceiling {number + 1}/{options.repeats}: " + _shown(samples))
    figures = [
        Figure.median(f"ceiling_{connections}_connections", found, "steps/s", setting=as_setting(options))
        for connections, found in samples.items()
    ]
    best = max(figures, key=lambda figure: figure.value or 0)
    return [*figures, Figure.median("ceiling", best.samples, "steps/s", setting={"like": best.figure})]


def _shown(samples: dict[int, list[float]]) -> str:
    return ", ".join(f"{found[-1]:,.0f} steps/s over {count}" for count, found in samples.items())


async def rate(settings: Settings, runs: int, connections: int) -> float:
    """Steps a second of ``runs`` runs, decided before the clock starts."""
    size = min(settings.engine.batch_size, max(1, runs // connections))
    parsed = bare.definition()
    batches = [bare.decided(min(size, runs - done), parsed) for done in range(0, runs, size)]
    sessions = [Dedicated(settings.database, f"bench/{number}", planner=True) for number in range(connections)]
    try:
        for session in sessions:
            await session.connection()
        begun = time.perf_counter()
        await asyncio.gather(*(_work(batches, session, Sql(settings.database.schema)) for session in sessions))
        return runs * STEPS / (time.perf_counter() - begun)
    finally:
        for session in sessions:
            await session.close()


async def _work(batches: list[list[bare.Transition]], session: Dedicated, sql: Sql) -> None:
    """Take batches until none are left."""
    while batches:
        await bare.play(batches.pop(), session, sql)
