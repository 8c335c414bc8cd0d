"""Housekeeping that nobody waits for: months ahead, statistics, expired keys, workers long gone.

Invariant: every part may be left out for hours without harm, and each is safe to run in several processes at once.
"""

from __future__ import annotations

import logging
from typing import Final

from partita.engine.service import Clock, TickingService
from partita.settings import Settings
from partita.store import partitions
from partita.store.duties import DutyStore, UpkeepStore

_CHUNK: Final = 1_000
_DAILY_PART: Final = 3_600.0
"""Seconds between looks at partitions and statistics."""

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
        self._last_rare = -_DAILY_PART

    async def tick(self) -> float:
        """One round, if it is this process's turn."""
        await self._store.in_turn("upkeep", self._round)
        return self._settings.engine.upkeep_interval_ms / 1000

    async def _round(self) -> None:
        async with self._upkeep.session() as session:
            await self._upkeep.remove_expired_keys(session, _CHUNK)
            await self._upkeep.remove_silent_workers(session)
            if self._clock.monotonic() - self._last_rare < _DAILY_PART:
                return
            for name in await partitions.ensure(self._settings):
                log.info("made partition %s", name)
            await self._upkeep.analyze()
            self._last_rare = self._clock.monotonic()
