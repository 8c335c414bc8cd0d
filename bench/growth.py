"""Growth: steps a second with 24 retained months against one, and with many runs in flight against few.

Two databases on one server take turns at the same load, so that both meet the same neighbours; a figure is the median
of the ratios of turns that follow each other. Beside the steps a second, which a busy machine spoils, stands the same
ratio of PostgreSQL's processor time a step.

Months: each past month holds finished runs of three steps in all tables of records. In flight: runs that wait, of
which a half has a timer in the future, a quarter waits for a signal, and a quarter is ready in a queue that nobody
serves, at all levels of priority and in all lanes.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, Final

import asyncpg

from bench.churn import Window, churning
from bench.figures import Figure, emit, say
from bench.loop import run
from bench.postgres import database, server
from bench.workload import NAMESPACE, NODES
from partita.domain.ids import Month
from partita.settings import RetentionSettings, Settings
from partita.store.sql import substitute

GOAL_MONTHS: Final = 0.95
GOAL_IN_FLIGHT: Final = 0.90
_WARM: Final = 8.0
"""Seconds before a turn: each new process plans its statements and does its first round of upkeep, which looks at all
months, and neither belongs to a step."""
_CHUNK: Final = 50_000
_IDS: Final = """
CREATE TEMPORARY TABLE ids AS
SELECT number, to_timestamp(($1::bigint + number * $2::float8) / 1000) AS at,
       (lpad(to_hex(($1::bigint + number * $2::float8)::bigint), 12, '0') || '70008'
        || lpad(to_hex(number), 15, '0'))::uuid AS id
FROM generate_series($3::bigint, $4::bigint) AS number
"""
_HISTORY: Final = """
INSERT INTO :"schema".workflow_runs
    (id, definition_id, start_request_id, created_at, version, total, done, seq, started_at, finished_at, status,
     namespace, name, definition, context_json)
SELECT id, id, id, at, 1, 3, 3, 3, at, at, 'Succeeded', :'namespace', '', 'three-steps', '{"input":{}}' FROM ids;
INSERT INTO :"schema".task_instances
    (run_id, attempt, queued_at, finished_at, fired, state, output, input, queue, kind, node)
SELECT id, 1, at, at, true, 'Completed', 'null', '{}', 'default', 'task', node
FROM ids CROSS JOIN unnest(:'nodes'::text[]) AS node;
INSERT INTO :"schema".run_history (run_id, seq, at, started_at, index, attempt, event, node, who)
SELECT id, seq, at, at, 0, 1, 'TaskCompleted', node, 'bench'
FROM ids CROSS JOIN unnest(:'nodes'::text[]) WITH ORDINALITY AS place (node, seq);
INSERT INTO :"schema".run_endings (run_id, finished_at, generation, seq, status, namespace, definition, name)
SELECT id, at, 0, 4, 'Succeeded', :'namespace', 'three-steps', '' FROM ids
"""
_WAITING: Final = """
INSERT INTO :"schema".workflow_runs
    (id, definition_id, start_request_id, created_at, version, total, active, seq, started_at, status, namespace, name,
     definition, context_json)
SELECT id, id, id, at, 1, 1, 1, 1, at, 'Running', :'namespace', '', 'waits', '{"input":{}}' FROM ids;
INSERT INTO :"schema".task_instances (run_id, attempt, queued_at, fired, state, input, queue, kind, node)
SELECT id, 1, at, true, CASE number % 4 WHEN 3 THEN 'Queued' ELSE 'Waiting' END, '{}', 'elsewhere',
       CASE number % 4 WHEN 3 THEN 'task' ELSE 'wait' END, 'waits'
FROM ids;
INSERT INTO :"schema".open_runs (run_id, namespace, definition, name)
SELECT id, :'namespace', 'waits', '' FROM ids;
INSERT INTO :"schema".timers (run_id, fire_at, index, kind, node)
SELECT id, now() + interval '1 day' + number * interval '1 ms', 0, 'wait', 'waits' FROM ids WHERE number % 4 < 2;
INSERT INTO :"schema".waits (run_id, since, seq, index, name, node)
SELECT id, at, 1, 0, 'approval', 'waits' FROM ids WHERE number % 4 = 2;
INSERT INTO :"schema".ready_tasks
    (run_id, seq, enqueued_at, timeout_ms, index, attempt, generation, lane, priority, queue, namespace, node, type)
SELECT id, (extract(epoch FROM at - timestamptz '2024-01-01 00:00:00+00') * 1000000)::bigint << 12, at, 300000, 0, 1, 0,
       number / 4 % 16, number / 64 % 5 - 2, 'elsewhere', :'namespace', 'waits', 'noop'
FROM ids WHERE number % 4 = 3
"""


@dataclass(frozen=True, slots=True)
class Sizes:
    """How much is measured."""

    parts: tuple[str, ...]
    months: int
    history: int
    """Finished runs of each past month."""
    few: int
    many: int
    """Runs in flight."""
    seconds: float
    repeats: int
    processes: int
    load: int
    """Runs that the load itself keeps in flight."""


def main(arguments: Sequence[str]) -> None:
    """Measure and print."""
    sizes = _parse(arguments)
    figures: list[Figure] = []
    with server() as base:
        if "months" in sizes.parts:
            with ExitStack() as stack:
                pair = [stack.enter_context(database(base, retained(months))) for months in (0, sizes.months)]
                figures += run(_months(pair[0], pair[1], sizes))
        if "in_flight" in sizes.parts:
            with database(base) as small, database(base) as large:
                figures += run(_in_flight(small, large, sizes))
    emit(figures)


def retained(months: int) -> RetentionSettings:
    """Partitions of this month and so many before it."""
    return RetentionSettings(months=max(1, months), months_behind=months, months_ahead=1)


async def fill_months(settings: Settings, months: int, history: int) -> None:
    """Fill so many past months with finished runs."""
    now = Month.of(await _clock(settings))
    for behind in range(1, months + 1):
        month = now.plus(-behind)
        span = (now.plus(1 - behind).start - month.start).total_seconds() * 1000
        await _fill(settings, _HISTORY, history, month.start.timestamp() * 1000, span / (history + 1))
    say(f"{months} months filled with {history:,} runs each")


async def _months(one: Settings, many: Settings, sizes: Sizes) -> list[Figure]:
    await fill_months(many, sizes.months, sizes.history)
    setting = {"months": sizes.months, "runs_a_month": sizes.history}
    return await _compare("months", (one, many), GOAL_MONTHS, sizes, setting)


async def _in_flight(few: Settings, many: Settings, sizes: Sizes) -> list[Figure]:
    for settings, runs in ((few, sizes.few), (many, sizes.many)):
        month = Month.of(await _clock(settings))
        span = ((await _clock(settings)) - month.start).total_seconds() * 1000
        begun = time.monotonic()
        await _fill(settings, _WAITING, runs, month.start.timestamp() * 1000, span / (runs + 1))
        say(f"growth: {runs:,} runs wait, made in {time.monotonic() - begun:.0f} s")
    return await _compare("in_flight", (few, many), GOAL_IN_FLIGHT, sizes, {"few": sizes.few, "many": sizes.many})


async def _clock(settings: Settings) -> Any:
    connection = await asyncpg.connect(settings.database.url)
    try:
        return await connection.fetchval("SELECT clock_timestamp()")
    finally:
        await connection.close()


async def _fill(settings: Settings, text: str, runs: int, first_ms: float, step_ms: float) -> None:
    """Insert runs, ids spread from the first millisecond on, and let the server look at what it got."""
    words = {"schema": settings.database.schema, "namespace": NAMESPACE, "nodes": "{" + ",".join(NODES) + "}"}
    connection = await asyncpg.connect(settings.database.url)
    try:
        for begin in range(1, runs + 1, _CHUNK):
            end = min(runs, begin + _CHUNK - 1)
            async with connection.transaction():
                await connection.execute(_IDS, int(first_ms), step_ms, begin, end)
                await connection.execute(substitute(text, words))
                await connection.execute("DROP TABLE ids")
        await connection.execute("VACUUM (ANALYZE)")
        await connection.execute("CHECKPOINT")
    finally:
        await connection.close()


async def _compare(
    name: str, pair: tuple[Settings, Settings], goal: float, sizes: Sizes, setting: dict[str, Any]
) -> list[Figure]:
    """The same load on both, taking turns."""
    turns: list[tuple[Window, Window]] = []
    for number in range(sizes.repeats):
        first, second = [await _turn(settings, sizes) for settings in pair]
        turns.append((first, second))
        say(f"growth, {name} {number + 1}/{sizes.repeats}: {_shown(first)}, and {_shown(second)}")
    rates = [two.rate / one.rate for one, two in turns]
    costs = [one.postgres_us / two.postgres_us for one, two in turns if two.postgres_us]
    shown = {
        **setting,
        "steps_per_second": [[round(one.rate), round(two.rate)] for one, two in turns],
        "postgres_us": [[round(one.postgres_us), round(two.postgres_us)] for one, two in turns],
    }
    return [
        Figure.median(f"growth_{name}_throughput_kept", rates, "share", goal=goal, setting=shown),
        Figure.median(f"growth_{name}_postgres_cpu_kept", costs, "share", goal=goal, setting=shown),
    ]


async def _turn(settings: Settings, sizes: Sizes) -> Window:
    async with churning(settings, processes=sizes.processes, in_flight=sizes.load, slots=200) as churn:
        await churn.window(min(_WARM, sizes.seconds))
        return await churn.window(sizes.seconds)


def _shown(window: Window) -> str:
    cost = f"PostgreSQL {window.postgres_us:.0f} us, Python {window.python_us:.0f} us a step"
    return f"{window.rate:,.0f} steps/s ({cost})"


def _parse(arguments: Sequence[str]) -> Sizes:
    parser = argparse.ArgumentParser(prog="python -m bench growth", description="What is kept as the data grow.")
    parser.add_argument("--quick", action="store_true", help="tiny sizes, to see whether it works")
    parser.add_argument("--part", choices=("months", "in_flight"), default=None, help="only this (both)")
    parser.add_argument("--months", type=int, default=None, help="retained months (24)")
    parser.add_argument("--history", type=int, default=None, help="finished runs of each past month (2,000)")
    parser.add_argument("--few", type=int, default=None, help="runs in flight that are compared with (10,000)")
    parser.add_argument("--many", type=int, default=None, help="runs in flight (100,000; the goal is for 1,000,000)")
    parser.add_argument("--seconds", type=float, default=None, help="length of a turn (5)")
    parser.add_argument("--repeats", type=int, default=None, help="turns, of which the median is printed (5)")
    parser.add_argument("--processes", type=int, default=None, help="processes that submit and work (2)")
    parser.add_argument("--load", type=int, default=None, help="runs that the load keeps in flight (800)")
    found = parser.parse_args(arguments)
    usual = {"months": 24, "history": 2_000, "few": 10_000, "many": 100_000, "seconds": 5.0, "repeats": 5}
    tiny = {"months": 3, "history": 20, "few": 50, "many": 200, "seconds": 0.5, "repeats": 1}
    usual, tiny = {**usual, "processes": 2, "load": 800}, {**tiny, "processes": 1, "load": 40}
    chosen: dict[str, Any] = {name: getattr(found, name) or (tiny if found.quick else usual)[name] for name in usual}
    parts = (found.part,) if found.part else ("months", "in_flight")
    return Sizes(parts=parts, **chosen)
