"""A picture of throughput against retained months, processes and batch size.

    python -m bench.plot FILE [PICTURE]

FILE holds what ``python -m bench sweep`` (or all of ``make bench``) printed; other lines in it are passed over. A point
is the median, the bar through it reaches from the slowest to the fastest turn. All panels of a row share one scale
that begins at zero, so that a difference looks as large as it is. Below stands the processor time a step, which the
neighbours on a busy machine spoil less.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

import orjson

from bench.figures import say

PICTURE: Final = Path(__file__).parents[1] / ".state" / "throughput.png"
_AXES: Final = (
    ("months", "retained months"),
    ("workers", "processes that submit and work"),
    ("batch", "most events in one transaction"),
)
_LINE: Final = "#1f5fa8"
_TEXT: Final = "#222222"
_OTHER: Final = "#b5651d"
_QUIET: Final = "#8a8a8a"


@dataclass(frozen=True, slots=True)
class Point:
    """One measured setting."""

    at: int
    median: float
    least: float
    most: float
    postgres: float
    """Microseconds of processor time a step."""
    python: float


def points(lines: Iterable[str]) -> dict[str, list[Point]]:
    """The points of each axis in order, from lines of JSON among which others may be."""
    found: dict[str, list[Point]] = {}
    for line in lines:
        if not line.startswith('{"figure":"sweep_'):
            continue
        figure: dict[str, Any] = orjson.loads(line)
        setting = figure["setting"]
        costs = setting["postgres_us"], setting["python_us"]
        point = Point(setting["at"], figure["value"], figure["min"], figure["max"], *costs)
        found.setdefault(setting["axis"], []).append(point)
    return {axis: sorted(of_axis, key=lambda point: point.at) for axis, of_axis in found.items()}


def draw_if_possible(lines: Sequence[str], picture: Path) -> None:
    """Draw, or say what is missing."""
    if find_spec("matplotlib") is None:
        say("plot: matplotlib is not installed; try: make bench ARGS=sweep")
        return
    draw(points(lines), picture)
    say(f"plot: {picture}")


def draw(found: dict[str, list[Point]], picture: Path) -> None:
    """Write the picture."""
    from matplotlib.figure import Figure  # noqa: PLC0415  # only whoever draws needs it

    axes = [(axis, label) for axis, label in _AXES if axis in found]
    figure = Figure(figsize=(4.2 * len(axes), 6.2), dpi=130, layout="constrained")
    rows = figure.subplots(2, len(axes), sharey="row", sharex="col", squeeze=False, height_ratios=(3, 2))
    everything = [point for of_axis in found.values() for point in of_axis]
    for place, (axis, label) in enumerate(axes):
        _rates(rows[0][place], found[axis], max(point.most for point in everything) * 1.15)
        _costs(rows[1][place], found[axis], max(max(point.python, point.postgres) for point in everything) * 1.3)
        rows[1][place].set_xlabel(label, color=_TEXT)
    rows[0][0].set_ylabel("steps a second", color=_TEXT)
    rows[1][0].set_ylabel("processor time a step, µs", color=_TEXT)
    figure.suptitle("Durable steps a second, one thing changed at a time", color=_TEXT, fontsize=12, x=0.01, ha="left")
    picture.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(picture)


def _rates(panel: Any, of_axis: Sequence[Point], top: float) -> None:
    medians = [point.median for point in of_axis]
    spread = [[p.median - p.least for p in of_axis], [p.most - p.median for p in of_axis]]
    panel.errorbar(
        range(len(of_axis)), medians, yerr=spread, color=_LINE, ecolor=_QUIET, elinewidth=1, capsize=3, marker="o", ms=5
    )
    for place, point in enumerate(of_axis):
        _say(panel, f"{point.median:,.0f}", (place, point.most), (0, 5), "center", _TEXT)
    _frame(panel, of_axis, top)


def _costs(panel: Any, of_axis: Sequence[Point], top: float) -> None:
    places = range(len(of_axis))
    for name, color, costs in (
        ("Python", _OTHER, [point.python for point in of_axis]),
        ("PostgreSQL", _LINE, [point.postgres for point in of_axis]),
    ):
        panel.plot(places, costs, color=color, marker="o", ms=4)
        _say(panel, name, (0, costs[0]), (-4, 7), "left", color)
        if len(of_axis) > 1:
            _say(panel, f"{costs[-1]:,.0f}", (places[-1], costs[-1]), (0, 7), "center", color)
    _frame(panel, of_axis, top)


def _say(panel: Any, text: str, at: tuple[float, float], beside: tuple[int, int], align: str, color: str) -> None:
    panel.annotate(text, at, xytext=beside, textcoords="offset points", ha=align, color=color, fontsize=9)


def _frame(panel: Any, of_axis: Sequence[Point], top: float) -> None:
    panel.set_xticks(list(range(len(of_axis))), [str(point.at) for point in of_axis], color=_TEXT)
    panel.set_xlim(-0.4, len(of_axis) - 0.6)
    panel.set_ylim(0, top)
    panel.yaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    panel.grid(axis="y", color="#e4e4e4", linewidth=0.8)
    panel.set_axisbelow(True)
    for side in ("top", "right", "left"):
        panel.spines[side].set_visible(False)
    panel.tick_params(axis="both", length=0, labelcolor=_TEXT)


def main(arguments: Sequence[str]) -> int:
    """Draw what a file holds; returns the exit code."""
    if not 1 <= len(arguments) <= 2 or arguments[0].startswith("-"):
        say("usage: python -m bench.plot FILE [PICTURE]")
        return 2
    try:
        found = points(Path(arguments[0]).read_text(encoding="utf-8").splitlines())
    except OSError as error:
        say(f"plot: {arguments[0]}: cannot be read: {error.strerror}; try: python -m bench sweep > {arguments[0]}")
        return 1
    if not found:
        say(f"plot: {arguments[0]}: no figures of the sweep in it; try: python -m bench sweep > {arguments[0]}")
        return 1
    picture = Path(arguments[1]) if len(arguments) > 1 else PICTURE
    draw(found, picture)
    say(f"plot: {picture}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
