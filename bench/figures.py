"""What a benchmark prints: words for people on stderr, one JSON line a figure on stdout.

Invariant: a line holds everything that is needed to compare it later: the median, the spread, how often it was
measured, the goal and the setting. Trade-off: the median of few runs says nothing about the tail; where the tail is the
point (latency), it is a figure of its own.
"""

from __future__ import annotations

import os
import statistics
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import orjson

Better = Literal["higher", "lower"]


def say(text: str) -> None:
    """Tell the person who waits how far it is."""
    print(text, file=sys.stderr, flush=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One measured number."""

    figure: str
    value: float | None
    """None when it could not be measured here; ``setting`` then says why."""
    unit: str
    goal: float | None = None
    better: Better = "higher"
    samples: tuple[float, ...] = ()
    """What the value is the median of."""
    setting: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def median(
        cls,
        figure: str,
        samples: Sequence[float],
        unit: str,
        *,
        goal: float | None = None,
        better: Better = "higher",
        setting: Mapping[str, Any] | None = None,
    ) -> Figure:
        """The median of some runs."""
        value = statistics.median(samples)
        return cls(
            figure=figure,
            value=value,
            unit=unit,
            goal=goal,
            better=better,
            samples=tuple(samples),
            setting=setting or {},
        )

    @property
    def met(self) -> bool | None:
        """Whether the goal is reached; None without a goal or a value."""
        if self.goal is None or self.value is None:
            return None
        return self.value >= self.goal if self.better == "higher" else self.value <= self.goal

    def line(self) -> str:
        """The figure as one line of JSON."""
        samples = self.samples or (() if self.value is None else (self.value,))
        content = {
            "figure": self.figure,
            "value": _rounded(self.value),
            "unit": self.unit,
            "goal": self.goal,
            "better": self.better,
            "met": self.met,
            "runs": len(samples),
            "min": _rounded(min(samples, default=None)),
            "max": _rounded(max(samples, default=None)),
            "load": round(os.getloadavg()[0], 2),
            "setting": dict(self.setting),
        }
        return orjson.dumps(content).decode()


def emit(figures: Iterable[Figure]) -> None:
    """Print the JSON lines, which come last."""
    for figure in figures:
        print(figure.line(), flush=True)


def table(lines: Sequence[Mapping[str, Any]]) -> str:
    """Figures, as parsed from their lines, as a table for people."""
    head = ("figure", "median", "min", "max", "runs", "unit", "goal", "")
    rows = [head, *(_row(line) for line in lines)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(head))]
    return "\n".join("  ".join(_cell(row, column, widths) for column in range(len(head))).rstrip() for row in rows)


def _row(line: Mapping[str, Any]) -> tuple[str, ...]:
    goal = "" if line["goal"] is None else f"{'≥' if line['better'] == 'higher' else '≤'} {_short(line['goal'])}"
    verdict = {True: "reached", False: "MISSED", None: ""}[line["met"]]
    numbers = (_short(line[name]) for name in ("value", "min", "max"))
    peer = line.get("setting", {}).get("peer", "")
    return (f"{line['figure']} {peer}".rstrip(), *numbers, str(line["runs"]), line["unit"], goal, verdict)


def _cell(row: tuple[str, ...], column: int, widths: list[int]) -> str:
    return row[column].ljust(widths[column]) if column in {0, 5, 7} else row[column].rjust(widths[column])


def _rounded(value: float | None) -> float | None:
    """Four significant digits; of large numbers all before the point."""
    return value if value is None else float(f"{value:.0f}" if abs(value) >= 10_000 else f"{value:.4g}")


def _short(value: float | None) -> str:
    if value is None:
        return "?"
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
