"""How those who wait learn of new work without asking all the time.

After a commit the coordinator tells its process which queues received tasks. A worker of the same process that has free
hands is woken directly. Workers of other processes are told by a notification, at most one each few milliseconds, sent
outside the coordinator's transaction (transactions that notify commit one after the other), and only if the process's
own worker has no free hands left and another one has declared that it idles: a busy installation sends none at all.

Invariant: a lost wake-up costs time and no work, because whoever waits also looks by itself.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from typing import Final, Protocol

from partita.engine.service import Clock, Health, SystemClock, TickingService
from partita.store.database import Database
from partita.store.duties import DutyStore
from partita.store.notify import Listener, channel

_PAUSE: Final = 0.01
_OWN_FIRST: Final = 0.005
"""Seconds in which the process's own worker may take the work before others are told of it."""
_FOREVER: Final = 3600.0


class Waiter(Protocol):
    """A worker of this process."""

    @property
    def worker_id(self) -> str:
        """Its id."""
        ...

    @property
    def queues(self) -> frozenset[str]:
        """Queues that it serves."""
        ...

    @property
    def serves_all_namespaces(self) -> bool:
        """Whether it takes every task of its queues."""
        ...

    def free(self) -> int:
        """Tasks that it would take now."""
        ...

    def wake(self) -> None:
        """There is work in one of its queues, whether it has hands for it or not."""
        ...


class Wakeups(TickingService):
    """Wakes the workers of this process, and sends the notifications for those of others."""

    def __init__(self, database: Database, *, clock: Clock | None = None) -> None:
        super().__init__("wake-ups", clock=clock)
        self._store = DutyStore(database)
        self._channel = channel(database.sql.schema)
        self._waiters: list[Waiter] = []
        self._pending: set[str] = set()

    def add(self, waiter: Waiter) -> None:
        """Wake this worker from now on."""
        self._waiters.append(waiter)

    def remove(self, waiter: Waiter) -> None:
        """Wake this worker no more."""
        self._waiters = [other for other in self._waiters if other is not waiter]

    def enqueued(self, queues: AbstractSet[str]) -> None:
        """Tasks of these queues became ready by a transaction of this process that has just committed."""
        self._wake_waiters(queues)
        self._pending.update(queues)
        self.wake()

    def heard(self, message: str) -> None:
        """A notification of another process: the queues that received tasks, separated by commas."""
        self._wake_waiters(set(message.split(",")))

    def wake_all(self) -> None:
        """Whatever was notified may have been missed (the listener has just connected)."""
        for waiter in self._waiters:
            waiter.wake()

    async def tick(self) -> float:
        """Send what is pending in one notification."""
        if not self._pending:
            return _FOREVER
        if all(map(self._has_hands, self._pending)):
            await self._clock.wait(self._stop_signal, _OWN_FIRST)
        pending, self._pending = self._pending, set()
        queues = sorted(queue for queue in pending if not self._has_hands(queue))
        if queues:
            mine = [waiter.worker_id for waiter in self._waiters]
            await self._store.wake_idle_workers(self._channel, ",".join(queues), queues, mine)
            await self._clock.wait(self._stop_signal, _PAUSE)
        return 0.0 if self._pending else _FOREVER

    def _has_hands(self, queue: str) -> bool:
        """Whether a worker of this process would take more work of this queue."""
        return any(
            waiter.serves_all_namespaces and queue in waiter.queues and waiter.free() > 0 for waiter in self._waiters
        )

    def _wake_waiters(self, queues: AbstractSet[str]) -> None:
        for waiter in self._waiters:
            if waiter.queues & queues:
                waiter.wake()


class WakeupListener:
    """Hears the notifications of other processes; a service."""

    def __init__(self, database: Database, wakeups: Wakeups, *, clock: Clock | None = None) -> None:
        self._database = database
        self._wakeups = wakeups
        self._clock: Clock = clock or SystemClock()
        self._listener: Listener | None = None
        self._stopped = False
        self._health = Health(0, None)

    @property
    def name(self) -> str:
        """Short name for logs and reports."""
        return "wake-up listener"

    @property
    def health(self) -> Health:
        """How often it has connected or heard something, and when last."""
        return self._health

    def stop(self) -> None:
        """Stop listening."""
        self._stopped = True
        if self._listener is not None:
            self._listener.stop()

    async def run(self) -> None:
        """Listen until stopped or until the connection is lost."""
        if self._stopped:
            return
        self._listener = Listener(self._database, channel(self._database.sql.schema))
        await self._listener.listen(self._heard, self._ready)

    def _ready(self) -> None:
        self._note()
        self._wakeups.wake_all()

    def _heard(self, message: str) -> None:
        self._note()
        self._wakeups.heard(message)

    def _note(self) -> None:
        self._health = Health(self._health.ticks + 1, self._clock.monotonic())
