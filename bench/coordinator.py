"""Steps per second of the coordinator alone: runs of three no-op tasks, started, claimed and reported in one process.

    python -m bench.coordinator [--runs 4000] [--concurrency 500] [--lanes 2] [--profile]

The database is an embedded PostgreSQL with fsync and synchronous_commit on, or the server of PARTITA_DATABASE_URL.
The claimer is one plain statement, since claims have a bench of their own; the second and third task of a run are
handed to the worker with the answer to its report. Printed as JSON lines, last: figure, value, unit, goal.
"""

from __future__ import annotations

import argparse
import asyncio
import cProfile
import os
import pstats
import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import mkdtemp
from uuid import uuid4

import asyncpg
import orjson
import uvloop

from partita import collector
from partita.domain.payload import Payload
from partita.engine import ClaimedTask, Engine, Offer, Report, StartRequest
from partita.settings import DatabaseSettings, EngineSettings, Settings
from partita.store import migrations, partitions
from partita.store.embedded import Server

SPEC = {
    "nodes": [
        {"name": "a", "task": {"type": "noop", "queue": "default"}},
        {"name": "b", "dependsOn": ["a"], "task": {"type": "noop", "queue": "default"}},
        {"name": "c", "dependsOn": ["b"], "task": {"type": "noop", "queue": "default"}},
    ]
}
STEPS = len(SPEC["nodes"])
CLAIM = """
WITH taken AS (
    DELETE FROM partita.ready_tasks WHERE ctid = ANY (ARRAY (
        SELECT ctid FROM partita.ready_tasks ORDER BY queue, lane, priority, seq LIMIT 200 FOR UPDATE SKIP LOCKED
    )) RETURNING *, gen_random_uuid() AS lease_id
), leased AS (
    INSERT INTO partita.task_leases
    SELECT run_id, lease_id, $1, clock_timestamp(), clock_timestamp() + interval '5 minutes', index, attempt,
           generation, node, $2, queue, type
    FROM taken
)
SELECT * FROM taken
"""


@dataclass(slots=True)
class Tally:
    """What happened so far."""

    finished: int = 0
    reports: int = 0
    handed_on: int = 0
    latencies: list[float] = field(default_factory=list)
    done: asyncio.Event = field(default_factory=asyncio.Event)


class Driver:
    """Starts runs, claims their first tasks, and reports until each run has ended."""

    def __init__(self, engine: Engine, connection: asyncpg.Connection[asyncpg.Record], runs: int) -> None:
        self._engine, self._connection, self._runs = engine, connection, runs
        self._offer = Offer(worker_id="bench", queues=frozenset({"default"}))
        self._room = asyncio.Semaphore(1)
        self._ready = asyncio.Event()
        self.tally = Tally()
        engine.notices.ready.append(lambda _: self._ready.set())

    async def drive(self, concurrency: int) -> float:
        """Run everything; the answer is the seconds it took."""
        self._room = asyncio.Semaphore(concurrency)
        begun = time.perf_counter()
        async with asyncio.TaskGroup() as group:
            group.create_task(self._claim(group))
            for _ in range(self._runs):
                await self._room.acquire()
                group.create_task(self._start())
        return time.perf_counter() - begun

    async def _start(self) -> None:
        await self._engine.start(StartRequest(namespace="bench", definition="three"))

    async def _claim(self, group: asyncio.TaskGroup) -> None:
        while self.tally.finished < self._runs:
            self._ready.clear()
            rows = await self._connection.fetch(CLAIM, uuid4(), "bench")
            for row in rows:
                group.create_task(self._work(_task(row)))
            if not rows:
                wait = asyncio.ensure_future(self._ready.wait())
                await asyncio.wait({wait}, timeout=0.02)
                wait.cancel()

    async def _work(self, task: ClaimedTask | None) -> None:
        tally = self.tally
        while task is not None:
            begun = time.perf_counter()
            reply = await self._engine.report(_report(task), self._offer)
            tally.latencies.append(time.perf_counter() - begun)
            tally.reports += 1
            if task.node == "c":
                tally.finished += 1
                self._room.release()
            task = reply.next
            tally.handed_on += task is not None


def _task(row: asyncpg.Record) -> ClaimedTask:
    names = ("run_id", "generation", "node", "index", "attempt", "lease_id", "type", "queue", "namespace", "timeout_ms")
    return ClaimedTask(**{name: row[name] for name in names}, input=Payload.of({}), deadline=row["enqueued_at"])


def _report(task: ClaimedTask) -> Report:
    return Report(
        run_id=task.run_id,
        generation=task.generation,
        node=task.node,
        index=task.index,
        attempt=task.attempt,
        lease_id=task.lease_id,
        worker_id="bench",
        output=Payload.of({"ok": True}),
    )


COUNTERS = """
SELECT pg_current_wal_lsn() - '0/0'::pg_lsn AS wal,
       (SELECT sum(n_tup_upd) FROM pg_stat_user_tables WHERE relname ~ '^(task_instances|workflow_runs)') AS updates,
       (SELECT sum(n_tup_hot_upd) FROM pg_stat_user_tables WHERE relname ~ '^(task_instances|workflow_runs)') AS hot
"""


async def _counters(url: str) -> dict[str, int]:
    connection = await asyncpg.connect(url)
    try:
        await connection.execute("SELECT pg_stat_force_next_flush()")
        row = await connection.fetchrow(COUNTERS)
        return {name: int(value or 0) for name, value in row.items()} if row else {}
    finally:
        await connection.close()


async def _measure(settings: Settings, arguments: argparse.Namespace) -> list[dict[str, object]]:
    await migrations.migrate(settings.database)
    await partitions.ensure(settings)
    connection = await asyncpg.connect(settings.database.url)
    async with await Engine.open(settings) as engine:
        await engine.deploy("bench", "three", SPEC)
        await Driver(engine, connection, 200).drive(arguments.concurrency)
        before = await _counters(settings.database.url)
        driver = Driver(engine, connection, arguments.runs)
        profile = cProfile.Profile() if arguments.profile else None
        if profile:
            profile.enable()
        cpu = time.process_time()
        seconds = await driver.drive(arguments.concurrency)
        cpu = time.process_time() - cpu
        if profile:
            profile.disable()
            pstats.Stats(profile).sort_stats("tottime").print_stats(45)
        after = await _counters(settings.database.url)
        lone = await _lone(engine, connection)
    await connection.close()
    steps = arguments.runs * STEPS
    delta = {name: after[name] - before[name] for name in after}
    latencies = sorted(driver.tally.latencies)
    return [
        _figure("coordinator_steps_per_second", steps / seconds, "1/s", 12_000),
        _figure("coordinator_python_us_per_step", cpu / steps * 1e6, "us", None),
        _figure("coordinator_wal_per_step", delta["wal"] / steps, "B", 1_500),
        _figure("coordinator_hot_updates", 100 * delta["hot"] / max(1, delta["updates"]), "%", 95),
        _figure("coordinator_handed_on", 100 * driver.tally.handed_on / (steps * 2 / 3), "%", None),
        _figure("coordinator_report_p50", latencies[len(latencies) // 2] * 1000, "ms", None),
        _figure("coordinator_lone_report_p50", lone * 1000, "ms", None),
    ]


async def _lone(engine: Engine, connection: asyncpg.Connection[asyncpg.Record]) -> float:
    """Median time of a report when nothing else happens."""
    driver = Driver(engine, connection, 100)
    await driver.drive(1)
    return sorted(driver.tally.latencies)[len(driver.tally.latencies) // 2]


def _figure(name: str, value: float, unit: str, goal: float | None) -> dict[str, object]:
    return {"figure": name, "value": round(value, 2), "unit": unit, "goal": goal}


def main() -> None:
    """Parse the arguments, find a server, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=4_000)
    parser.add_argument("--concurrency", type=int, default=500)
    parser.add_argument("--lanes", type=int, default=EngineSettings().lanes)
    parser.add_argument("--batch", type=int, default=EngineSettings().batch_size)
    parser.add_argument("--profile", action="store_true")
    arguments = parser.parse_args()
    engine = EngineSettings(lanes=arguments.lanes, batch_size=arguments.batch)
    settings = Settings(database=DatabaseSettings(url=os.environ.get("PARTITA_DATABASE_URL", "")), engine=engine)
    collector.calm()
    server = None
    if not settings.database.url:
        server = Server(Path(mkdtemp(prefix="partita-bench-")) / "data")
        server.start()
        settings = replace(settings, database=DatabaseSettings(url=server.url()))
    try:
        figures = uvloop.run(_measure(settings, arguments))
    finally:
        if server is not None:
            server.remove()
    for figure in figures:
        print(orjson.dumps(figure).decode())


if __name__ == "__main__":
    main()
