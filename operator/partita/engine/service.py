"""Background duties behind one protocol, so that one supervisor can run, restart and report all of them.

Invariant: a service owns no task of its own; ``run`` is awaited by a supervisor and ends when ``stop`` was asked for.
Tests wait for ``ticked`` and never sleep. The trade-off is a loop that always goes through ``tick`` and a waiting
clock, against loops written in place that nobody can observe.
"""

from __future__ import annotations

import asyncio
import time
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Protocol


class Clock(Protocol):
    """Monotonic time of this process, for pauses and ages; never for deadlines, which are the database's."""

    def monotonic(self) -> float:
        """Seconds since some fixed moment."""
        ...

    async def wait(self, event: asyncio.Event, seconds: float) -> bool:
        """Wait until the event is set, at most this long; True if it was set."""
        ...


class SystemClock:
    """The process's own clock."""

    def monotonic(self) -> float:
        """Seconds since some fixed moment."""
        return time.monotonic()

    async def wait(self, event: asyncio.Event, seconds: float) -> bool:
        """Wait until the event is set, at most this long; True if it was set."""
        if event.is_set():
            return True
        try:
            async with asyncio.timeout(max(seconds, 0)):
                await event.wait()
        except TimeoutError:
            return event.is_set()
        return True


@dataclass(frozen=True, slots=True)
class Health:
    """What a service says about itself."""

    ticks: int
    """Rounds completed since the process started."""
    last_tick: float | None
    """Clock time of the last completed round; None before the first."""
    round_age: float = 0.0
    """Seconds that the round in progress has taken so far; 0 between two rounds."""


class Service(Protocol):
    """A background duty: a supervisor awaits ``run`` and restarts it when it raises."""

    @property
    def name(self) -> str:
        """Short name for logs and reports."""
        ...

    @property
    def health(self) -> Health:
        """How often and when it last did its work."""
        ...

    async def run(self) -> None:
        """Work until ``stop``; raising means that something failed and a restart may help."""
        ...

    def stop(self) -> None:
        """Ask for an orderly end; ``run`` returns soon after."""
        ...


class TickingService(ABC):
    """A duty that works in rounds: do one, wait as long as it says or until woken, do the next; stopped for good."""

    def __init__(self, name: str, *, clock: Clock | None = None) -> None:
        self._name = name
        self._clock: Clock = clock or SystemClock()
        self._wake = asyncio.Event()
        self._turned = asyncio.Event()
        self._stop_signal = asyncio.Event()
        self._begun = 0
        self._done = 0
        self._last_tick: float | None = None
        self._round_began: float | None = None

    @property
    def name(self) -> str:
        """Short name for logs and reports."""
        return self._name

    @property
    def health(self) -> Health:
        """Rounds completed, when the last one was, and how old the one in progress is; safe in any thread."""
        began = self._round_began
        return Health(self._done, self._last_tick, 0.0 if began is None else self._clock.monotonic() - began)

    @property
    def stopping(self) -> bool:
        """Whether an end was asked for."""
        return self._stop_signal.is_set()

    @abstractmethod
    async def tick(self) -> float:
        """Do one round; the answer is the pause until the next, in seconds (0: at once)."""

    def wake(self) -> None:
        """Begin the next round now instead of at the end of the pause."""
        self._wake.set()

    def stop(self) -> None:
        """End after the round in progress."""
        self._stop_signal.set()
        self._wake.set()

    async def run(self) -> None:
        """Work in rounds until ``stop``."""
        while not self.stopping:
            self._wake.clear()
            self._begun += 1
            begun = self._begun
            self._round_began = self._clock.monotonic()
            try:
                pause = await self.tick()
            finally:
                self._round_began = None
            self._finish(begun)
            await self._clock.wait(self._wake, pause) if pause > 0 else await asyncio.sleep(0)

    async def ticked(self) -> None:
        """Ask for a round now and wait until one that began after this call has been completed (a signal for tests)."""
        target = self._begun + 1
        while self._done < target:
            self.wake()
            await self._turned.wait()

    def _finish(self, begun: int) -> None:
        self._done = begun
        self._last_tick = self._clock.monotonic()
        self._turned.set()
        self._turned = asyncio.Event()
