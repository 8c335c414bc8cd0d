"""A process's engine with its duties and, if wanted, a worker, inside a test."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

from partita.domain.payload import Json
from partita.engine.duties import Duties
from partita.engine.engine import Engine
from partita.engine.requests import StartRequest
from partita.engine.supervisor import Supervisor
from partita.settings import Settings
from partita.store.database import Record
from partita.worker import Tasks
from partita.worker.runtime import Worker
from tests.waiting import until

NAMESPACE = "shop"
ENDED = {"Succeeded", "Failed", "Cancelled"}
RUN = "SELECT status, reason, output_json, error_json FROM partita.workflow_runs WHERE id = $1"
HISTORY = "SELECT event, node, attempt, who, error FROM partita.run_history WHERE run_id = $1 ORDER BY seq"
LEFT_OVERS = (
    "SELECT (SELECT count(*) FROM partita.ready_tasks WHERE run_id = $1)"
    " + (SELECT count(*) FROM partita.task_leases WHERE run_id = $1)"
    " + (SELECT count(*) FROM partita.timers WHERE run_id = $1)"
    " + (SELECT count(*) FROM partita.waits WHERE run_id = $1)"
)


@dataclass
class Host:
    """One process."""

    engine: Engine
    duties: Duties
    worker: Worker | None = None

    async def deploy(self, *nodes: Json, name: str = "order", **spec: Json) -> None:
        """Store a definition of these nodes."""
        await self.engine.deploy(NAMESPACE, name, {"nodes": list(nodes), **spec})

    async def start(self, value: Json = None, name: str = "order", **options: Any) -> UUID:
        """Start a run."""
        request = StartRequest(namespace=NAMESPACE, definition=name, input=value or {}, **options)
        return (await self.engine.start(request)).run_id

    async def fetch(self, query: str, *values: Any) -> list[Record]:
        """Rows of any query."""
        return await self.engine.database.read(lambda connection: connection.fetch(query, *values))

    async def ended(self, run_id: UUID, *, within: float = 30.0) -> Record:
        """The run's row once it has ended."""

        async def check() -> Record | None:
            (row,) = await self.fetch(RUN, run_id)
            return row if row["status"] in ENDED else None

        row = await until(check, within=within, what=f"run {run_id} has ended")
        assert row is not None
        return row

    async def events(self, run_id: UUID, *kinds: str) -> list[tuple[str, str, int | None]]:
        """Event, node and attempt of these kinds of history, in order."""
        rows = await self.fetch(HISTORY, run_id)
        return [(row["event"], row["node"], row["attempt"]) for row in rows if row["event"] in kinds]

    async def left_overs(self, run_id: UUID) -> int:
        """Scheduling rows of the run."""
        (row,) = await self.fetch(LEFT_OVERS, run_id)
        return int(row[0])


@asynccontextmanager
async def hosted(
    settings: Settings, tasks: Tasks | None = None, *, duties: bool = True, **worker: Any
) -> AsyncIterator[Host]:
    """An engine with its duties and, with tasks, a worker that has these settings."""
    settings = replace(settings, worker=replace(settings.worker, **worker))
    supervisor = Supervisor()
    async with await Engine.open(settings) as engine:
        services = Duties(engine, listen=tasks is not None)
        host = Host(engine, services)
        if duties:
            supervisor.start(*services.services)
        if tasks is not None:
            host.worker = Worker(engine, tasks, services.wakeups)
            await host.worker.start()
        try:
            yield host
        finally:
            if host.worker is not None and not host.worker.draining:
                await host.worker.stop(grace=5)
            await supervisor.stop()
