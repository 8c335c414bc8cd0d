"""LISTEN on a connection of its own.

Invariant: whoever waits for a notification also looks by itself now and then: notifications make it quicker, never
correct. They need a session, so behind a transaction-pooling proxy there are none.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from partita.domain.errors import UnavailableError
from partita.store.database import Database
from partita.store.errors import boundary


def channel(schema: str) -> str:
    """The notification channel of an installation."""
    return f"{schema}_ready"


class Listener:
    """Calls back for every notification on one channel until the connection is lost or ``stop`` is called."""

    def __init__(self, database: Database, channel: str) -> None:
        self._dedicated = database.dedicated("listen", planner=False)
        self._channel = channel
        self._ended = asyncio.Event()
        self._stopped = False

    def stop(self) -> None:
        """End ``listen``, now and for ever."""
        self._stopped = True
        self._ended.set()

    async def listen(self, heard: Callable[[str], None], ready: Callable[[], None]) -> None:
        """Listen until stopped; raises UnavailableError when the connection is lost.

        ``ready`` is called once every later notification will be heard.
        """
        if self._stopped:
            return
        self._ended.clear()
        try:
            with boundary():
                connection = await self._dedicated.connection()
                connection.add_termination_listener(lambda _: self._ended.set())
                await connection.add_listener(self._channel, lambda _c, _p, _ch, payload: heard(str(payload)))
            ready()
            await self._ended.wait()
        finally:
            await self._dedicated.close()
        if not self._stopped:
            raise UnavailableError("database: the listening connection was lost")
