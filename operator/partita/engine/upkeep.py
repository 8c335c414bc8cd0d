"""Housekeeping that nobody waits for: months ahead, statistics, expired keys, workers long gone.

Invariant: every part may be left out for hours without harm, and each is safe to run in several processes at once.
Partitions and statistics are looked at once an hour and at the start of each process, which costs two queries of the
catalog when there is nothing to do. They take turns with whoever else changes partitions, not with the rest of upkeep:
they may take minutes, and the transaction that holds the turn of upkeep would be open for as long.
"""

from __future__ import annotations

import logging
from typing import Final

from partita.engine.service import Clock, TickingService
from partita.settings import Settings
from partita.store import list_fill, partitions, statistics
from partita.store.duties import DutyStore, UpkeepStore
from partita.store.migrations import direct

_CHUNK: Final = 1_000
_RARE: Final = 3_600.0
"""Seconds between looks at partitions and statistics."""

_FILLS: Final = 50
"""Transactions of one such look that fill in lists."""

log = logging.getLogger(__name__)


class Upkeep(TickingService):
    """The loop; one process of the installation at a time."""

    def __init__(
        self, store: DutyStore, upkeep: UpkeepStore, settings: Settings, *, clock: Clock | None = None
    ) -> None:
        super().__init__("upkeep", clock=clock)
        self._store = store
        self._upkeep = upkeep
        self._settings = settings
        self._last_rare = -_RARE

    async def tick(self) -> float:
        """One round: what is this process's turn, and now and then what is nobody's."""
        await self._store.in_turn("upkeep", self._round)
        if self._clock.monotonic() - self._last_rare >= _RARE:
            await self._look_at_partitions()
            self._last_rare = self._clock.monotonic()
        return self._settings.engine.upkeep_interval_ms / 1000

    async def _round(self) -> None:
        async with self._upkeep.session() as session:
            await self._upkeep.remove_expired_keys(session, _CHUNK)
            await self._upkeep.remove_silent_workers(session)

    async def _look_at_partitions(self) -> None:
        for name in await partitions.ensure(self._settings):
            log.info("made partition %s", name)
        for name in await statistics.refresh(self._settings):
            log.info("refreshed the statistics of %s", name)
        if filled := await list_fill.fill(direct(self._settings.database), steps=_FILLS):
            log.info("filled in what lists look for, of %d runs that an older version has written", filled)
