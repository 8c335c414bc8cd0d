"""The two backends of the command line, each with what it needs to work, for the test that compares them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from partita.cli.backend import Backend, RunDetail
from partita.cli.cluster import ClusterBackend
from partita.cli.database import DatabaseBackend
from partita.settings import Settings
from partita.worker import Fatal, Tasks
from tests.kube.operated import Namespace, echo_tasks, operating, working
from tests.waiting import until

Document = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Place:
    """A backend, with the namespace in which a test works."""

    backend: Backend
    namespace: str

    async def start(self, *documents: Document) -> str:
        """Submit documents, and return what the last one, a run, is called once it is known."""
        done = await self.backend.submit(self.namespace, documents)
        await self.until(done[-1].reference, lambda detail: bool(detail.run.id), "known")
        return done[-1].reference

    async def get(self, run: str) -> RunDetail:
        """A run."""
        return await self.backend.get(self.namespace, run)

    async def until(self, run: str, accepts: Any, what: str) -> RunDetail:
        """A run once it is as expected."""

        async def check() -> RunDetail | None:
            detail = await self.get(run)
            return detail if accepts(detail) else None

        found = await until(check, within=30, every=0.05, what=f"{run}: {what}")
        assert found is not None
        return found

    async def phase(self, run: str, phase: str) -> RunDetail:
        """A run once it is in this phase."""
        return await self.until(run, lambda detail: detail.run.phase == phase, phase)

    async def waiting(self, run: str) -> RunDetail:
        """A run once it waits for something other than a worker, which only the database tells, and nothing runs."""

        def waits(detail: RunDetail) -> bool:
            waiting = detail.run.waiting
            idle = not any(node.state in ("Queued", "Running") for node in detail.nodes)
            return detail.run.phase == "Running" and bool(waiting) and not waiting.startswith("a worker") and idle

        return await self.until(run, waits, "waiting")


def _tasks() -> Tasks:
    tasks = echo_tasks()

    @tasks.task("boom")
    async def boom() -> None:
        raise Fatal("no card of this name")

    return tasks


@asynccontextmanager
async def on_database(settings: Settings, namespace: str) -> AsyncIterator[Place]:
    """The database alone, with a worker."""
    async with working(settings, _tasks()), await DatabaseBackend.open(settings) as backend:
        yield Place(backend, namespace)


@asynccontextmanager
async def on_cluster(settings: Settings, here: Namespace) -> AsyncIterator[Place]:
    """The API, with an operator and a worker."""
    async with operating(here, settings), working(settings, _tasks()):
        backend = await ClusterBackend.open(str(here.cluster.kubeconfig), "")
        try:
            yield Place(backend, here.name)
        finally:
            await backend.close()


def told(detail: RunDetail) -> dict[str, Any]:
    """What a person is told of a run, without what is each run's own (ids, names and times)."""
    run = detail.run
    return {
        "definition": run.definition,
        "version": run.version,
        "phase": run.phase,
        "progress": run.progress,
        "waiting": run.waiting,
        "message": run.message,
        "finished": run.finished and run.finished_at is not None,
        "nodes": sorted((node.name, node.state, node.attempt, node.message) for node in begun(detail)),
        "output": detail.output,
        "error": detail.error,
    }


def begun(detail: RunDetail) -> Sequence[Any]:
    """Nodes that something has happened to: a status does not list the others."""
    return [node for node in detail.nodes if node.state != "Pending"]
