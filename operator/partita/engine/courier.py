"""Delivers the messages that this process has sent, at once, instead of at the next look into the inbox.

Purpose: a child starts, and its parent goes on, in the time of a transaction. Invariant: messages to one run are
delivered in the order in which they were sent, and the start of a run before what follows it; whatever is not delivered
stays in the inbox, where the duty of any process finds it. A process that stops first delivers what it has sent, for a
bounded time, so that what a short-lived one did reaches children at once. Trade-off: a bounded number of runs is served
at a time, so that a cancel of ten thousand children leaves room in the queue for everyone else.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from contextlib import suppress
from typing import Final, Protocol
from uuid import UUID

from partita.domain.errors import UnavailableError
from partita.domain.state.effects import ChildStart
from partita.engine.messages import Delivery
from partita.engine.supervisor import Jobs
from partita.engine.turns import EarlierFirstError

log = logging.getLogger(__name__)

TARGETS: Final = 1_000
"""Runs that are served at the same time."""
DRAIN: Final = 5.0
"""Seconds in which a process that stops goes on delivering, and what that causes in turn."""
_GRACE: Final = 1.0
"""Seconds that deliveries in flight have to end after that, and again after they were cancelled."""


class Messenger(Protocol):
    """Who applies a message; a failure is recorded on its row."""

    async def message(self, delivery: Delivery) -> object:
        """Apply one message under its run's lock."""
        ...


class Courier:
    """The messages of one process on their way."""

    def __init__(self, messenger: Messenger, *, targets: int = TARGETS) -> None:
        self._messenger = messenger
        self._targets = targets
        self._jobs = Jobs("partita-courier", ended=self._next)
        self._mail: dict[UUID, deque[Delivery]] = {}
        """Undelivered messages of each run that is being served, or waits to be."""
        self._waiting: deque[UUID] = deque()
        self._closing = False
        self._idle = asyncio.Event()
        self._idle.set()

    @property
    def pending(self) -> int:
        """Runs that still have messages here."""
        return len(self._mail)

    def sent(self, deliveries: list[Delivery]) -> None:
        """These were committed to the inbox."""
        if self._closing:
            return
        for delivery in deliveries:
            mail = self._mail.get(delivery.run_id)
            if mail is None:
                self._mail[delivery.run_id] = deque([delivery])
                self._waiting.append(delivery.run_id)
            else:
                mail.append(delivery)
        if self._mail:
            self._idle.clear()
        self._next()

    async def close(self, *, drain: float = DRAIN) -> None:
        """Go on until nothing is on its way, at most ``drain`` seconds; then begin nothing more. What is in flight has
        a moment to end, and the rest stays in the inbox.
        """
        with suppress(TimeoutError):
            async with asyncio.timeout(drain):
                await self._idle.wait()
        self._closing = True
        self._waiting.clear()
        if not await self._jobs.join(_GRACE):
            await self._jobs.cancel(_GRACE)

    def _next(self) -> None:
        while self._waiting and len(self._jobs) < self._targets:
            run_id = self._waiting.popleft()
            self._jobs.spawn(self._serve(run_id), str(run_id))

    async def _serve(self, run_id: UUID) -> None:
        mail = self._mail[run_id]
        try:
            while mail and not self._closing:
                await self._deliver(_together(mail))
        finally:
            del self._mail[run_id]
            if not self._mail:
                self._idle.set()

    async def _deliver(self, deliveries: list[Delivery]) -> None:
        """Messages that may share a transaction: they enter the queue in this order."""
        results = await asyncio.gather(*map(self._messenger.message, deliveries), return_exceptions=True)
        for delivery, result in zip(deliveries, results, strict=True):
            if isinstance(result, EarlierFirstError | UnavailableError):
                log.debug("run %s: message %d stays in the inbox: %s", delivery.run_id, delivery.inbox_id, result)
            elif isinstance(result, Exception):
                kind = type(delivery.event).__name__
                log.warning("run %s: inbox row %d (%s): %s", delivery.run_id, delivery.inbox_id, kind, result)


def _together(mail: deque[Delivery]) -> list[Delivery]:
    """The next messages: a start alone, and others up to the next start."""
    first = mail.popleft()
    found = [first]
    while mail and not isinstance(first.event, ChildStart) and not isinstance(mail[0].event, ChildStart):
        found.append(mail.popleft())
    return found
