"""What the probes of a worker's process say while its database comes and goes, and while it stops."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path

from partita.settings import DatabaseSettings, Settings
from partita.store.embedded import Server
from tests.faults.conftest import StartWorker
from tests.faults.test_worker_faults import begun, start_held
from tests.probing import asked, free_port, says, values
from tests.waiting import until
from tests.worker.hosted import hosted


async def test_a_worker_that_starts_before_its_database_is_alive_and_not_ready(
    restartable_server: Server, start_worker: StartWorker
) -> None:
    await asyncio.to_thread(restartable_server.stop)
    port = free_port()
    telling = {"PARTITA_WORKER_HEALTH_BIND": f"127.0.0.1:{port}", "PARTITA_DATABASE_PATIENCE_MS": "200"}
    worker = start_worker(restartable_server.url("partita"), **telling)
    await worker.says("service heartbeat: ")
    assert await asked(port, "/livez") == (200, "ok\n")
    assert await asked(port, "/readyz") == (503, "starting: the database has not been reached yet\n")
    assert await asked(port, "/healthz") == (200, "starting\n")
    said = values((await asked(port, "/metrics"))[1])
    assert said["partita_worker_ready"] == 0
    assert said['partita_worker_duty_restarts_total{duty="heartbeat"}'] >= 1
    await asyncio.to_thread(restartable_server.start)
    await says(port, "/readyz", 200, "ready")
    await asyncio.to_thread(restartable_server.stop)
    await says(port, "/readyz", 503, "database: answered no heartbeat for")
    assert await asked(port, "/livez") == (200, "ok\n"), "a restart would not bring it back"
    await asyncio.to_thread(restartable_server.start)
    await says(port, "/readyz", 200, "ready")
    assert worker.process.poll() is None


async def test_what_a_worker_tells_of_its_work(
    restartable_server: Server, start_worker: StartWorker, tmp_path: Path
) -> None:
    url, port = restartable_server.url("partita"), free_port()
    settings = Settings(database=DatabaseSettings(url=url))
    bind = {"PARTITA_WORKER_HEALTH_BIND": f"127.0.0.1:{port}", "PARTITA_WORKER_STOP_GRACE_MS": "600000"}
    async with hosted(settings, duties=False) as host:
        worker = start_worker(url, **bind)
        first, second = await start_held(host, tmp_path), await host.start({"folder": str(tmp_path)})
        await begun(tmp_path, worker)

        async def both() -> bool:
            return values((await asked(port, "/metrics"))[1])["partita_worker_slots_used"] == 2

        await until(both, what="two slots to be taken")
        said = values((await asked(port, "/metrics"))[1])
        assert said['partita_worker_tasks_taken_total{queue="default",way="claim"}'] == 2
        assert said['partita_worker_claims_total{result="found"}'] >= 1
        assert said["partita_worker_heartbeat_age_seconds"] < 60
        assert 'partita_worker_attempts_total{outcome="succeeded"}' not in said
        worker.send(signal.SIGTERM)
        await says(port, "/readyz", 503, "draining")
        assert await asked(port, "/livez") == (200, "ok\n"), "it goes on with what it holds"
        assert worker.process.poll() is None
        (tmp_path / "go").touch()
        for run_id in (first, second):
            assert (await host.ended(run_id))["status"] == "Succeeded"
        assert await worker.exit_code() == 0


async def test_attempts_are_counted_by_their_outcome(settings: Settings, start_worker: StartWorker) -> None:
    port = free_port()
    steps = (
        {"name": "first", "task": {"type": "step"}},
        {"name": "unknown", "dependsOn": ["first"], "task": {"type": "nobody-knows-it"}, "onFailure": "continue"},
    )
    async with hosted(settings, duties=False) as host:
        await host.deploy(*steps)
        start_worker(
            settings.database.url,
            PARTITA_WORKER_HEALTH_BIND=f"127.0.0.1:{port}",
            PARTITA_ENGINE_UNKNOWN_TYPES="0",
        )
        await host.ended(await host.start())
        said = values(await says(port, "/metrics", 200, 'partita_worker_reports_total{answer="applied"} 2'))
        assert said['partita_worker_attempts_total{outcome="succeeded"}'] == 1
        assert said['partita_worker_attempts_total{outcome="failed"}'] == 1
        taken = [
            said.get(f'partita_worker_tasks_taken_total{{queue="default",way="{way}"}}', 0)
            for way in ("claim", "handover")
        ]
        assert sum(taken) == 2


async def test_a_taken_port_ends_a_worker_with_the_name_of_the_setting(
    settings: Settings, start_worker: StartWorker
) -> None:
    port = free_port()
    bind = {"PARTITA_WORKER_HEALTH_BIND": f"127.0.0.1:{port}"}
    start_worker(settings.database.url, **bind)
    await says(port, "/livez", 200, "ok")
    second = start_worker(settings.database.url, **bind)
    await second.says("PARTITA_WORKER_HEALTH_BIND")
    assert await second.exit_code() != 0
