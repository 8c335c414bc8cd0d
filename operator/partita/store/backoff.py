"""Pauses between attempts to reach a server that is away.

Invariant: the sum of the pauses never exceeds the patience that was asked for, and a process that ends has none left.
Trade-off: with jitter two attempts are never as regular as they could be, so that a restarted server does not meet all
its clients in the same moment.
"""

from __future__ import annotations

import asyncio
import random

from partita.settings import DatabaseSettings


class Backoff:
    """Pauses between attempts to reach the server, doubling with jitter, until patience ends."""

    __slots__ = ("_again", "_deadline", "_ending", "_longest", "_loop", "_next")

    def __init__(
        self, settings: DatabaseSettings, patience_ms: int | None = None, ending: asyncio.Event | None = None
    ) -> None:
        """``ending``: once it is set there is one last attempt, at once."""
        self._ending = ending or asyncio.Event()
        self._again = True
        self._loop = asyncio.get_running_loop()
        patience = settings.patience_ms if patience_ms is None else patience_ms
        self._deadline = self._loop.time() + patience / 1000
        self._next = settings.backoff_min_ms / 1000
        self._longest = settings.backoff_max_ms / 1000

    async def pause(self) -> bool:
        """Wait for the next attempt; False when there is no time left for one."""
        left = self._deadline - self._loop.time()
        if left <= 0:
            return False
        share = random.uniform(0.5, 1.0)  # noqa: S311  # spreads reconnects; nothing secret depends on it
        try:
            async with asyncio.timeout(min(self._next * share, left)):
                await self._ending.wait()
        except TimeoutError:
            self._next = min(self._next * 2, self._longest)
            return True
        again, self._again = self._again, False
        return again
