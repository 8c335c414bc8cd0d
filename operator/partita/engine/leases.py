"""One heartbeat for all that a worker holds.

Invariant: a worker that is alive keeps its leases by one small update however many attempts it runs, and learns in the
answer which of them are no longer its own. A lease of its own that it does not know (a claim whose answer was lost) is
handed back as soon as it is older than a heartbeat, without spending the attempt.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

from partita.domain.errors import UnavailableError
from partita.engine.requests import Report
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
        hand_back: Callable[[Report], Awaitable[object]],
        *,
        interval_ms: int,
        clock: Clock | None = None,
    ) -> None:
        super().__init__("heartbeat", clock=clock)
        self._store = store
        self._holder = holder
        self._hand_back = hand_back
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
            else:
                await self._give_back(beat.worker_id, row)
        return max(self._interval_ms / 1000 - (self._clock.monotonic() - began), 0.001)

    async def _give_back(self, worker_id: str, row: Record) -> None:
        """A lease that the worker does not know of, unless it has learnt of it since it was asked."""
        if any(attempt.lease_id == row["lease_id"] for attempt in self._holder.held()):
            return
        log.warning(
            "handing back run %s task %s: leased to this worker, which does not know it", row["run_id"], row["node"]
        )
        try:
            await self._hand_back(give_back(worker_id, row))
        except UnavailableError:
            log.info("run %s task %s could not be handed back yet", row["run_id"], row["node"])


def give_back(worker_id: str, lease: Record) -> Report:
    """The report that hands a lease back."""
    return Report(
        run_id=lease["run_id"],
        generation=lease["generation"],
        node=lease["node"],
        index=lease["index"],
        attempt=lease["attempt"],
        lease_id=lease["lease_id"],
        worker_id=worker_id,
        handed_back=True,
    )
