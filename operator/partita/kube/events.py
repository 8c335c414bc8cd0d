"""Kubernetes Events: what ``kubectl describe`` shows below an object.

Purpose: a handful of them an object, written beside the work. Invariant: best effort. Whoever has news leaves it here
and goes on; nothing waits for an Event and nothing fails with one. There is at most one Event object for a thing that
is told, named after it, so that a restart or a second leader tells nothing twice. Trade-off: beyond the allowed rate
news is dropped, the ordinary before warnings.
"""

from __future__ import annotations

import hashlib
import logging
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from partita.domain.errors import ConflictError, NotFoundError, PartitaError, UnavailableError
from partita.engine.service import Clock, TickingService
from partita.kube import metric_families as families
from partita.kube.client import KubeClient
from partita.kube.conditions import clip, seconds
from partita.kube.resources import API_VERSION, EVENTS
from partita.probes.metrics import Metrics

log = logging.getLogger(__name__)

COMPONENT: Final = "partita"
MESSAGE_LIMIT: Final = 1024
BURST: Final = 100
"""Events that may be written at once after a quiet time."""
QUEUE: Final = 1_000
"""News that may wait; ordinary ones only up to half of it."""
IDLE_SECONDS: Final = 5.0
AWAY_SECONDS: Final = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class News:
    """Something to tell about an object."""

    kind: str
    namespace: str
    name: str
    uid: str
    reason: str
    message: str
    warning: bool = False
    key: str = ""
    """What tells this from other news with the same reason; the same key is told once."""
    latest: bool = False
    """One Event for all of these: it shows the latest message and how many there were."""


class EventBudget:
    """A token bucket: ``per_minute`` tokens are added a minute, up to ``BURST``."""

    def __init__(self, per_minute: int, clock: Clock) -> None:
        self._rate = per_minute / 60
        self._clock = clock
        self._tokens = float(min(BURST, per_minute))
        self._most = self._tokens
        self._at = clock.monotonic()

    def take(self) -> float:
        """Take a token; the answer is 0, or the seconds until there is one."""
        now = self._clock.monotonic()
        self._tokens, self._at = min(self._most, self._tokens + (now - self._at) * self._rate), now
        if self._tokens < 1:
            return (1 - self._tokens) / self._rate
        self._tokens -= 1
        return 0.0


class Events(TickingService):
    """Writes news as Events, as many as the budget allows. ``instance``: who tells it."""

    def __init__(
        self, client: KubeClient, metrics: Metrics, *, instance: str, per_minute: int, clock: Clock | None = None
    ) -> None:
        super().__init__("events", clock=clock)
        self._client = client
        self._metrics = metrics
        self._instance = instance[:128]
        self._per_minute = per_minute
        self._budget = EventBudget(per_minute, self._clock)
        self._news: deque[tuple[News, datetime]] = deque()

    def tell(self, news: News) -> None:
        """Leave news to be written; never waits."""
        if not self._per_minute:
            return
        if len(self._news) >= (QUEUE if news.warning else QUEUE // 2):
            self._metrics.add(families.EVENTS, "dropped")
            return
        self._news.append((news, datetime.now(UTC)))
        self.wake()

    async def tick(self) -> float:
        """Write the news that wait, one after the other."""
        while self._news and not self.stopping:
            pause = self._budget.take()
            if pause:
                return pause
            news, at = self._news.popleft()
            try:
                await self._write(news, at)
                self._metrics.add(families.EVENTS, "sent")
            except PartitaError as error:
                log.debug("event %s of %s/%s: %s", news.reason, news.namespace, news.name, error)
                self._metrics.add(families.EVENTS, "failed")
                if isinstance(error, UnavailableError):
                    return AWAY_SECONDS
        return IDLE_SECONDS

    async def _write(self, news: News, at: datetime) -> None:
        body = event_manifest(news, at, self._instance)
        try:
            await self._client.create(EVENTS.path(news.namespace), body)
        except ConflictError:
            if news.latest:
                await self._again(body)

    async def _again(self, body: Mapping[str, Any]) -> None:
        """Count one more of it; whether that goes wrong for a newer one does not matter."""
        path = EVENTS.path(body["metadata"]["namespace"], body["metadata"]["name"])
        try:
            known = await self._client.get(path)
        except NotFoundError:
            return
        if known.get("message") == body["message"] and str(known.get("lastTimestamp")) >= body["lastTimestamp"]:
            return
        change = {key: body[key] for key in ("message", "lastTimestamp", "type")}
        await self._client.patch(path, {**change, "count": int(known.get("count") or 1) + 1})


def event_manifest(news: News, at: datetime, instance: str) -> dict[str, Any]:
    """The Event object for some news of this moment."""
    same = "\0".join((news.uid, news.reason, "" if news.latest else news.key))
    digest = hashlib.blake2b(same.encode(), digest_size=8).hexdigest()
    reference = {"apiVersion": API_VERSION, "kind": news.kind, "namespace": news.namespace}
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": f"{news.name[:200].rstrip('.-')}.{digest}", "namespace": news.namespace},
        "involvedObject": {**reference, "name": news.name, "uid": news.uid},
        "reason": news.reason,
        "message": clip(news.message, MESSAGE_LIMIT),
        "type": "Warning" if news.warning else "Normal",
        "source": {"component": COMPONENT},
        "reportingComponent": COMPONENT,
        "reportingInstance": instance,
        "firstTimestamp": seconds(at),
        "lastTimestamp": seconds(at),
        "count": 1,
    }
