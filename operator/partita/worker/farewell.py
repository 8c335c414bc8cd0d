"""A worker's last words to the database.

Invariant: each of them is bounded by seconds, since leases and a worker's row end by themselves: saying so only makes
others go on earlier. A database that is away or does not answer is told nothing more. Trade-off: one that takes longer
than that to answer, though it is there, finds the leases by its sweeper, a lease later.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final
from uuid import UUID

from partita.domain.errors import PartitaError
from partita.domain.state.rows import NodeKey
from partita.engine.leases import Holder, place
from partita.store.duties import WorkerStore

log = logging.getLogger(__name__)

SECONDS: Final = 2.0
"""How long each word may take to be answered; milliseconds are usual."""


class Farewell:
    """What a worker that has ended its tasks has left to say."""

    def __init__(
        self,
        store: WorkerStore,
        holder: Holder,
        lose: Callable[[UUID, NodeKey, int, UUID], Awaitable[object]],
        worker_id: str,
    ) -> None:
        self._store = store
        self._holder = holder
        self._lose = lose
        self._worker_id = worker_id
        self._heard = True

    async def lose_forgotten(self) -> None:
        """End the leases that are this worker's and that it does not know, or knows no more."""
        try:
            async with asyncio.timeout(SECONDS):
                rows = await self._store.answer(self._worker_id, self._holder.held(), 0)
                await asyncio.gather(*(self._lose(*place(row)) for row in rows if row["verdict"] == "forgotten"))
        except (PartitaError, TimeoutError) as error:
            self._heard = False
            words = str(error) or f"no answer within {SECONDS:g} s"
            log.warning("worker %s: what it still holds is found by the sweeper: %s", self._worker_id, words)

    async def sign_off(self) -> None:
        """Remove the worker's row; nothing is tried if the word before was not heard."""
        if not self._heard:
            return
        try:
            async with asyncio.timeout(SECONDS):
                await self._store.remove(self._worker_id)
        except (PartitaError, TimeoutError) as error:
            log.info("worker %s could not sign off: %s", self._worker_id, str(error) or "no answer")
