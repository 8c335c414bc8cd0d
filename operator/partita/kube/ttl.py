"""Deletes WorkflowRun objects some time after their run has ended; the record in PostgreSQL stays.

The time is the run's own ``spec.ttlSecondsAfterFinished``, else that of the WorkflowEngine, else the operator's
setting; the latter two spare objects that a GitOps tool would create again. An object that took over a run which had
ended before has its time from its own beginning. Otherwise the end and the present are both the database's, so that no
machine's clock matters. The trade-off is a look at every remembered object each round, which is cheap, against an
ordered queue.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta

from partita.domain.errors import PartitaError
from partita.engine.service import TickingService
from partita.kube.client import KubeClient
from partita.kube.mirror import Mirror, Seen
from partita.kube.resources import RUNS

log = logging.getLogger(__name__)

INTERVAL_SECONDS = 10.0
BATCH = 500


class TimeToLive(TickingService):
    """Removes finished objects whose time is over."""

    def __init__(
        self, client: KubeClient, mirror: Mirror, now: Callable[[], Awaitable[datetime]], default_ms: int
    ) -> None:
        super().__init__("ttl")
        self._client = client
        self._mirror = mirror
        self._now = now
        self._setting = self._default = timedelta(milliseconds=default_ms)

    def default(self, seconds: int | None) -> None:
        """What holds for objects that say nothing; None takes the operator's setting."""
        self._default = self._setting if seconds is None else timedelta(seconds=seconds)

    async def tick(self) -> float:
        """Delete what is over now, at most one batch."""
        finished = [seen for seen in self._mirror if seen.finished_at is not None]
        if not finished:
            return INTERVAL_SECONDS
        now = await self._now()
        over = [seen for seen in finished if is_over(seen, now, self._default)]
        for seen in over[:BATCH]:
            await self._delete(seen)
        return 0.1 if len(over) > BATCH else INTERVAL_SECONDS

    async def _delete(self, seen: Seen) -> None:
        try:
            await self._client.delete(RUNS.path(seen.namespace, seen.name), uid=seen.uid)
        except PartitaError as error:
            log.warning("deleting %s/%s: %s", seen.namespace, seen.name, error)


def is_over(seen: Seen, now: datetime, default: timedelta) -> bool:
    """Whether a finished object's time to live has passed."""
    if seen.finished_at is None or (seen.ttl_seconds is None and seen.tracked):
        return False
    life = default if seen.ttl_seconds is None else timedelta(seconds=seen.ttl_seconds)
    return now >= max(seen.finished_at, seen.created_at or seen.finished_at) + life
