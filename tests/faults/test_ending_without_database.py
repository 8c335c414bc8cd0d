"""Processes that end while PostgreSQL is away: soon when they hold nothing, in time to hand back what they hold.

The bound is a promise to those who uninstall or drain a node, fifty times what it takes: before, an idle worker took 40
seconds.
"""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path

from partita.settings import DatabaseSettings, Settings
from partita.store.embedded import Server
from tests.faults.conftest import StartWorker, WorkerProcess
from tests.faults.test_worker_faults import begun, start_held
from tests.probing import free_port, says
from tests.waiting import until
from tests.worker.hosted import hosted

SOON = 5.0
PATIENT = {"PARTITA_WORKER_LEASE_MS": "30000", "PARTITA_WORKER_HEARTBEAT_MS": "10000"}
"""As workers are run: neither lease nor heartbeat makes an end earlier."""
TELLING = {**PATIENT, "PARTITA_DATABASE_PATIENCE_MS": "200"}
"""Says soon that a report has failed, and goes on trying."""


async def ended(worker: WorkerProcess) -> bool:
    return worker.process.poll() is not None


async def test_an_idle_worker_ends_soon(restartable_server: Server, start_worker: StartWorker) -> None:
    port = free_port()
    bind = {"PARTITA_WORKER_HEALTH_BIND": f"127.0.0.1:{port}", "PARTITA_WORKER_STOP_GRACE_MS": "30000"}
    worker = start_worker(restartable_server.url("partita"), **PATIENT, **bind)
    await says(port, "/readyz", 200, "ready")
    await asyncio.to_thread(restartable_server.stop, "immediate")
    await worker.says("service wake-up listener: ")
    worker.send(signal.SIGTERM)
    await until(lambda: ended(worker), within=SOON, what="the worker to end")
    assert worker.process.returncode == 0


async def test_one_that_holds_a_task_hands_it_back_when_the_database_is_there_again_in_time(
    restartable_server: Server, start_worker: StartWorker, tmp_path: Path
) -> None:
    url = restartable_server.url("partita")
    async with hosted(Settings(database=DatabaseSettings(url=url)), duties=False) as host:
        worker = start_worker(url, **TELLING, PARTITA_WORKER_STOP_GRACE_MS="0")
        run_id = await start_held(host, tmp_path)
        await begun(tmp_path, worker)
        await asyncio.to_thread(restartable_server.stop, "immediate")
        worker.send(signal.SIGTERM)
        await worker.says("its report is sent again")
        assert worker.process.poll() is None, "it holds something"
        await asyncio.to_thread(restartable_server.start)
        assert await worker.exit_code() == 0
        second = start_worker(url, **PATIENT)
        await begun(tmp_path, second, attempt=1)
        (tmp_path / "go").touch()
        assert (await host.ended(run_id))["status"] == "Succeeded"
        assert await host.events(run_id, "TaskCompleted", "LeaseLost") == [("TaskCompleted", "held", 1)]


async def test_a_result_is_recorded_although_the_worker_stops_meanwhile(
    restartable_server: Server, start_worker: StartWorker, tmp_path: Path
) -> None:
    url = restartable_server.url("partita")
    async with hosted(Settings(database=DatabaseSettings(url=url)), duties=False) as host:
        worker = start_worker(url, **TELLING, PARTITA_WORKER_STOP_GRACE_MS="60000")
        run_id = await start_held(host, tmp_path)
        await begun(tmp_path, worker)
        await asyncio.to_thread(restartable_server.stop, "immediate")
        worker.send(signal.SIGTERM)
        (tmp_path / "go").touch()
        await worker.says("its report is sent again")
        await asyncio.to_thread(restartable_server.start)
        assert await worker.exit_code() == 0
        assert (await host.ended(run_id))["status"] == "Succeeded"
        assert await host.events(run_id, "TaskCompleted", "LeaseLost") == [("TaskCompleted", "held", 1)]
