"""Claims: microseconds of PostgreSQL a claimed row, with few and many ready rows, in one lane and in all sixteen.

The claimer is the worker's own, on a connection of its own, whose server process alone is measured: what puts rows in
and takes leases away is another session. As many rows come in as were claimed, so that the queue keeps its length, at
three levels of priority; each claim asks for a worker's usual 100 slots.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import asyncpg

from bench import cpu
from bench.figures import Figure, emit, say
from bench.loop import run
from bench.postgres import measured
from partita.engine.claims import Claimer
from partita.settings import Settings
from partita.store.claims import ClaimStore
from partita.store.database import Database
from partita.store.session import Session
from partita.store.sql import substitute

_SLOTS: Final = 100
_QUEUE: Final = "bench"
_FILL: Final = """
INSERT INTO :"schema".ready_tasks
    (run_id, seq, enqueued_at, timeout_ms, index, attempt, generation, lane, priority, queue, namespace, node, type)
SELECT (lpad(to_hex((extract(epoch FROM at) * 1000)::bigint), 12, '0') || '7000'
        || right(gen_random_uuid()::text, 17))::uuid,
       (extract(epoch FROM at - timestamptz '2024-01-01 00:00:00+00') * 1000000)::bigint << 12, at, 300000, 0, 1, 0,
       number % $2, number / 16 % 3 - 1, 'bench', 'bench', 'only', 'noop'
FROM generate_series(1, $1::int) AS number,
     LATERAL (SELECT clock_timestamp() - ($1::int - number) * interval '1 microsecond' AS at) AS moment
"""
_PID: Final = """
SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND application_name LIKE '%/worker'
"""


@dataclass(frozen=True, slots=True)
class Sizes:
    """How much is measured."""

    ready: tuple[int, ...]
    lanes: tuple[int, ...]
    rows: int
    """Rows claimed for one measurement."""
    repeats: int


def main(arguments: Sequence[str]) -> None:
    """Measure and print."""
    sizes = _parse(arguments)
    figures = []
    for ready in sizes.ready:
        for lanes in sizes.lanes:
            with measured() as settings:
                figures.append(run(_measure(settings, sizes, ready, lanes)))
    emit(figures)


async def _measure(settings: Settings, sizes: Sizes, ready: int, lanes: int) -> Figure:
    database = await Database.open(settings.database, application="partita-bench")
    session = Session(database, "worker")
    filler = await asyncpg.connect(settings.database.url)
    try:
        claims = _Claims(settings, filler, session, lanes)
        await claims.fill(ready)
        await filler.execute("VACUUM (ANALYZE)")
        await claims.first()
        costs = [await claims.take(sizes.rows) for _ in range(sizes.repeats)]
    finally:
        await filler.close()
        await session.close()
        await database.close()
    figure = f"claim_of_{ready}_ready_in_{lanes}_lanes"
    setting = {"slots": _SLOTS, "rows": sizes.rows, "smallest_claim": claims.smallest}
    if not all(costs):
        return Figure(figure=figure, value=None, unit="us/row", better="lower", setting={"why": "no /proc to read"})
    say(f"claims: {ready:,} ready, {lanes} lanes: {', '.join(f'{cost:.0f}' for cost in costs)} us a row")
    return Figure.median(figure, costs, "us/row", better="lower", setting=setting)


class _Claims:
    """A queue that keeps its length while one claimer takes from it."""

    def __init__(
        self, settings: Settings, filler: asyncpg.Connection[asyncpg.Record], session: Session, lanes: int
    ) -> None:
        self._words = {"schema": settings.database.schema}
        self._filler = filler
        self._lanes = lanes
        self._claimer = Claimer(
            ClaimStore(session),
            worker_id="bench",
            queues=[_QUEUE],
            namespaces=None,
            trail_ms=settings.engine.claim_trail_ms,
        )
        self.smallest = _SLOTS

    async def fill(self, rows: int) -> None:
        """Put new rows at the end of the queue."""
        await self._filler.execute(substitute(_FILL, self._words), rows, self._lanes)

    async def first(self) -> None:
        """Connect, and look from the beginning."""
        await self.fill(len(await self._claimer.claim(_SLOTS)))

    async def take(self, rows: int) -> float:
        """Claim so many rows; microseconds of the claimer's server process for each."""
        pid = await self._filler.fetchval(_PID)
        taken, before = 0, cpu.seconds(pid)
        while taken < rows:
            count = 0
            while count < _SLOTS:
                found = len(await self._claimer.claim(_SLOTS - count))
                self.smallest = min(self.smallest, found)
                count += found
            taken += count
            await self.fill(count)
            await self._filler.execute(substitute('DELETE FROM :"schema".task_leases', self._words))
        return (cpu.seconds(pid) - before) / taken * 1e6


def _parse(arguments: Sequence[str]) -> Sizes:
    parser = argparse.ArgumentParser(prog="python -m bench claims", description="Cost of a claimed row.")
    parser.add_argument("--quick", action="store_true", help="tiny sizes, to see whether it works")
    parser.add_argument("--ready", default=None, help="ready rows, numbers separated by commas (100,10000,1000000)")
    parser.add_argument("--rows", type=int, default=None, help="rows claimed for one measurement (20,000)")
    parser.add_argument("--repeats", type=int, default=None, help="measurements, of which the median is printed (5)")
    found = parser.parse_args(arguments)
    ready, rows, repeats = ("100,500", 5_000, 1) if found.quick else ("100,10000,1000000", 20_000, 5)
    numbers = tuple(int(number) for number in (found.ready or ready).split(","))
    return Sizes(numbers, (1, 16), found.rows or rows, found.repeats or repeats)
