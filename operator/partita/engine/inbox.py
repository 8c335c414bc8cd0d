"""Delivers to runs what other transactions left for them in ``run_inbox``.

Invariant: a row is deleted by the transaction that applies it, so it counts once. One that fails is tried again with
growing pauses and, after the last, set aside (dead letter) until someone drives it again; the coordinator keeps that
account, this loop only reads what is due. Looks begin at the first row; while an old snapshot keeps what was deleted
and makes that expensive, most of them begin where the last such look found the first row (``pace``).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import Final, Protocol

from partita.engine.messages import KINDS
from partita.engine.pace import Pace
from partita.engine.service import Clock, TickingService
from partita.engine.turns import EarlierFirstError
from partita.store.database import Record
from partita.store.duties import DutyStore

log = logging.getLogger(__name__)

_CHUNK: Final = 500
STARTS: Final = ("start", "ChildStart")
KNOWN: Final = ("start", "signal", *KINDS)
"""Kinds that this version can apply; rows of others wait for a process that can."""


class Deliveries(Protocol):
    """The coordinator's entry point for inbox rows."""

    async def deliver(self, row: Record) -> object:
        """Apply one row under its run's lock; a failure is recorded on the row."""
        ...


class Inbox(TickingService):
    """The loop; one process of the installation at a time."""

    def __init__(
        self, store: DutyStore, deliveries: Deliveries, *, longest_ms: int, clock: Clock | None = None
    ) -> None:
        super().__init__("inbox", clock=clock)
        self._store = store
        self._deliveries = deliveries
        self._longest = longest_ms / 1000
        self._pace = Pace(clock)
        self._position = 0

    async def tick(self) -> float:
        """Deliver what is due; again at once while there is more than one chunk."""
        self._more = False
        if await self._look():
            await self._store.in_turn("inbox", self._deliver)
        return 0.0 if self._more else self._longest

    async def _look(self) -> bool:
        """Whether anything is due; from the first row on, as often as that is worth its cost."""
        beginning, begun = self._pace.due, self._pace.now
        if beginning:
            self._position = 0
        found = await self._store.due_inbox(KNOWN, 1, self._position)
        if beginning:
            self._pace.looked(begun)
            if self._pace.costly:
                self._position = await self._store.inbox_beginning()
        return bool(found)

    async def _deliver(self) -> None:
        rows = await self._store.due_inbox(KNOWN, _CHUNK, self._position)
        starts = [row for row in rows if row["kind"] in STARTS]
        others = [row for row in rows if row["kind"] not in STARTS]
        failed = await self._deliver_all(starts) + await self._deliver_all(others)  # a run is there before its news
        self._more = len(rows) == _CHUNK and not failed

    async def _deliver_all(self, rows: Sequence[Record]) -> int:
        """Deliver these at the same time; the answer is how many failed."""
        results = await asyncio.gather(*(self._deliveries.deliver(row) for row in rows), return_exceptions=True)
        for row, result in zip(rows, results, strict=True):
            if isinstance(result, EarlierFirstError):
                log.debug("inbox row %d waits for an earlier one", row["id"])
            elif isinstance(result, Exception):
                log.warning("run %s: inbox row %d (%s): %s", row["run_id"], row["id"], row["kind"], result)
        return sum(isinstance(result, BaseException) for result in results)
