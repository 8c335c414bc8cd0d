"""Throughput: steps a second from submission to the recorded end, and its share of bare SQL in the same run.

Rounds of the engine and of bare SQL that writes the same rows take turns on one server, so that both see the same disk
and the same neighbours.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from bench import ceiling
from bench.figures import Figure, emit, say
from bench.load import Round, loaded
from bench.loop import run
from bench.options import Options, as_setting, parse
from bench.postgres import measured
from partita.settings import Settings

GOAL = 12_000
SHARE_GOAL = 0.4


def main(arguments: Sequence[str]) -> None:
    """Measure and print."""
    options = parse(arguments, "throughput", "Steps a second, submitted to finished.", workers=2, call=200)
    with measured() as settings:
        emit(run(measure(settings, options)))


async def measure(settings: Settings, options: Options) -> list[Figure]:
    """Rounds of the engine, each followed by one of bare SQL."""
    rounds: list[Round] = []
    bare: list[float] = []
    async with loaded(settings, options) as load:
        await load.round(max(1, options.runs // 4))
        for number in range(options.repeats):
            rounds.append(await load.round(options.runs))
            bare.append(await ceiling.rate(settings, options.runs, 2))
            say(f"throughput {number + 1}/{options.repeats}: {_shown(rounds[-1])}; bare SQL {bare[-1]:,.0f} steps/s")
    return _figures(rounds, bare, options)


def _figures(rounds: list[Round], bare: list[float], options: Options) -> list[Figure]:
    share = [round_.rate / rate for round_, rate in zip(rounds, bare, strict=True)]
    setting = as_setting(options)
    figures = [
        Figure.median("throughput", [one.rate for one in rounds], "steps/s", goal=GOAL, setting=setting),
        Figure.median(
            "throughput_share_of_bare_sql",
            share,
            "ratio",
            goal=SHARE_GOAL,
            setting={"bare_sql": round(statistics.median(bare))},
        ),
        Figure.median("python_cpu", [one.python_us() for one in rounds], "us/step", better="lower", setting=setting),
    ]
    if all(one.cpu.postgres for one in rounds):
        cost = [one.postgres_us() for one in rounds]
        figures.append(Figure.median("postgres_cpu", cost, "us/step", better="lower", setting=setting))
    return figures


def _shown(one: Round) -> str:
    return f"{one.rate:,.0f} steps/s (Python {one.python_us():.0f} us, PostgreSQL {one.postgres_us():.0f} us a step)"
