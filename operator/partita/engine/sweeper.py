"""Finds attempts whose worker went silent, attempts that are out of time, and tasks that nobody took in time.

Invariant: the sweeper only reads candidates. The coordinator locks the run, deletes the row and decides, so that a
worker that reports at the same moment either comes first or is told that it came too late.
"""

from __future__ import annotations

import asyncio
from typing import Final, Protocol
from uuid import UUID

from partita.domain.state.events import Reply
from partita.domain.state.rows import NodeKey, ReadyKey
from partita.engine.service import Clock, TickingService
from partita.store.database import Record
from partita.store.duties import DutyStore

_CHUNK: Final = 500


class Leases(Protocol):
    """The coordinator's entry points for the sweeper; each checks its condition again under the run's lock."""

    async def lease_lost(self, run_id: UUID, key: NodeKey, attempt: int, lease_id: UUID) -> Reply:
        """The worker went silent."""
        ...

    async def attempt_timed_out(self, run_id: UUID, key: NodeKey, attempt: int, lease_id: UUID) -> Reply:
        """The attempt's deadline passed."""
        ...

    async def schedule_to_start_expired(self, run_id: UUID, key: NodeKey, attempt: int, ready: ReadyKey) -> Reply:
        """No worker took the task in time."""
        ...


class Sweeper(TickingService):
    """The loop; one process of the installation at a time."""

    def __init__(self, store: DutyStore, leases: Leases, *, interval_ms: int, clock: Clock | None = None) -> None:
        super().__init__("sweeper", clock=clock)
        self._store = store
        self._leases = leases
        self._interval = interval_ms / 1000

    async def tick(self) -> float:
        """Sweep once; again at once while there is more than one chunk."""
        self._more = False
        await self._store.in_turn("sweeper", self._sweep)
        return 0.0 if self._more else self._interval

    async def _sweep(self) -> None:
        leases = await self._store.lapsed_leases(_CHUNK)
        ready = await self._store.expired_ready_tasks(_CHUNK)
        endings = [self._end(row) for row in leases]
        replies = await asyncio.gather(*endings, *(self._expire(row) for row in ready))
        applied = any(reply.outcome == "applied" for reply in replies)
        self._more = applied and max(len(leases), len(ready)) == _CHUNK

    async def _end(self, row: Record) -> Reply:
        end = self._leases.lease_lost if row["verdict"] == "lost" else self._leases.attempt_timed_out
        return await end(row["run_id"], NodeKey(row["node"], row["index"]), row["attempt"], row["lease_id"])

    async def _expire(self, row: Record) -> Reply:
        ready = ReadyKey(row["queue"], row["lane"], row["priority"], row["seq"])
        key = NodeKey(row["node"], row["index"])
        return await self._leases.schedule_to_start_expired(row["run_id"], key, row["attempt"], ready)
