"""One heartbeat for all that a worker holds.

Invariant: a worker that is alive keeps its leases by one small update however many attempts it runs, and learns in the
answer which of them are no longer its own. A lease of its own that it does not know (a claim whose answer was lost, an
attempt that ended here without a report) is ended as soon as it is older than a heartbeat. It counts as lost, and never
as handed back: nobody knows any more whether the attempt was begun, and what is begun without end must use up a budget.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol
from uuid import UUID

from partita.domain.errors import PartitaError
from partita.domain.state.rows import NodeKey
from partita.engine.service import Clock, TickingService
from partita.store.database import Record
from partita.store.duties import Beat, HeldAttempt, WorkerStore

log = logging.getLogger(__name__)


class Holder(Protocol):
    """The worker whose heart beats."""

    def beat(self) -> Beat:
        """What to say about itself."""
        ...

    def held(self) -> Sequence[HeldAttempt]:
        """The attempts it holds now."""
        ...

    def abandon(self, attempt: HeldAttempt) -> None:
        """The attempt is no longer its own: end it and report nothing."""
        ...


class Heartbeat(TickingService):
    """Renews a worker's leases and acts on the answer."""

    def __init__(
        self,
        store: WorkerStore,
        holder: Holder,
        lose: Callable[[UUID, NodeKey, int, UUID], Awaitable[object]],
        *,
        interval_ms: int,
        clock: Clock | None = None,
    ) -> None:
        super().__init__("heartbeat", clock=clock)
        self._store = store
        self._holder = holder
        self._lose = lose
        self._interval_ms = interval_ms

    async def tick(self) -> float:
        """Beat once; after a lost connection again at once, as the leases go on running out."""
        began = self._clock.monotonic()
        beat = self._holder.beat()
        await self._store.beat(beat)
        held = self._holder.held()
        rows = await self._store.answer(beat.worker_id, held, self._interval_ms)
        known = {attempt.lease_id: attempt for attempt in held}
        for row in rows:
            if row["verdict"] == "gone":
                self._holder.abandon(known[row["lease_id"]])
        # All at once: one after the other, each might wait for a database that is away, while the leases run out.
        await asyncio.gather(*(self._forgotten(row) for row in rows if row["verdict"] == "forgotten"))
        return max(self._interval_ms / 1000 - (self._clock.monotonic() - began), 0.001)

    async def _forgotten(self, row: Record) -> None:
        """A lease that the worker does not know of, unless it has learnt of it since it was asked."""
        if any(attempt.lease_id == row["lease_id"] for attempt in self._holder.held()):
            return
        log.warning("run %s task %s: leased to this worker, which does not know it: lost", row["run_id"], row["node"])
        try:
            await self._lose(*place(row))
        except PartitaError as error:  # the other leases must be renewed in any case
            log.warning("run %s task %s: its lease could not be ended yet: %s", row["run_id"], row["node"], error)


def place(lease: Record) -> tuple[UUID, NodeKey, int, UUID]:
    """Run, node, attempt and id of a lease."""
    return lease["run_id"], NodeKey(lease["node"], lease["index"]), lease["attempt"], lease["lease_id"]
