"""An old snapshot: what of the engine's throughput is kept while another session holds one, as backups and reports do.

While it is held, vacuum may remove no row that was deleted since, so that whoever reads a queue from its beginning
steps over everything that was ever in it. Three spans are measured, each with one without a snapshot before it: a
snapshot alone, one whose session also locks every table as pg_dump does, and the same for a plain queue (one statement
with SKIP LOCKED, rows taken in the order of their ids) on the same server.
"""

from __future__ import annotations

import argparse
import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final

import asyncpg

from bench import counters
from bench.churn import Churn, Window, churning
from bench.figures import Figure, emit, say
from bench.loop import run
from bench.postgres import measured
from partita.settings import Settings

GOAL: Final = 0.85
_PARTS: Final = 4
_BATCH: Final = 100
_READY: Final = 2_000
_QUEUES: Final = ("ready_tasks", "task_leases", "open_runs", "workers")
_DEAD: Final = """
SELECT relname, n_dead_tup FROM pg_stat_user_tables WHERE schemaname = $1 AND relname = ANY ($2::text[])
"""
_TABLES: Final = """
SELECT string_agg(format('%I.%I', schemaname, tablename), ', ') FROM pg_tables WHERE schemaname = $1
"""
_PLAIN: Final = """
CREATE TABLE IF NOT EXISTS plain_queue (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, payload text NOT NULL)
WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000, autovacuum_vacuum_cost_delay = 0)
"""
_FILL: Final = "INSERT INTO plain_queue (payload) SELECT 'work' FROM generate_series(1, $1::int)"
_TAKE: Final = """
DELETE FROM plain_queue WHERE id IN (SELECT id FROM plain_queue ORDER BY id LIMIT $1 FOR UPDATE SKIP LOCKED)
"""


@dataclass(frozen=True, slots=True)
class Sizes:
    """How much is measured."""

    seconds: float
    processes: int
    in_flight: int
    slots: int


@dataclass(frozen=True, slots=True)
class Kept:
    """A span without a snapshot and one with it."""

    without: float
    """Steps a second."""
    parts: tuple[float, ...]
    """Steps a second of each part of the span with it, in order."""
    us: tuple[float, float]
    """Microseconds of PostgreSQL a step, without and with."""
    cpu: tuple[float, float]
    """The same of all processes of engine and server."""
    hot: tuple[float, float]
    """Percentage of record updates that were HOT, without and with."""
    dead: dict[str, int]
    """Dead rows of queue tables at the end of the span with it."""

    @property
    def share(self) -> float:
        """What is kept over the whole span."""
        return sum(self.parts) / len(self.parts) / self.without

    @property
    def last(self) -> float:
        """What is kept in the last part, when the snapshot is oldest."""
        return self.parts[-1] / self.without


def main(arguments: Sequence[str]) -> None:
    """Measure and print."""
    sizes = _parse(arguments)
    with measured() as settings:
        emit(run(measure(settings, sizes)))


async def measure(settings: Settings, sizes: Sizes) -> list[Figure]:
    """The engine with both kinds of snapshot, then the plain queue."""
    load = churning(settings, processes=sizes.processes, in_flight=sizes.in_flight, slots=sizes.slots)
    async with load as churn:
        await churn.window(sizes.seconds / _PARTS)
        found = [("snapshot", await _engine(churn, settings, sizes, locks=False))]
        found.append(("snapshot_and_locks", await _engine(churn, settings, sizes, locks=True)))
    figures = [figure for name, kept in found for figure in _figures(name, kept, sizes)]
    return [*figures, await _plain(settings, sizes)]


async def _engine(churn: Churn, settings: Settings, sizes: Sizes, *, locks: bool) -> Kept:
    await _vacuum(settings)
    before = await counters.read(settings)
    without = await churn.window(sizes.seconds / 2)
    middle = await counters.read(settings)
    async with _held(settings, locks=locks):
        parts = [await churn.window(sizes.seconds / _PARTS) for _ in range(_PARTS)]
        rows = await churn.observer.fetch(_DEAD, settings.database.schema, _QUEUES)
    after = await counters.read(settings)
    span = Window.of(parts)
    dead: dict[str, int] = {row["relname"]: row["n_dead_tup"] for row in rows}
    hot = _hot(middle - before), _hot(after - middle)
    kept = Kept(
        without.rate,
        tuple(part.rate for part in parts),
        (without.postgres_us, span.postgres_us),
        (without.postgres_us + without.python_us, span.postgres_us + span.python_us),
        hot,
        dead,
    )
    say(f"engine, {'snapshot and locks' if locks else 'snapshot'}: {_shown(kept)}")
    return kept


def _hot(found: counters.Counters) -> float:
    return 100 * sum(found.hot.values()) / max(1, sum(found.updates.values()))


@asynccontextmanager
async def _held(settings: Settings, *, locks: bool) -> AsyncIterator[None]:
    """Another session holds a snapshot, and perhaps every table in the mode of pg_dump."""
    connection = await asyncpg.connect(settings.database.url)
    try:
        async with connection.transaction(isolation="repeatable_read"):
            tables = await connection.fetchval(_TABLES, settings.database.schema)
            if locks:
                await connection.execute(f"LOCK TABLE {tables} IN ACCESS SHARE MODE")
            yield
    finally:
        await connection.close()


async def _vacuum(settings: Settings) -> None:
    """Remove what the last snapshot kept, so that each span begins alike."""
    connection = await asyncpg.connect(settings.database.url)
    try:
        for table in _QUEUES:
            await connection.execute(f'VACUUM "{settings.database.schema}".{table}')
    finally:
        await connection.close()


async def _plain(settings: Settings, sizes: Sizes) -> Figure:
    """A plain queue: as many sessions as there are processes take rows, and put in as many as they took."""
    connection = await asyncpg.connect(settings.database.url)
    try:
        await connection.execute(_PLAIN)
        await connection.execute(_FILL, _READY)
        without = await _taken(settings, sizes.processes, sizes.seconds / 2)
        async with _held(settings, locks=False):
            with_ = await _taken(settings, sizes.processes, sizes.seconds)
    finally:
        await connection.close()
    say(f"plain queue: {without:,.0f} rows/s, with a snapshot {with_:,.0f}, kept {with_ / without:.0%}")
    setting = {"seconds": sizes.seconds, "rows_per_second": round(without), "with_a_snapshot": round(with_)}
    return Figure(figure="snapshot_kept_by_a_plain_queue", value=with_ / without, unit="share", setting=setting)


async def _taken(settings: Settings, sessions: int, seconds: float) -> float:
    """Rows a second."""
    begun = time.perf_counter()

    async def session() -> int:
        connection = await asyncpg.connect(settings.database.url)
        try:
            return await _take_until(connection, begun + seconds)
        finally:
            await connection.close()

    found = await asyncio.gather(*(session() for _ in range(sessions)))
    return sum(found) / (time.perf_counter() - begun)


async def _take_until(connection: asyncpg.Connection[asyncpg.Record], end: float) -> int:
    taken = 0
    while time.perf_counter() < end:
        async with connection.transaction():
            count = int((await connection.execute(_TAKE, _BATCH)).rpartition(" ")[2])
            await connection.execute(_FILL, count)
        taken += count
    return taken


def _figures(name: str, kept: Kept, sizes: Sizes) -> list[Figure]:
    setting = {
        "seconds": sizes.seconds,
        "processes": sizes.processes,
        "in_flight": sizes.in_flight,
        "without": round(kept.without),
        "parts": [round(part) for part in kept.parts],
        "postgres_us_without": round(kept.us[0]),
        "cpu_us": [round(cost) for cost in kept.cpu],
        "hot_without": round(kept.hot[0], 1),
        "dead_rows": kept.dead,
    }
    return [
        Figure(figure=f"{name}_kept", value=kept.share, unit="share", goal=GOAL, setting=setting),
        Figure(figure=f"{name}_kept_at_the_end", value=kept.last, unit="share", setting=setting),
        Figure(figure=f"{name}_cpu_kept", value=kept.cpu[0] / kept.cpu[1], unit="share", goal=GOAL, setting=setting),
        Figure(figure=f"{name}_postgres_cpu", value=kept.us[1], unit="us/step", better="lower", setting=setting),
        Figure(figure=f"{name}_hot", value=kept.hot[1], unit="%", setting=setting),
    ]


def _shown(kept: Kept) -> str:
    parts = ", ".join(f"{part:,.0f}" for part in kept.parts)
    dead = ", ".join(f"{table} {count:,}" for table, count in kept.dead.items() if count)
    return (
        f"{kept.without:,.0f} steps/s without; {parts} with; kept {kept.share:.0%}, at the end {kept.last:.0%}; "
        f"PostgreSQL {kept.us[0]:.0f} -> {kept.us[1]:.0f} us, all {kept.cpu[0]:.0f} -> {kept.cpu[1]:.0f} us a step; "
        f"HOT {kept.hot[0]:.1f} -> {kept.hot[1]:.1f} %; "
        f"dead rows: {dead or 'none'}"
    )


def _parse(arguments: Sequence[str]) -> Sizes:
    parser = argparse.ArgumentParser(prog="python -m bench snapshot", description="Throughput under an old snapshot.")
    parser.add_argument("--quick", action="store_true", help="tiny sizes, to see whether it works")
    parser.add_argument("--seconds", type=float, default=None, help="how long a snapshot is held (60)")
    parser.add_argument("--processes", type=int, default=None, help="processes that submit and work (2)")
    parser.add_argument("--in-flight", type=int, default=None, help="runs in flight (800)")
    parser.add_argument("--slots", type=int, default=200, help="tasks that a process executes at the same time (200)")
    found = parser.parse_args(arguments)
    seconds, processes, in_flight = (1.0, 1, 40) if found.quick else (60.0, 2, 800)
    return Sizes(found.seconds or seconds, found.processes or processes, found.in_flight or in_flight, found.slots)
