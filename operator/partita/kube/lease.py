"""Leadership by a Lease object: at most one operator works at a time.

Invariant: a leader stops leading at its own deadline (10 s after the beginning of its last renewal), which is before
any other may take over (15 s after another last saw the Lease change), whatever the network, the API server or a
hanging request do. Only monotonic clocks of one process are compared with each other, never times of different
machines. Every failure to renew is the same failure; what remains (a frozen process that wakes up) is fenced by the
epoch in PostgreSQL.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Protocol

from partita.domain.errors import NotFoundError
from partita.domain.payload import Json

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseTimes:
    """Seconds. ``deadline`` must be less than ``duration``."""

    duration: float = 15.0
    """How long a Lease that does not change keeps others away."""
    deadline: float = 10.0
    """How long a leader leads without a renewal."""
    pause: float = 2.0
    """Between renewals."""
    look: float = 1.0
    """Between the looks of a standby; after a leader that gives it up, this is what nobody leads for."""
    request: float = 2.0
    """Limit of one request."""


class LeaseStore(Protocol):
    """Where the Lease is kept. ``save`` is guarded by the record's resourceVersion."""

    async def load(self) -> dict[str, Any]:
        """The present object. Raises NotFoundError."""
        ...

    async def save(self, body: Json) -> dict[str, Any]:
        """Create the object (a body without metadata) or replace it; raises ConflictError when someone was faster."""
        ...


class Lease:
    """One candidate's view of the Lease."""

    def __init__(
        self,
        store: LeaseStore,
        identity: str,
        times: LeaseTimes | None = None,
        *,
        former: str = "",
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        """``former``: a holder that has ended for certain; nobody has to wait for its Lease to run out."""
        self.identity = identity
        self._former = former
        self._store = store
        self._times = times or LeaseTimes()
        self._clock = clock
        self._sleep = sleep
        self._record: dict[str, Any] | None = None
        self._changed_at = 0.0
        self._renewed_at: float | None = None

    @property
    def held(self) -> bool:
        """Whether this candidate leads now."""
        return self._renewed_at is not None and self._clock() < self._renewed_at + self._times.deadline

    async def acquire(self) -> None:
        """Return once this candidate leads."""
        while not await self._attempt(self._take):
            await self._sleep(self._times.look)
        log.info("lease: %s leads", self.identity)

    async def keep(self) -> None:
        """Renew until leadership is lost; returns at the deadline at the latest."""
        while self.held:
            await self._sleep(min(self._times.pause, self._left()))
            if self.held and not await self._attempt(self._renew) and self._renewed_at is None:
                break
        self._renewed_at = None
        log.warning("lease: lost by %s", self.identity)

    async def release(self) -> None:
        """Give leadership up, so that another need not wait; a failure is not worth an error."""
        if self.held:
            await self._attempt(self._give_up)
        self._renewed_at = None

    def _left(self) -> float:
        """Seconds of leadership that are left without a renewal."""
        return 0.0 if self._renewed_at is None else self._renewed_at + self._times.deadline - self._clock()

    async def _attempt(self, step: Callable[[], Awaitable[bool]]) -> bool:
        """One bounded step; any failure counts as False."""
        limit = min(self._times.request, self._left()) if self._renewed_at is not None else self._times.request
        try:
            async with asyncio.timeout(limit):
                return await step()
        except Exception as error:  # noqa: BLE001  # whatever went wrong, the Lease was not renewed
            log.debug("lease: %s: %r", step.__name__, error)
            return False

    async def _take(self) -> bool:
        begun = self._clock()
        record = await self._observe()
        if record is not None and not self._free(record, begun):
            return False
        return await self._write(record, begun, holder=self.identity)

    async def _renew(self) -> bool:
        """Write again; after a conflict look who holds it now, since our own write may have had no answer."""
        begun = self._clock()
        try:
            return await self._write(self._record, begun, holder=self.identity)
        except Exception:
            record = await self._observe()
            if record is None or record["spec"].get("holderIdentity") != self.identity:
                self._renewed_at = None
                return False
            raise

    async def _give_up(self) -> bool:
        return await self._write(self._record, self._clock(), holder="")

    async def _observe(self) -> dict[str, Any] | None:
        """Load the record and note when it last changed; None when there is none."""
        try:
            record = await self._store.load()
        except NotFoundError:
            return None
        before = self._record["metadata"]["resourceVersion"] if self._record else None
        if record["metadata"]["resourceVersion"] != before:
            self._changed_at = self._clock()
        self._record = record
        return record

    def _free(self, record: dict[str, Any], now: float) -> bool:
        """Whether nobody holds it, or its holder has been silent for as long as it said it might be."""
        spec = record.get("spec") or {}
        duration = float(spec.get("leaseDurationSeconds") or self._times.duration)
        return spec.get("holderIdentity") in (None, "", self._former) or now - self._changed_at > duration

    async def _write(self, record: dict[str, Any] | None, begun: float, *, holder: str) -> bool:
        spec = dict((record or {}).get("spec") or {})
        stamp = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        if holder != spec.get("holderIdentity"):
            spec.update(acquireTime=stamp, leaseTransitions=int(spec.get("leaseTransitions") or 0) + bool(holder))
        spec.update(holderIdentity=holder, renewTime=stamp, leaseDurationSeconds=max(1, round(self._times.duration)))
        self._record = await self._store.save({**(record or {}), "spec": spec})
        self._changed_at, self._renewed_at = begun, begun if holder else None
        return True
