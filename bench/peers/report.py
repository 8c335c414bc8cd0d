"""What was measured of peers: a table for people, and figures whose setting names the peer.

Invariant: a result with a problem has no value, whatever was measured before it.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from bench.figures import Better, Figure
from bench.latency import percentile
from bench.peers.turns import Turn

_HEAD: Final = (
    "peer",
    "version",
    "steps/s",
    "min",
    "max",
    "p50 ms",
    "p99 ms",
    "WAL B/step",
    "commits/step",
    "CPU us/step",
    "turns",
)


@dataclass(slots=True)
class Result:
    """One peer's turns."""

    name: str
    turns: list[Turn] = field(default_factory=list)
    lone: list[tuple[float, ...]] = field(default_factory=list)
    """Milliseconds of lone runs of one that has nothing else."""
    setting: dict[str, Any] = field(default_factory=dict)
    problem: str | None = None
    """Why there are no figures."""

    def samples(self, value: Callable[[Turn], float]) -> list[float]:
        """A value of every turn; none when there was a problem."""
        return [] if self.problem else [value(turn) for turn in self.turns]

    def processor(self) -> list[float]:
        """Microseconds a step of every turn; none where they cannot be seen."""
        return [] if self.problem else [turn.cpu for turn in self.turns if turn.cpu is not None]

    def milliseconds(self, share: float) -> list[float]:
        """A percentile of the lone runs of every turn."""
        groups = self.lone or [turn.lone for turn in self.turns]
        return [] if self.problem else [percentile(group, share) for group in groups]


def figures(results: Iterable[Result]) -> list[Figure]:
    """All lines."""
    return [figure for result in results for figure in _figures(result)]


def table(results: Sequence[Result]) -> str:
    """The fastest first, those without figures last."""
    order = sorted(results, key=lambda result: -_median(result.samples(lambda turn: turn.rate), 0.0))
    rows = [_HEAD, *map(_row, order)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(_HEAD))]
    lines = [_line(row, widths) for row in rows]
    failed = [f"{result.name}: no figures: {result.problem}" for result in results if result.problem]
    return "\n".join([*lines, *failed])


def shown(result: Result) -> str:
    """The last turn in words."""
    turn = result.turns[-1]
    lone = f"{percentile(turn.lone, 0.5):.1f} ms p50, {percentile(turn.lone, 0.99):.1f} ms p99"
    cpu = "" if turn.cpu is None else f", {turn.cpu:,.0f} us of processor"
    return f"{turn.rate:,.0f} steps/s, {lone}; a step: {turn.wal:,.0f} B of WAL, {turn.commits:.2f} commits{cpu}"


def _figures(result: Result) -> list[Figure]:
    found = [
        _figure(result, "peer_latency_p50", result.milliseconds(0.5), "ms", "lower"),
        _figure(result, "peer_latency_p99", result.milliseconds(0.99), "ms", "lower"),
    ]
    if result.lone:
        return found
    cpu = result.processor()
    found = [
        _figure(result, "peer_throughput", result.samples(lambda turn: turn.rate), "steps/s", "higher"),
        *found,
        _figure(result, "peer_wal", result.samples(lambda turn: turn.wal), "B/step", "lower"),
        _figure(result, "peer_commits", result.samples(lambda turn: turn.commits), "1/step", "lower"),
    ]
    return [*found, _figure(result, "peer_cpu", cpu, "us/step", "lower")] if cpu or not result.turns else found


def _figure(result: Result, name: str, samples: list[float], unit: str, better: Better) -> Figure:
    setting = {"peer": result.name, **result.setting}
    if not samples:
        why = {**setting, "why": result.problem or "no turn was completed"}
        return Figure(figure=name, value=None, unit=unit, better=better, setting=why)
    return Figure.median(name, samples, unit, better=better, setting=setting)


def _row(result: Result) -> tuple[str, ...]:
    rates = result.samples(lambda turn: turn.rate)
    numbers = (
        (_median(rates, None), 0),
        (min(rates, default=None), 0),
        (max(rates, default=None), 0),
        (_median(result.milliseconds(0.5), None), 1),
        (_median(result.milliseconds(0.99), None), 1),
        (_median(result.samples(lambda turn: turn.wal), None), 0),
        (_median(result.samples(lambda turn: turn.commits), None), 2),
        (_median(result.processor(), None), 0),
    )
    cells = ("" if value is None else f"{value:,.{digits}f}" for value, digits in numbers)
    return (result.name, str(result.setting.get("version", "")), *cells, str(len(rates) or len(result.lone)))


def _median(samples: Sequence[float], otherwise: Any) -> Any:
    return statistics.median(samples) if samples else otherwise


def _line(row: tuple[str, ...], widths: Sequence[int]) -> str:
    cells = (
        text.ljust(width) if column < 2 else text.rjust(width)
        for column, (text, width) in enumerate(zip(row, widths, strict=True))
    )
    return "  ".join(cells).rstrip()
