"""Everything that people start, through PgBouncer: the command line, a worker, and PgBouncer's own death under load."""

from __future__ import annotations

import asyncio
import signal
from collections import Counter
from dataclasses import replace
from pathlib import Path
from uuid import UUID

import orjson

from partita.settings import Settings
from tests.pgbouncer import PgBouncer
from tests.pooled.conftest import StartWorker, partita
from tests.postgres import database_of, direct_url
from tests.waiting import until
from tests.worker.hosted import Host, hosted

MANIFEST = """
apiVersion: partita.dev/v1alpha1
kind: WorkflowDefinition
metadata: {name: doubling, namespace: shop}
spec:
  output: {number: "${nodes.third.output}"}
  nodes:
    - {name: first, task: {type: double}, input: {number: "${input.number}"}}
    - {name: second, dependsOn: [first], task: {type: double}, input: {number: "${nodes.first.output}"}}
    - {name: pause, dependsOn: [second], wait: {duration: 20ms}}
    - {name: third, dependsOn: [pause], task: {type: double}, input: {number: "${nodes.second.output}"}}
---
apiVersion: partita.dev/v1alpha1
kind: WorkflowRun
metadata: {name: five, namespace: shop}
spec:
  definitionRef: {name: doubling}
  input: {number: 5}
"""
STEPS = (
    {"name": "first", "task": {"type": "double"}, "input": {"number": 1}},
    {"name": "second", "dependsOn": ["first"], "task": {"type": "double"}, "input": {"number": 2}},
    {"name": "third", "dependsOn": ["second"], "task": {"type": "double"}, "input": {"number": 3}},
)
RUNS = 400
OPEN = "SELECT (SELECT count(*) FROM partita.open_runs), (SELECT count(*) FROM partita.run_inbox)"
COMPLETED = (
    "SELECT run_id, node, count(*) AS times FROM partita.run_history WHERE event = 'TaskCompleted' GROUP BY 1, 2"
)


async def test_what_people_start_works_through_it(pooled: Settings, start_worker: StartWorker, tmp_path: Path) -> None:
    worker = start_worker(pooled)
    file = tmp_path / "doubling.yaml"
    file.write_text(MANIFEST)
    await partita(pooled, "submit", str(file))
    await partita(pooled, "wait", "five", "-n", "shop", "--timeout", "60s")
    shown = orjson.loads(await partita(pooled, "get", "five", "-n", "shop", "-o", "json"))
    assert shown["output"] == {"number": 40}, shown
    worker.send_signal(signal.SIGTERM)
    assert await asyncio.to_thread(worker.wait, 60) == 0


async def test_its_death_under_load_loses_nothing_and_does_nothing_twice(
    fragile: PgBouncer, pooled: Settings, start_worker: StartWorker
) -> None:
    url = fragile.url(database_of(direct_url(pooled)))
    settings = replace(pooled, database=replace(pooled.database, url=url, patience_ms=60_000))
    async with hosted(settings) as host:
        await host.deploy(*STEPS)
        workers = [start_worker(settings) for _ in range(2)]
        starts = [asyncio.create_task(host.start()) for _ in range(RUNS)]
        for done in (RUNS // 8, RUNS, 2 * RUNS):
            await until(lambda done=done: completed(host, done), within=60, what=f"{done} tasks are done")  # type: ignore[misc]  # a lambda's default
            fragile.kill()
            await asyncio.to_thread(fragile.start)
        runs = [await start for start in starts]
        for run_id in runs:
            assert (await host.ended(run_id, within=90))["status"] == "Succeeded"
        await nothing_twice(host, runs)
        assert all(worker.poll() is None for worker in workers), "nobody was restarted by hand"


async def completed(host: Host, number: int) -> bool:
    return sum(int(row["times"]) for row in await host.fetch(COMPLETED)) >= number


async def nothing_twice(host: Host, runs: list[UUID]) -> None:
    rows = await host.fetch(COMPLETED)
    assert Counter(row["times"] for row in rows) == {1: len(runs) * len(STEPS)}
    (endings,) = await host.fetch("SELECT count(*), count(DISTINCT run_id) FROM partita.run_endings")
    assert tuple(endings) == (len(runs), len(runs))
    (lost,) = await host.fetch("SELECT count(*) FROM partita.run_history WHERE event = 'LeaseLost'")
    assert lost[0] == 0, "an outage of PgBouncer is nobody's fault"
    assert [await host.left_overs(run_id) for run_id in runs] == [0] * len(runs)
    (left,) = await host.fetch(OPEN)
    assert tuple(left) == (0, 0)
