"""PostgreSQL crashes and comes back in the middle of work: everyone goes on, nothing is done twice."""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path

import pytest

from partita.settings import DatabaseSettings, Settings
from partita.store.embedded import Server, StopMode
from tests.faults.conftest import StartWorker
from tests.waiting import until
from tests.worker.hosted import Host, hosted

STEPS = (
    {"name": "first", "task": {"type": "step"}},
    {"name": "held", "dependsOn": ["first"], "task": {"type": "hold"}, "input": {"folder": "${input.folder}"}},
    {"name": "pause", "dependsOn": ["held"], "wait": {"duration": "100ms"}},
    {"name": "last", "dependsOn": ["pause"], "task": {"type": "step"}},
)
RUNS = 10


@pytest.mark.parametrize("mode", ["immediate", "fast"])
async def test_everyone_reconnects_and_finishes(
    restartable_server: Server, start_worker: StartWorker, tmp_path: Path, mode: StopMode
) -> None:
    url = restartable_server.url("partita")
    settings = Settings(database=DatabaseSettings(url=url))
    lease = {"PARTITA_WORKER_LEASE_MS": "30000", "PARTITA_WORKER_HEARTBEAT_MS": "300"}
    async with hosted(settings, duties=False) as host:
        await host.deploy(*STEPS)
        workers = [start_worker(url, **lease) for _ in range(2)]
        runs = [await host.start({"folder": str(tmp_path)}) for _ in range(RUNS)]

        async def all_held() -> bool:
            return await queue_is_empty(host) and await all_completed(host, "first")

        await until(all_held, what="every run is in its second task")
        await asyncio.to_thread(restartable_server.stop, mode)
        (tmp_path / "go").touch()  # tasks end while the server is away
        await asyncio.to_thread(restartable_server.start)
        more = [await host.start({"folder": str(tmp_path)}) for _ in range(RUNS)]
        for run_id in [*runs, *more]:
            assert (await host.ended(run_id, within=60))["status"] == "Succeeded"
            completed = Counter(node for _, node, _ in await host.events(run_id, "TaskCompleted"))
            assert completed == {"first": 1, "held": 1, "last": 1}
            assert await host.events(run_id, "LeaseLost") == [], "an outage of the server is nobody's fault"
            assert await host.left_overs(run_id) == 0
        assert all(worker.process.poll() is None for worker in workers), "nobody was restarted by hand"


async def queue_is_empty(host: Host) -> bool:
    rows = await host.fetch(
        "SELECT (SELECT count(*) FROM partita.ready_tasks) AS ready,"
        " (SELECT count(*) FROM partita.task_leases) AS leases"
    )
    return bool(rows[0]["ready"] == 0 and rows[0]["leases"] == RUNS)


async def all_completed(host: Host, node: str) -> bool:
    query = "SELECT FROM partita.run_history WHERE event = 'TaskCompleted' AND node = $1"
    return len(await host.fetch(query, node)) == RUNS
