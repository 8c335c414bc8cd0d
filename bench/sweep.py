"""Sweep: steps a second against retained months, processes and batch size, one of them changed at a time.

All settings take turns, so that the neighbours of one are those of the others; the median of the turns is printed, and
drawn as a picture where matplotlib is installed (``plot``). The other two are always the usual ones: no past month, two
processes, the engine's own batch size.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from bench import plot
from bench.churn import Window, churning
from bench.figures import Figure, emit, say
from bench.growth import fill_months, retained
from bench.loop import run
from bench.postgres import Base, database, server
from partita.settings import Settings

_WARM: Final = 1.5
_SLOTS: Final = 200


@dataclass(frozen=True, slots=True)
class Sizes:
    """How much is measured."""

    months: tuple[int, ...]
    workers: tuple[int, ...]
    batches: tuple[int, ...]
    history: int
    seconds: float
    repeats: int
    load: int
    picture: Path


@dataclass(frozen=True, slots=True)
class Point:
    """One setting."""

    axis: str
    value: int
    settings: Settings
    processes: int


def main(arguments: Sequence[str]) -> None:
    """Measure, print and draw."""
    sizes = _parse(arguments)
    with server() as base, ExitStack() as stack:
        points = _points(base, stack, sizes)
        windows: dict[tuple[str, int], list[Window]] = {}
        for number in range(sizes.repeats):
            for point in points:
                window = run(_turn(point, sizes))
                windows.setdefault((point.axis, point.value), []).append(window)
                say(f"sweep {number + 1}/{sizes.repeats}: {point.axis} {point.value}: {window.rate:,.0f} steps/s")
    figures = [_figure(axis, value, found, sizes) for (axis, value), found in windows.items()]
    plot.draw_if_possible([figure.line() for figure in figures], sizes.picture)
    emit(figures)


def _points(base: Base, stack: ExitStack, sizes: Sizes) -> list[Point]:
    """Each setting with a database of its own where months differ, else with one that all share."""
    points, usual = [], stack.enter_context(database(base, retained(0)))
    for months in sizes.months:
        settings = stack.enter_context(database(base, retained(months)))
        run(fill_months(settings, months, sizes.history))
        points.append(Point("months", months, settings, min(2, max(sizes.workers))))
    points += [Point("workers", count, usual, count) for count in sizes.workers]
    for size in sizes.batches:
        settings = replace(usual, engine=replace(usual.engine, batch_size=size))
        points.append(Point("batch", size, settings, min(2, max(sizes.workers))))
    return points


async def _turn(point: Point, sizes: Sizes) -> Window:
    load = churning(point.settings, processes=point.processes, in_flight=sizes.load, slots=_SLOTS)
    async with load as churn:
        await churn.window(min(_WARM, sizes.seconds))
        return await churn.window(sizes.seconds)


def _figure(axis: str, value: int, windows: Sequence[Window], sizes: Sizes) -> Figure:
    setting = {
        "axis": axis,
        "at": value,
        "seconds": sizes.seconds,
        "postgres_us": round(statistics.median(window.postgres_us for window in windows)),
        "python_us": round(statistics.median(window.python_us for window in windows)),
    }
    name = f"sweep_{axis}_{value}"
    return Figure.median(name, [window.rate for window in windows], "steps/s", setting=setting)


def _parse(arguments: Sequence[str]) -> Sizes:
    parser = argparse.ArgumentParser(prog="python -m bench sweep", description="Steps a second along three axes.")
    parser.add_argument("--quick", action="store_true", help="tiny sizes, to see whether it works")
    parser.add_argument("--months", default=None, help="retained months, separated by commas (1,6,12,24)")
    parser.add_argument("--workers", default=None, help="processes that submit and work (1,2,3)")
    parser.add_argument("--batches", default=None, help="most events of a transaction (50,100,200,400)")
    parser.add_argument("--history", type=int, default=None, help="finished runs of each past month (500)")
    parser.add_argument("--seconds", type=float, default=None, help="length of a turn (4)")
    parser.add_argument("--repeats", type=int, default=None, help="turns, of which the median is printed (5)")
    parser.add_argument("--picture", type=Path, default=plot.PICTURE, help=f"where to draw it ({plot.PICTURE})")
    found = parser.parse_args(arguments)
    months, workers, batches = ("1,2", "1", "50") if found.quick else ("1,6,12,24", "1,2,3", "50,100,200,400")
    history, seconds, repeats, load = (10, 0.3, 1, 40) if found.quick else (500, 4.0, 5, 800)
    return Sizes(
        _numbers(found.months or months),
        _numbers(found.workers or workers),
        _numbers(found.batches or batches),
        found.history or history,
        found.seconds or seconds,
        found.repeats or repeats,
        load,
        found.picture,
    )


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(number) for number in text.split(","))
