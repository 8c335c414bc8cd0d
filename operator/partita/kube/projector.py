"""The only writer of WorkflowRun statuses: takes what is due in the database and patches it into the objects.

Invariant: a status is written only over an older revision of itself or for a newer generation (guarded by the object's
uid and resourceVersion), and its queue row goes only after it is there; so a kill at any point costs at most one patch
that changes nothing. Trade-off: a patch that meets a concurrent change is tried once more after a GET, and then waits
for the next round.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from partita.domain.errors import ConflictError, NotFoundError, PartitaError, UnavailableError
from partita.domain.model import Definition
from partita.engine.projection import ObjectRef, Refusal, RunSummary
from partita.engine.projection_queue import Projections
from partita.engine.service import TickingService
from partita.kube import metric_families as families
from partita.kube.client import KubeClient
from partita.kube.mirror import Mirror, Seen
from partita.kube.refusals import not_accepted_yet
from partita.kube.resources import RUNS
from partita.kube.run_events import RunEvents, Shown
from partita.kube.signals import prune
from partita.kube.status import refusal_status, run_status
from partita.probes.metrics import Metrics

log = logging.getLogger(__name__)

BATCH = 200
IDLE_SECONDS = 0.1
RETRY_MS = 2_000
REFUSED_MS = 60_000
"""Pause after the API refused a status; trying sooner would only fill the log."""
REFUSALS_SECONDS = 10.0
AGAIN_SECONDS = 1.0
"""Within this long a further try has begun."""


@dataclass(frozen=True, slots=True)
class Write:
    """One status to bring into one object."""

    source: RunSummary | Refusal
    revision: int
    status: dict[str, Any]

    @property
    def object(self) -> ObjectRef:
        """The object that the status belongs to."""
        return self.source.object


class Projector(TickingService):
    """Shows records in objects. ``concurrency``: patches under way at once."""

    def __init__(
        self,
        client: KubeClient,
        projections: Projections,
        mirror: Mirror,
        metrics: Metrics,
        events: RunEvents,
        *,
        concurrency: int = 16,
        status_bytes: int = 16_384,
        before_write: Callable[[], Awaitable[None]] | None = None,
        flow_of: Callable[[RunSummary], Awaitable[Definition | None]] | None = None,
        finished: Callable[[Seen], None] | None = None,
    ) -> None:
        """``flow_of``: what a run executes, for the order and the stages of its nodes.

        ``finished`` is told of objects that show the end of their run from now on.
        """
        super().__init__("projector")
        self._flow_of = flow_of
        self._client = client
        self._projections = projections
        self._mirror = mirror
        self._metrics = metrics
        self._events = events
        self._finished = finished
        self._slots = asyncio.Semaphore(concurrency)
        self._status_bytes = status_bytes
        self._before_write = before_write
        self._refused = True
        self._refusals_at = 0.0
        self._behind_until = 0.0
        """Until then something waits for another try, so that not every status is written."""

    def refused(self) -> None:
        """A refusal was recorded: show it in the next round, which begins now."""
        self._refused = True
        self.wake()

    async def tick(self) -> float:
        """One batch of due statuses, and the refusals when there may be some."""
        due = await self._projections.due(BATCH)
        if due:
            await self._show_runs(due)
        now = self._clock.monotonic()
        if self._refused or now - self._refusals_at > REFUSALS_SECONDS:
            self._refused, self._refusals_at = False, now
            await self._show_refusals()
        self._events.flush()
        if len(due) < BATCH and now >= self._behind_until:
            self._metrics.set(families.LAST_SYNC, round(time.time(), 3))
        return 0.0 if len(due) == BATCH else IDLE_SECONDS

    async def _show_runs(self, due: list[tuple[UUID, int]]) -> None:
        ids = [run for run, _ in due]
        listed = {run: signals for run in ids if (signals := self._mirror.signals(str(run)))}
        summaries = {summary.run_id: summary for summary in await self._projections.summaries(ids, listed)}
        pauses = await asyncio.gather(*(self._show_run(summaries.get(run)) for run in ids))
        shown = [
            (run, summaries[run].revision if run in summaries else revision)
            for (run, revision), pause in zip(due, pauses, strict=True)
            if not pause
        ]
        if shown:
            await self._projections.shown(shown)
        for pause in {pause for pause in pauses if pause}:
            failed = [run for run, its in zip(ids, pauses, strict=True) if its == pause]
            await self._projections.postpone(failed, pause)

    async def _show_run(self, run: RunSummary | None) -> int:
        if run is None:
            return 0
        seen = self._mirror.get(run.object.uid)
        flow = await self._flow_of(run) if self._flow_of is not None else None
        status = run_status(run, self._status_bytes, seen.unsupported if seen else (), flow)
        return await self._write(Write(run, run.revision, status))

    async def _show_refusals(self) -> None:
        refusals = await self._projections.refusals(BATCH)
        pauses = await asyncio.gather(*(self._show_refusal(refusal) for refusal in refusals))
        await self._projections.refusals_shown([r for r, pause in zip(refusals, pauses, strict=True) if not pause])
        for refusal, pause in zip(refusals, pauses, strict=True):
            if pause:
                await self._projections.postpone_refusals([refusal], pause)

    async def _show_refusal(self, refusal: Refusal) -> int:
        known = await not_accepted_yet(self._client, refusal)
        return await self._write(Write(known, 0, refusal_status(known)))

    async def _write(self, write: Write) -> int:
        """Bring a status into its object; 0 when it is there or has no object, else ms until the next try."""
        async with self._slots:
            pause = await self._tried(write)
        if pause:
            self._metrics.add(families.STATUS_FAILURES)
            self._behind_until = self._clock.monotonic() + pause / 1000 + AGAIN_SECONDS
        return pause

    async def _tried(self, write: Write) -> int:
        try:
            return 0 if await self._attempt(write) else RETRY_MS
        except NotFoundError:
            return 0
        except UnavailableError as error:
            log.debug("status of %s/%s: %s", write.object.namespace, write.object.name, error)
            return RETRY_MS
        except PartitaError as error:
            log.warning("status of %s/%s: %s", write.object.namespace, write.object.name, error)
            return REFUSED_MS

    async def _attempt(self, write: Write) -> bool:
        seen = self._mirror.get(write.object.uid) or await self._fetch(write)
        for _ in range(2):
            if seen is None or _shows(seen, write):
                return True
            try:
                await self._patch(seen, write)
            except ConflictError:
                seen = await self._fetch(write)
                continue
            return True
        return False

    async def _fetch(self, write: Write) -> Seen | None:
        """The object as it is now; None when it is gone or another has its name. Raises NotFoundError."""
        body = await self._client.get(RUNS.path(write.object.namespace, write.object.name))
        return self._mirror.observe(body) if body["metadata"]["uid"] == write.object.uid else None

    async def _patch(self, seen: Seen, write: Write) -> None:
        if self._before_write is not None:
            await self._before_write()
        guard = {"uid": seen.uid, "resourceVersion": str(seen.resource_version)}
        path = RUNS.path(seen.namespace, seen.name, "status")
        self._metrics.add(families.STATUS_WRITES)
        before, ended = Shown(seen.phase, seen.waiting_for), seen.finished_at is not None
        body = await self._client.patch(path, {"metadata": guard, "status": write.status})
        now = self._mirror.observe(body)
        self._tell(write, before)
        if self._finished is not None and now.finished_at is not None and not ended:
            self._finished(now)
        await prune(self._client, self._mirror, body)

    def _tell(self, write: Write, before: Shown) -> None:
        if isinstance(write.source, Refusal):
            self._events.refused(write.source)
        else:
            self._events.shown(write.source, before, write.status)


def _shows(seen: Seen, write: Write) -> bool:
    """Whether the object already says this or something newer."""
    if write.revision == 0:
        return seen.revision > 0
    return seen.revision >= write.revision and seen.observed >= write.object.generation
