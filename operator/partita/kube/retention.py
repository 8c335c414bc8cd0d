"""Deletes the WorkflowRun objects of finished runs when their time is over or there are too many of them.

Invariant: only the object goes; the record in PostgreSQL stays. Ends and the present are both the database's, so that
no machine's clock matters. An object whose time is zero goes as soon as its end is shown, others within ten seconds.
Nothing goes by a default before it is known that neither the definition nor the WorkflowEngine says otherwise, which a
new leader learns from events in no certain order. Trade-off: a look at every remembered object each round, nine
milliseconds for ten thousand, against an ordered queue.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any

from partita.domain.errors import NotFoundError, PartitaError
from partita.engine.service import TickingService
from partita.kube import metric_families as families
from partita.kube.client import KubeClient
from partita.kube.mirror import Mirror, Seen
from partita.kube.resources import DEFINITIONS, RUNS
from partita.kube.ttl import Place, Policy, beyond, is_over, life_of, place_of
from partita.probes.metrics import Metrics

log = logging.getLogger(__name__)

INTERVAL_SECONDS = 10.0
BATCH = 500
CONCURRENCY = 8
AT_ONCE = timedelta(0)


class Retention(TickingService):
    """Removes finished objects. ``now``: the database's clock."""

    def __init__(
        self,
        client: KubeClient,
        mirror: Mirror,
        metrics: Metrics,
        now: Callable[[], Awaitable[datetime]],
        default_ms: int,
    ) -> None:
        super().__init__("retention")
        self._client = client
        self._mirror = mirror
        self._metrics = metrics
        self._now = now
        self._setting = timedelta(milliseconds=default_ms)
        self._default: timedelta | None = None
        self._policies: dict[Place, Policy] = {}
        self._slots = asyncio.Semaphore(CONCURRENCY)
        self._fresh: list[Seen] = []
        self._looked_at = float("-inf")

    def default(self, seconds: int | None) -> None:
        """What holds for objects that say nothing; None takes the operator's setting."""
        self._default = self._setting if seconds is None else timedelta(seconds=seconds)

    def define(self, namespace: str, definition: str, spec: Mapping[str, Any]) -> None:
        """Learn what a definition says; an empty spec is one that is gone."""
        said = spec.get("retention") or {}
        policy = Policy(said.get("ttlSecondsAfterFinished"), said.get("maxFinishedRuns"))
        self._policies[namespace, definition] = policy

    def finished(self, seen: Seen) -> None:
        """An object shows the end of its run; it goes now if that is what it says."""
        if self._life(seen) == AT_ONCE:
            self._fresh.append(seen)
            self.wake()

    async def tick(self) -> float:
        """Delete what has just ended and has no time, and every ten seconds look at all of them."""
        fresh, self._fresh = self._fresh, []
        await self._learn(fresh)
        await self._delete([seen for seen in fresh if self._life(seen) == AT_ONCE], "ttl")
        left = self._looked_at + INTERVAL_SECONDS - self._clock.monotonic()
        if left > 0:
            return left
        return await self._look()

    async def _look(self) -> float:
        finished = [seen for seen in self._mirror if seen.finished_at is not None and not seen.deleted]
        more = 0
        if finished:
            now = await self._now()
            over = [seen for seen in finished if self._is_over(seen, now)]
            await self._learn(over[:BATCH])
            await self._delete([seen for seen in over[:BATCH] if self._is_over(seen, now)], "ttl")
            many = beyond((seen for seen in finished if not seen.deleted), self._policies)
            await self._delete(many[:BATCH], "limit")
            more = max(len(over), len(many)) - BATCH
        if more > 0:
            return 0.1
        self._looked_at = self._clock.monotonic()
        return INTERVAL_SECONDS

    async def _learn(self, objects: Iterable[Seen]) -> None:
        """Ask for the definitions of these objects that no event has told of; one that is gone says nothing."""
        for namespace, name in {place_of(seen) for seen in objects} - self._policies.keys():
            try:
                body = await self._client.get(DEFINITIONS.path(namespace, name))
            except NotFoundError:
                body = {}
            self.define(namespace, name, body.get("spec") or {})

    def _life(self, seen: Seen) -> timedelta | None:
        return life_of(seen, self._default, self._policies.get(place_of(seen)))

    def _is_over(self, seen: Seen, now: datetime) -> bool:
        return is_over(seen, now, self._default, self._policies.get(place_of(seen)))

    async def _delete(self, objects: list[Seen], cause: str) -> None:
        await asyncio.gather(*(self._delete_one(seen, cause) for seen in objects))

    async def _delete_one(self, seen: Seen, cause: str) -> None:
        async with self._slots:
            try:
                await self._client.delete(RUNS.path(seen.namespace, seen.name), uid=seen.uid)
            except PartitaError as error:
                log.warning("deleting %s/%s: %s", seen.namespace, seen.name, error)
            else:
                seen.deleted = True
                self._metrics.add(families.DELETED, cause)
