"""A database that keeps its connections and answers nothing: every request has a limit, so that no duty hangs."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import replace

from partita.engine.duties import Duties
from partita.engine.engine import Engine
from partita.engine.service import Service, TickingService
from partita.engine.supervisor import ServiceReport, Supervisor
from partita.settings import Settings
from partita.worker import Tasks
from partita.worker.runtime import Worker
from tests.engine.proxy import proxy_to
from tests.faults.conftest import StartWorker
from tests.faults.test_ending_without_database import PATIENT, ended
from tests.probing import free_port, says
from tests.waiting import until

ENDS = 20.0
"""Within this long an idle worker ends, whose pod has 45 seconds: each of its last words takes two at most."""


@asynccontextmanager
async def process(settings: Settings) -> AsyncIterator[tuple[Supervisor, Worker, list[TickingService]]]:
    """A worker's process, with everything in it that works in rounds."""
    supervisor = Supervisor()
    async with await Engine.open(settings) as engine:
        duties = Duties(engine)
        worker = Worker(engine, Tasks())
        supervisor.start(*duties.services)
        await worker.start()
        try:
            yield supervisor, worker, [*_in_rounds(duties.services), worker.heartbeat, worker.intake]
        finally:
            await worker.stop(grace=0)
            await supervisor.stop()


def _in_rounds(services: Iterable[Service]) -> Iterable[TickingService]:
    """Those whose rounds ask the database, whatever there is to do."""
    return [each for each in services if isinstance(each, TickingService) and each.name != "wake-ups"]


async def test_no_round_lasts_for_longer_than_its_requests_may(settings: Settings) -> None:
    async with proxy_to(settings.database.url) as proxy:
        limits = replace(settings.database, connect_timeout_ms=2_000, patience_ms=500, statement_timeout_ms=2_000)
        behind = replace(settings, database=replace(limits, url=proxy.url))
        async with process(behind) as (supervisor, worker, services):

            def reports() -> tuple[ServiceReport, ...]:
                names = {service.name for service in services}
                return tuple(each for each in (*supervisor.report(), *worker.report()) if each.name in names)

            async def failed() -> bool:
                for service in services:
                    service.wake()
                return all(report.restarts > 0 for report in reports())

            async def done() -> bool:
                for service in services:
                    service.wake()
                return all(new.rounds > old.rounds for old, new in zip(before, reports(), strict=True))

            assert len(reports()) == 6
            for service in services:  # upkeep looks at months and statistics in its first round, without a limit
                await service.ticked()
            proxy.frozen = True
            await until(failed, within=60, what="every duty to fail, which none does that hangs")
            proxy.frozen, before = False, reports()
            await until(done, within=60, what="every duty to go on")


async def test_an_idle_worker_ends_though_the_database_answers_nothing(
    settings: Settings, start_worker: StartWorker
) -> None:
    async with proxy_to(settings.database.url) as proxy:
        port = free_port()
        worker = start_worker(proxy.url, **PATIENT, PARTITA_WORKER_HEALTH_BIND=f"127.0.0.1:{port}")
        await says(port, "/readyz", 200, "ready")
        proxy.frozen = True
        worker.send(signal.SIGTERM)
        begun = asyncio.get_running_loop().time()
        await until(lambda: ended(worker), within=ENDS, what="the worker to end")
        print(f"a worker whose database hangs ended {asyncio.get_running_loop().time() - begun:.1f} s after SIGTERM")
        assert worker.process.returncode == 0
