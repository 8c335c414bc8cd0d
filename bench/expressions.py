"""Expressions: milliseconds that the most hostile ones take inside a transaction, one field and one decision at a time.

A field is evaluated with the longest list that its budget of steps allows, and its processor time is measured, since
that does not depend on the neighbours. What a whole decision may take is measured by ``decisions.py``.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence
from typing import Final

from bench import decisions
from bench.figures import Figure, emit, say
from bench.hostile import CASES, Hostile, fits, largest
from bench.loop import run
from bench.options import Options, parse
from bench.postgres import measured
from partita import collector

FIELD_GOAL: Final = 50.0


def main(arguments: Sequence[str]) -> None:
    """Measure and print."""
    options = parse(arguments, "expressions", "Milliseconds of hostile expressions.", repeats=5, runs=1_000)
    collector.calm()
    figures = fields(options)
    with measured() as settings:
        figures += run(decisions.measure(settings, options))
    emit(figures)


def fields(options: Options) -> list[Figure]:
    """Every hostile case, and the worst of them."""
    cases = CASES[::8] if options.quick else CASES
    figures = [_field(case, options.repeats) for case in cases]
    worst = max(figures, key=lambda figure: figure.value or 0)
    say(f"worst: {worst.figure} {worst.value:.1f} ms")
    setting = {"case": worst.figure.removeprefix("expression_")}
    name = "expression_worst"
    return [*figures, Figure.median(name, worst.samples, "ms", goal=FIELD_GOAL, better="lower", setting=setting)]


def _field(case: Hostile, repeats: int) -> Figure:
    count, template = largest(case), case.template()
    scope = case.scope(count)
    samples = []
    for _ in range(repeats):
        begun = time.process_time()
        fits(template, scope)
        samples.append((time.process_time() - begun) * 1e3)
    say(f"{case.name}: {statistics.median(samples):.1f} ms with {count:,} items")
    return Figure.median(
        f"expression_{case.name}", samples, "ms", goal=FIELD_GOAL, better="lower", setting={"items": count}
    )
