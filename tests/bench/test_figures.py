"""Lines, table, and the counting of statements in a log."""

from __future__ import annotations

import json

import pytest

from bench.counters import count_statements
from bench.figures import Better, Figure, table
from bench.latency import percentile

LOG = """\
2026-01-01 00:00:00 UTC [7] partita-bench/coordinator-0 LOG:  duration: 0.1 ms  statement: BEGIN
2026-01-01 00:00:00 UTC [7] partita-bench/coordinator-0 LOG:  duration: 0.1 ms  parse s1: SELECT 1
2026-01-01 00:00:00 UTC [7] partita-bench/coordinator-0 LOG:  duration: 0.1 ms  bind s1: SELECT 1
2026-01-01 00:00:00 UTC [7] partita-bench/coordinator-0 LOG:  duration: 0.1 ms  execute s1: SELECT 1
    FROM a_second_line
2026-01-01 00:00:00 UTC [8] partita-bench/worker LOG:  duration: 0.1 ms  execute s1: SELECT 2
2026-01-01 00:00:00 UTC [7] partita-bench/coordinator-0 LOG:  duration: 4.1 ms  statement: COMMIT
"""


def test_median_spread_and_goal() -> None:
    figure = Figure.median("throughput", [3.0, 1.0, 2.0], "steps/s", goal=2, setting={"runs": 5})
    line = json.loads(figure.line())
    assert (line["value"], line["min"], line["max"], line["runs"]) == (2.0, 1.0, 3.0, 3)
    assert line["met"] is True
    assert line["setting"] == {"runs": 5}


@pytest.mark.parametrize(
    ("value", "better", "met"),
    [(2.0, "higher", True), (1.9, "higher", False), (2.0, "lower", True), (2.1, "lower", False)],
)
def test_goal_is_reached_from_its_own_side(value: float, better: Better, met: bool) -> None:
    assert Figure(figure="f", value=value, unit="u", goal=2.0, better=better).met is met


def test_figure_that_was_not_measured() -> None:
    figure = Figure(figure="f", value=None, unit="u", goal=1.0, setting={"why": "no cluster"})
    line = json.loads(figure.line())
    assert line["value"] is None
    assert line["met"] is None
    assert "f" in table([line])


def test_table_shows_what_was_missed() -> None:
    good, bad = (
        Figure(figure="good", value=12.0, unit="s", goal=10.0),
        Figure(figure="bad", value=1.0, unit="s", goal=10.0),
    )
    rows = table([json.loads(good.line()), json.loads(bad.line())]).splitlines()
    assert rows[1].endswith("reached")
    assert rows[2].endswith("MISSED")


def test_statements_are_counted_once_and_by_application() -> None:
    assert count_statements(LOG, "coordinator-") == (3, 1)


def test_percentiles() -> None:
    samples = [float(number) for number in range(1, 101)]
    assert percentile(samples, 0.5) == 51
    assert percentile(samples, 0.99) == 100
    assert percentile([7.0], 0.99) == 7
