"""Counts under load: write-ahead log, commits and statements a step, and how many updates stay on their page.

Invariant: these are counts, not times, so that they mean the same on a busy machine; only the size of the batches
depends on the load. Statements are counted in the server's log, in a round of their own, because logging slows it down.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bench import counters
from bench.counters import Counters
from bench.figures import Figure, emit, say
from bench.load import loaded
from bench.loop import run
from bench.options import Options, as_setting, parse
from bench.postgres import database, server
from bench.workload import STEPS
from partita.settings import Settings

WAL_GOAL = 1_500
HOT_GOAL = 95.0
COMMITS_GOAL = 0.1
_COORDINATOR = "coordinator-"


@dataclass(frozen=True, slots=True)
class Statements:
    """What the coordinators' sessions sent in one round."""

    statements: int
    commits: int
    steps: int


def main(arguments: Sequence[str]) -> None:
    """Measure and print."""
    options = parse(arguments, "counts", "Counts of PostgreSQL a step.", repeats=3)
    with server() as base, database(base) as settings:
        rounds = []
        for number in range(options.repeats):
            rounds.append(run(_counted(settings, options)))
            say(f"counts {number + 1}/{options.repeats}: {_shown(rounds[-1], options)}")
        logged = None if base.log is None else run(_logged(settings, options, base.log))
        emit(_figures(rounds, logged, options))


async def _counted(settings: Settings, options: Options) -> Counters:
    """What one round of runs counted, warm-up of a new engine included."""
    before = await counters.read(settings)
    async with loaded(settings, options) as load:
        await load.round(options.runs)
    return await counters.read(settings) - before


async def _logged(settings: Settings, options: Options, log: Path) -> Statements:
    """A round whose statements the server logs."""
    await counters.statement_log(settings, on=True)
    begun = _size(log)
    async with loaded(settings, options) as load:
        await load.round(options.runs)
    await counters.statement_log(settings, on=False)
    statements, commits = counters.count_statements(_since(log, begun), _COORDINATOR)
    return Statements(statements, commits, options.runs * STEPS)


def _size(log: Path) -> int:
    return log.stat().st_size


def _since(log: Path, begun: int) -> str:
    """What was logged after this many bytes."""
    with log.open("rb") as file:
        file.seek(begun)
        return file.read().decode(errors="replace")


def _figures(rounds: list[Counters], logged: Statements | None, options: Options) -> list[Figure]:
    steps, setting = options.runs * STEPS, as_setting(options)
    wal = [one.wal_bytes / steps for one in rounds]
    commits = [one.commits / steps for one in rounds]
    figures = [
        Figure.median("wal", wal, "B/step", goal=WAL_GOAL, better="lower", setting=setting),
        Figure.median("commits", commits, "1/step", goal=COMMITS_GOAL, better="lower", setting=setting),
    ]
    for table in rounds[0].updates:
        shares = [_share(one, table) for one in rounds if one.updates[table]]
        if shares:
            figures.append(Figure.median(f"hot_{table}", shares, "%", goal=HOT_GOAL, setting=setting))
    return [*figures, *_statement_figures(logged)]


def _share(one: Counters, table: str) -> float:
    return 100 * one.hot[table] / one.updates[table]


def _statement_figures(logged: Statements | None) -> list[Figure]:
    if logged is None or not logged.commits:
        why = {"why": "the server's log cannot be read here"}
        return [Figure(figure="statements", value=None, unit="1/batch", better="lower", setting=why)]
    sizes = {"batches": logged.commits, "steps_a_batch": round(logged.steps / logged.commits, 1)}
    return [
        Figure(
            figure="statements", value=logged.statements / logged.commits, unit="1/batch", better="lower", setting=sizes
        )
    ]


def _shown(one: Counters, options: Options) -> str:
    steps = options.runs * STEPS
    hot = ", ".join(f"{table} {_share(one, table):.1f} % HOT" for table in one.updates if one.updates[table])
    return f"{one.wal_bytes / steps:,.0f} B of WAL and {one.commits / steps:.3f} commits a step; {hot}"
