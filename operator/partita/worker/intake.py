"""Takes as many tasks as there are free slots, and waits cheaply when there are none.

Invariant: between a look that found nothing and a wait for a wake-up lies the declaration that the worker idles and
one more look, so that no enqueuing process can miss it. The trade-off is two small updates around each idle period.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Final, Protocol
from uuid import UUID

from partita.engine.claims import Claimer, ProtocolTooOldError
from partita.engine.requests import ClaimedTask
from partita.engine.service import Clock, Service, TickingService
from partita.settings import WorkerSettings
from partita.store.duties import WorkerStore
from partita.store.errors import PrivilegeMissingError
from partita.worker.tally import Tally

log = logging.getLogger(__name__)

_FOREVER: Final = 3600.0
_BUSY_AFTER: Final = 0.25
"""Seconds without an empty look after which a worker counts as busy."""


class Hands(Protocol):
    """Who executes what was taken."""

    worker_id: str
    tally: Tally

    def free(self) -> int:
        """Tasks it would take now."""
        ...

    def take(self, tasks: Sequence[ClaimedTask]) -> None:
        """Execute these."""
        ...


class Intake(TickingService):
    """The claim loop of a worker."""

    def __init__(
        self,
        claimer: Claimer,
        store: WorkerStore,
        hands: Hands,
        settings: WorkerSettings,
        too_old: Callable[[ProtocolTooOldError], None],
        refused: Callable[[Service, PrivilegeMissingError], None],
        *,
        clock: Clock | None = None,
    ) -> None:
        super().__init__("intake", clock=clock)
        self._claimer = claimer
        self._store = store
        self._hands = hands
        self._poll_min = settings.poll_min_ms / 1000
        self._poll_max = max(settings.poll_max_ms, settings.poll_min_ms) / 1000
        self._too_old = too_old
        self._refused = refused
        self._misses = 0
        self._last_miss = 0.0
        self.idle = False
        """Whether the worker has declared that it waits to be told."""
        self.asking = 0
        """Tasks that the claim in progress may bring."""
        self._full = False
        """The latest look was left out for want of a free slot."""

    def hint(self) -> None:
        """There is new work: look now, or when the next slot is free."""
        self._claimer.hint()
        self._misses = 0
        if self._hands.free() > 0:
            self.wake()

    @property
    def found_nothing(self) -> bool:
        """Whether the latest look has found nothing, and no news of work has come since."""
        return self._misses > 0

    def doubt(self, claim_id: UUID) -> None:
        """A task may have been leased to the worker under this id: look now."""
        self._claimer.doubt(claim_id)
        self.wake()

    def slot_freed(self) -> None:
        """Look now, if a slot was what was missing, or if there was news of work since the latest look; otherwise that
        one found nothing, and another would find nothing again."""
        if self._full or not self.found_nothing:
            self.wake()

    async def tick(self) -> float:
        """Claim for the free slots; the answer is how long to wait for a wake-up."""
        free = self._hands.free()
        self._full = free <= 0
        if self._full:
            return _FOREVER
        self.asking = free - 1 if self.found_nothing and free > 1 else free  # one is left for what may be handed over
        tasks = await self._claim(self.asking)
        if tasks is None:
            return _FOREVER
        if not tasks:
            return await self._missed()
        self._misses = 0
        self._hands.take(tasks)
        if self.idle and self._clock.monotonic() - self._last_miss > _BUSY_AFTER:
            await self._declare(idle=False)
        return self._poll_min if self._hands.free() else _FOREVER

    async def _claim(self, slots: int) -> Sequence[ClaimedTask] | None:
        """What a claim takes; None when this process may take nothing any more."""
        claims = self._hands.tally.claims
        try:
            tasks = await self._claimer.claim(slots)
        except ProtocolTooOldError as error:
            self._too_old(error)
            return None
        except Exception as error:
            claims["failed"] += 1
            if isinstance(error, PrivilegeMissingError):
                self._refused(self, error)
            raise
        finally:
            self.asking = 0
        claims["found" if tasks else "empty"] += 1
        return tasks

    async def _missed(self) -> float:
        self._misses += 1
        self._last_miss = self._clock.monotonic()
        if self._misses == 1:
            return self._poll_min
        if not self.idle:
            await self._declare(idle=True)
            return 0.0
        return min(self._poll_min * 2.0 ** min(self._misses - 1, 16), self._poll_max)

    async def _declare(self, *, idle: bool) -> None:
        self.idle = idle  # before the statement: a heartbeat that overtakes it must say the same
        await self._store.set_idle(self._hands.worker_id, idle=idle)
