"""The one handler of WorkflowRun: an object's body becomes a command for the engine. It never writes to the object.

Invariant: an object is handled by one task at a time, and a generation that was applied is skipped, so the status
patches of the projector cost nothing here. The watch repeats nothing, hence the retries are our own, and what still
fails is found by resync. Trade-off: while the database is away, handlers wait and hold their slots.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from uuid import UUID

from partita.domain.errors import NotFoundError, PartitaError
from partita.engine.reconcile import Installation, Outcome, Reconciler, run_id_of
from partita.kube import metric_families as families
from partita.kube.client import KubeClient
from partita.kube.mirror import Mirror, Seen
from partita.kube.resources import RUNS
from partita.kube.retrying import retrying
from partita.probes.metrics import Metrics
from partita.store.projection import ProjectionStore

log = logging.getLogger(__name__)


class Runs:
    """Takes in WorkflowRun objects. ``refused`` is called after a refusal was recorded."""

    def __init__(
        self,
        client: KubeClient,
        reconciler: Reconciler,
        mirror: Mirror,
        metrics: Metrics,
        refused: Callable[[], None],
    ) -> None:
        self._metrics = metrics
        self._client = client
        self._reconciler = reconciler
        self._mirror = mirror
        self._refused = refused

    def settled(self, body: Mapping[str, Any]) -> bool:
        """Take note of an object; True when its generation was applied, or its status shows the end of it."""
        seen = self._mirror.observe(body)
        generation: int = body["metadata"]["generation"]
        if _is_over(body):
            seen.applied = max(seen.applied, generation)
        return seen.applied >= generation

    async def changed(self, body: Mapping[str, Any]) -> None:
        """Start the run of an object, or apply the controls of its generation."""
        with _told(body):
            await self._apply(self._mirror.observe(body), body)

    async def deleted(self, body: Mapping[str, Any]) -> None:
        """Cancel the run of an object that is gone, if it has not ended, and forget its refusal."""
        with _told(body):
            await self._gone(body)

    async def take_in(self, namespace: str, name: str, uid: str) -> None:
        """Take an object in (again), as it is now; one that is gone or has been replaced is left alone."""
        try:
            body = await self._client.get(RUNS.path(namespace, name))
        except NotFoundError:
            return
        if body["metadata"]["uid"] == uid:
            await self._apply(self._mirror.observe(body), body)

    async def gone(self, uid: str, run_id: UUID | None) -> None:
        """An object that the database knows does not exist any more."""
        self._mirror.forget(uid)
        await self._reconciler.gone(uid, run_id)

    async def _apply(self, seen: Seen, body: Mapping[str, Any]) -> None:
        refused = seen.waiting or _was_refused(body)
        try:
            outcome = await retrying(lambda: self._reconciler.take_in(body, refused=refused))
        except PartitaError:
            self._metrics.add(families.RECONCILES, "error")
            raise
        self._metrics.add(families.RECONCILES, outcome.value)
        seen.applied = max(seen.applied, body["metadata"]["generation"])
        seen.waiting = outcome is Outcome.WAITING
        if outcome in (Outcome.WAITING, Outcome.REFUSED):
            self._refused()

    async def _gone(self, body: Mapping[str, Any]) -> None:
        uid = body["metadata"]["uid"]
        known = self._mirror.forget(uid)
        if (known is not None and known.waiting) or _was_refused(body):
            await retrying(lambda: self._reconciler.gone(uid, None))
        if not _is_over(body):
            await retrying(lambda: self._reconciler.gone(uid, run_id_of(body)))


class Waiting:
    """Takes in again, when a definition appears, the objects that wait for it."""

    def __init__(
        self, runs: Runs, store: ProjectionStore, installation: Installation, *, concurrency: int = 16
    ) -> None:
        self._runs = runs
        self._store = store
        self._engine_id = installation.engine_id
        self._slots = asyncio.Semaphore(concurrency)

    async def appeared(self, namespace: str, definition: str) -> None:
        """A definition was deployed; what fails now is tried again by resync."""
        try:
            rows = await self._store.refusals_waiting(self._engine_id, namespace, definition)
        except PartitaError as error:
            log.warning("runs that wait for %s/%s: %s; resync tries again", namespace, definition, error)
            return
        await asyncio.gather(*(self._one(row["cr_namespace"], row["cr_name"], row["cr_uid"]) for row in rows))

    async def _one(self, namespace: str, name: str, uid: str) -> None:
        async with self._slots:
            try:
                await self._runs.take_in(namespace, name, uid)
            except PartitaError as error:
                log.warning("WorkflowRun %s/%s: %s; resync tries again", namespace, name, error)


@contextmanager
def _told(body: Mapping[str, Any]) -> Iterator[None]:
    """Log what went wrong with an object, which resync repeats."""
    try:
        yield
    except PartitaError as error:
        metadata = body["metadata"]
        log.warning("WorkflowRun %s/%s: %s; resync tries again", metadata["namespace"], metadata["name"], error)


def _is_over(body: Mapping[str, Any]) -> bool:
    """Whether the status shows an end and speaks of the present generation: nothing is left to apply."""
    status = body.get("status") or {}
    return bool(status.get("finishedAt")) and status.get("observedGeneration") == body["metadata"].get("generation")


def _was_refused(body: Mapping[str, Any]) -> bool:
    conditions = (body.get("status") or {}).get("conditions") or ()
    return any(each["type"] == "Accepted" and each["status"] == "False" for each in conditions)
