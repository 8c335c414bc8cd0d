"""Dropping a month of a million runs beside a running load, and what deleting or compacting one costs instead.

Three months are made by INSERT … SELECT, all tables of records filled as three-step runs that have succeeded fill
them: one to be dropped (``--runs``), and two smaller ones (``--small``), whose size is printed beside their figures:
one to be deleted row by row, as without partitions, and one to be compacted, in which 1,000 runs are unfinished.
Meanwhile clients start runs one after the other and a worker executes them, in this process. A stall is the longest
time in which no run ended, or the longest that a report waited; it is compared with a span of the same load before.
"""

from __future__ import annotations

import argparse
import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Final
from uuid import UUID

import asyncpg

from bench.figures import Figure, emit, say
from bench.load import working
from bench.loop import run
from bench.postgres import measured
from bench.workload import NAME, NAMESPACE, NODES
from partita.domain.ids import Month
from partita.engine.engine import Engine
from partita.engine.requests import Offer, Report, ReportReply, StartRequest
from partita.settings import Settings
from partita.store import partitions, retention
from partita.store.sql import Sql, substitute

GOAL: Final = 1.0
"""Seconds, of the drop and of any stall."""
_UNFINISHED: Final = 1_000
"""Unfinished runs of the month that is compacted."""
_CHUNK: Final = 50_000
"""Runs made by one statement a table."""
_POLL: Final = 0.005
_LEAST: Final = 5.0
"""Seconds of load that are looked at for a stall, whatever is done meanwhile."""
_IDS: Final = """
CREATE TEMPORARY TABLE ids AS
SELECT (lpad(to_hex(ms), 12, '0') || '70008' || lpad(to_hex(number), 15, '0'))::uuid AS id,
       to_timestamp(ms / 1000.0) AS at
FROM generate_series($3::bigint, $4::bigint - 1) AS number
CROSS JOIN LATERAL (SELECT $1::bigint + number * $2::bigint AS ms) AS moment"""
_FILL: Final = """
INSERT INTO :"schema".workflow_runs
    (id, definition_id, start_request_id, created_at, version, total, active, done, seq, revision, started_at,
     finished_at, status, namespace, name, definition, context_json)
SELECT id, id, id, at, 1, 3, 0, 3, 5, 5, at, at + interval '1 s', 'Succeeded', :'namespace', '', :'name', '{"input":{}}'
FROM ids;
INSERT INTO :"schema".task_instances
    (run_id, index, attempt, edges_settled, edges_live, queued_at, finished_at, fired, state, output, input, queue,
     kind, node)
SELECT id, 0, 1, 1, 1, at, at, true, 'Completed', 'null', '{}', 'default', 'task', node
FROM ids CROSS JOIN unnest(:'nodes'::text[]) AS node;
INSERT INTO :"schema".run_history (run_id, seq, generation, at, started_at, index, attempt, event, node, who)
SELECT id, seq, 0, at, at, 0, 1, 'TaskCompleted', node, 'bench-worker'
FROM ids CROSS JOIN unnest(:'nodes'::text[]) WITH ORDINALITY AS task (node, seq);
INSERT INTO :"schema".run_endings
    (run_id, finished_at, generation, seq, status, namespace, definition, name, started_by)
SELECT id, at, 0, 5, 'Succeeded', :'namespace', :'name', '', '' FROM ids;
DROP TABLE ids"""
_UNFINISH: Final = """
WITH run AS (
    UPDATE :"schema".workflow_runs SET status = 'Running', active = 1
    WHERE id IN (SELECT id FROM :"schema".workflow_runs WHERE id >= $1 AND id < $2 ORDER BY id LIMIT $3)
    RETURNING id, namespace, definition
)
INSERT INTO :"schema".open_runs (run_id, namespace, definition, name) SELECT id, namespace, definition, '' FROM run"""


@dataclass(frozen=True, slots=True)
class Sizes:
    """What is measured."""

    runs: int
    small: int
    clients: int


def main(arguments: Sequence[str]) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m bench drop", description="Seconds of a drop, and what it stalls.")
    parser.add_argument("--quick", action="store_true", help="tiny sizes, to see whether it works")
    for name, text in (("runs", "ended runs of the month that is dropped (1000000)"),
                       ("small", "ended runs of the months that are deleted and compacted (100000)"),
                       ("clients", "runs in flight beside it (100)")):  # fmt: skip  # a table
        parser.add_argument(f"--{name}", type=int, metavar="N", help=text)
    found = parser.parse_args(arguments)
    usual = Sizes(2_000, 500, 10) if found.quick else Sizes(1_000_000, 100_000, 100)
    sizes = replace(usual, **{name: value for name in ("runs", "small", "clients") if (value := getattr(found, name))})
    with measured() as settings:
        emit(run(measure(settings, sizes, 0.5 if found.quick else _LEAST)))


async def measure(settings: Settings, sizes: Sizes, least: float) -> list[Figure]:
    """All figures, on one database."""
    bench = await Bench.open(settings)
    try:
        months = await bench.months(sizes)
        busy = replace(settings, worker=replace(settings.worker, slots=sizes.clients))
        async with working(busy, WatchedEngine) as engine, clients(engine, sizes.clients) as load:
            await asyncio.sleep(least)
            control = await load.during(lambda: asyncio.sleep(least), least)
            deleted = await load.during(lambda: bench.delete(months[0]), least)
            await bench.drop(months[1])
            compacted = await load.during(lambda: bench.compact(months[1]), least)
            await bench.drop(months[2])
            await bench.settle()
            size = await bench.size(months[2])
            gone = asyncio.create_task(bench.gone(months[2]))
            dropped = await load.during(lambda: bench.drop(months[2].plus(1)), least)
        await bench.check(months)
        return [*_figures(sizes, control, deleted, compacted, dropped), _gone(sizes, await gone, size)]
    finally:
        await bench.connection.close()


def _figures(sizes: Sizes, control: Span, deleted: Span, compacted: Span, dropped: Span) -> list[Figure]:
    small, large = {"runs": sizes.small}, {"runs": sizes.runs, "runs_in_flight": sizes.clients}
    compact = {**small, "unfinished": min(_UNFINISHED, sizes.small // 2)}
    rows = (
        ("drop_month", dropped.seconds, GOAL, large),
        ("drop_month_stall", dropped.stall, GOAL, {**large, "ended_meanwhile": dropped.ended}),
        ("drop_month_stall_idle", control.stall, None, {"seconds": round(control.seconds, 1), "ended": control.ended}),
        ("compact_month", compacted.seconds, None, compact),
        ("compact_month_stall", compacted.stall, GOAL, compact),
        ("delete_month", deleted.seconds, None, small),
        ("delete_month_stall", deleted.stall, None, small),
    )
    return [
        Figure(figure=name, value=value, unit="s", goal=goal, better="lower", setting=setting)
        for name, value, goal, setting in rows
    ]


def _gone(sizes: Sizes, seconds: float, size: int) -> Figure:
    """How much of the drop it takes until no statement reaches the month; the rest is giving its files back."""
    setting = {"runs": sizes.runs, "MiB": size >> 20}
    return Figure(figure="drop_month_detached", value=seconds, unit="s", better="lower", setting=setting)


class Bench:
    """The months, and what is done to them."""

    def __init__(self, settings: Settings, connection: asyncpg.Connection[asyncpg.Record]) -> None:
        self._settings = settings
        self.connection = connection

    @classmethod
    async def open(cls, settings: Settings) -> Bench:
        """With a session whose commits need not wait for the disk."""
        connection = await asyncpg.connect(settings.database.url)
        await connection.execute("SET synchronous_commit = off")
        return cls(settings, connection)

    def _sql(self, text: str, **tokens: str) -> str:
        return substitute(text, {"schema": self._settings.database.schema, **tokens})

    async def months(self, sizes: Sizes) -> list[Month]:
        """The three months before this one, oldest first, filled."""
        current = Month.of(await self.connection.fetchval("SELECT clock_timestamp()"))
        months = [current.plus(-3), current.plus(-2), current.plus(-1)]
        floor = self._sql('UPDATE :"schema".engine_state SET retention_floor = $1')
        await self.connection.execute(floor, months[0].start)
        await partitions.ensure(self._settings)
        for month, runs in zip(months, (sizes.small, sizes.small, sizes.runs), strict=True):
            begun = time.perf_counter()
            await self._fill(month, runs)
            say(f"drop: {month}: {runs:,} runs made in {time.perf_counter() - begun:.0f} s")
        unfinished = min(_UNFINISHED, sizes.small // 2)
        await self.connection.execute(self._sql(_UNFINISH), months[1].lower, months[1].upper, unfinished)
        begun = time.perf_counter()
        for table in await partitions.partition_tables(self.connection, Sql(self._settings.database.schema)):
            await self.connection.execute(self._sql('VACUUM (ANALYZE) :"schema".:"name"', name=table.name))
        say(f"drop: vacuumed, as months of that age are, in {time.perf_counter() - begun:.0f} s")
        await self.settle()
        return months

    async def _fill(self, month: Month, runs: int) -> None:
        first = month.lower.int >> 80
        step = max(1, ((month.upper.int >> 80) - first) // runs)
        nodes = f"{{{','.join(NODES)}}}"
        for begin in range(0, runs, _CHUNK):
            await self.connection.execute(_IDS, first, step, begin, min(runs, begin + _CHUNK))
            await self.connection.execute(self._sql(_FILL, namespace=NAMESPACE, name=NAME, nodes=nodes))

    async def settle(self) -> None:
        """What was written before is not to be written while something else is measured."""
        await self.connection.execute("CHECKPOINT")

    async def delete(self, month: Month) -> None:
        """Delete a month's rows, table by table, each committed durably."""
        names = await partitions.table_names(self.connection, Sql(self._settings.database.schema))
        await self.connection.execute("SET synchronous_commit = on")
        for name in names:
            key = "id" if name == "workflow_runs" else "run_id"
            text = self._sql('DELETE FROM :"schema".:"name" WHERE :"key" >= $1 AND :"key" < $2', name=name, key=key)
            await self.connection.execute(text, month.lower, month.upper, timeout=600)

    async def drop(self, before: Month) -> None:
        """Drop what lies before a month."""
        report = await retention.drop(self._settings, before=before)
        if report.kept:
            raise SystemExit(f"bench: months were kept: {report.kept}")

    async def size(self, month: Month) -> int:
        """Bytes of a month."""
        tables = await partitions.partition_tables(self.connection, Sql(self._settings.database.schema))
        return sum(table.bytes for table in tables if table.month == month)

    async def gone(self, month: Month) -> float:
        """Seconds from now until none of a month's tables is attached."""
        begun, text = time.perf_counter(), "SELECT EXISTS (SELECT FROM pg_inherits WHERE inhrelid = $1::text::regclass)"
        last = f"{self._settings.database.schema}.workflow_runs_{month.suffix}"
        connection = await asyncpg.connect(self._settings.database.url)
        try:
            while True:
                await asyncio.sleep(_POLL)
                if not await connection.fetchval(text, last):
                    break
        except asyncpg.UndefinedTableError:
            say("drop: detached and dropped between two looks")
        finally:
            await connection.close()
        return time.perf_counter() - begun

    async def compact(self, month: Month) -> None:
        """Compact a month and nothing else."""
        report = await retention.drop(self._settings, before=month.plus(1), compact=True)
        if list(report.compacted) != [month]:
            raise SystemExit(f"bench: {month} was not compacted: {report}")
        await self.connection.execute(self._sql('DELETE FROM :"schema".open_runs WHERE run_id < $1'), month.upper)

    async def check(self, months: Sequence[Month]) -> None:
        """Raise SystemExit unless the months are gone."""
        text = self._sql('SELECT count(*) FROM :"schema".workflow_runs WHERE id < $1')
        if left := await self.connection.fetchval(text, months[-1].upper):
            raise SystemExit(f"bench: {left} runs of dropped months are left; expected none")


@dataclass(frozen=True, slots=True)
class Span:
    """What the load saw of something that was done beside it."""

    seconds: float
    """How long it took."""
    ended: int
    """Runs that ended meanwhile."""
    gap: float
    """Longest time in which no run ended."""
    latency: float
    """Longest time that a report waited for its answer."""

    @property
    def stall(self) -> float:
        """The longer of the two."""
        return max(self.gap, self.latency)


class WatchedEngine(Engine):
    """Notes when reports were answered, and tells who waits for a run that it has ended."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.waiting: dict[UUID, asyncio.Future[None]] = {}
        self.latencies: list[float] = []
        self.ends: list[float] = []

    async def report(self, report: Report, offer: Offer | None = None) -> ReportReply:
        """Record the end of an attempt."""
        begun = time.perf_counter()
        reply = await super().report(report, offer)
        now = time.perf_counter()
        self.latencies.append(now - begun)
        if report.node == NODES[-1]:
            self.ends.append(now)
            if (waiter := self.waiting.pop(report.run_id, None)) is not None and not waiter.done():
                waiter.set_result(None)
        return reply


class Load:
    """The running load."""

    def __init__(self, engine: WatchedEngine) -> None:
        self._engine = engine

    async def client(self) -> None:
        """Start runs, one after the other."""
        engine = self._engine
        while True:
            request = StartRequest(namespace=NAMESPACE, definition=NAME)
            ended = engine.waiting[request.request_id] = asyncio.get_running_loop().create_future()
            await engine.start(request)
            await ended

    async def during(self, work: Callable[[], Awaitable[None]], least: float) -> Span:
        """Do something and look at the load meanwhile, for at least so many seconds."""
        engine = self._engine
        engine.latencies.clear()
        engine.ends.clear()
        begun = time.perf_counter()
        await work()
        seconds = time.perf_counter() - begun
        await asyncio.sleep(max(0.0, least - seconds))
        marks = [begun, *engine.ends, time.perf_counter()]
        gap = max(later - earlier for earlier, later in pairwise(marks))
        span = Span(seconds, len(engine.ends), gap, max(engine.latencies, default=gap))
        say(f"drop: {seconds:.2f} s, {span.ended} runs ended, longest pause {gap:.3f} s, report {span.latency:.3f} s")
        return span


@asynccontextmanager
async def clients(engine: WatchedEngine, number: int) -> AsyncIterator[Load]:
    """So many runs in flight, until the block ends."""
    load = Load(engine)
    tasks = [asyncio.create_task(load.client()) for _ in range(number)]
    try:
        yield load
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
