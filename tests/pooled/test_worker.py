"""An engine and a worker behind PgBouncer, where nobody can be told of new work: looking takes over."""

from __future__ import annotations

from typing import Any

from partita.settings import Settings
from partita.store.notify import channel
from tests.pooled.tasks import app
from tests.waiting import until
from tests.worker.hosted import hosted

STEPS = (
    {"name": "first", "task": {"type": "double"}, "input": {"number": "${input.number}"}},
    {"name": "second", "dependsOn": ["first"], "task": {"type": "double"}, "input": {"number": 3}},
    {"name": "pause", "dependsOn": ["second"], "wait": {"duration": "20ms"}},
)


async def test_duties_and_worker_go_on_without_a_failure(pooled: Settings) -> None:
    async with hosted(pooled) as sender, hosted(pooled, app, poll_max_ms=50) as host:
        await sender.deploy(*STEPS)
        run_id = await sender.start({"number": 5})
        assert (await sender.ended(run_id))["status"] == "Succeeded"
        assert host.worker is not None
        await host.worker.heartbeat.ticked()
        for duty in (host.duties.sweeper, host.duties.inbox, host.duties.timers, host.duties.upkeep):
            await duty.ticked()
        assert all(report.restarts == 0 for report in host.worker.report())


async def test_an_idle_worker_finds_the_work_of_another_process_by_looking(pooled: Settings) -> None:
    """Its looks are so far apart as ``poll_max_ms`` says, and nobody listens."""
    silent: dict[str, Any] = {"heartbeat_ms": 600_000, "lease_ms": 3_600_000, "poll_max_ms": 400}
    async with hosted(pooled) as sender, hosted(pooled, app, **silent) as host:
        await sender.deploy(STEPS[1] | {"dependsOn": []})
        worker = host.worker
        assert worker is not None

        async def idle() -> bool:
            await worker.intake.ticked()
            return worker.intake.idle

        await until(idle, what="the worker has nothing to do and says so")
        for _ in range(6):
            await worker.intake.ticked()
        names = [service.name for service in host.duties.services]
        assert "wake-up listener" not in names
        assert (await sender.ended(await sender.start()))["status"] == "Succeeded"
        listening = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND query LIKE 'LISTEN%'"
        assert [row[0] for row in await host.fetch(listening)] == [0], channel("partita")
