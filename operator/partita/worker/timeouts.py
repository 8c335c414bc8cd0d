"""When attempts run out of time: one timer for all that may take equally long.

Purpose: an attempt that ends in time pays for two dictionary operations; a timer of the event loop for each took 1 to
2 µs. Invariant: of attempts with one timeout the one that began first runs out first, so that a timer for the oldest
is enough, and it never fires later than that one's end. Trade-off: a timer outlives its last attempt, until it fires or
until too many lengths are known.
"""

from __future__ import annotations

import asyncio
import time
from typing import Final, Protocol

_LENGTHS: Final = 64
"""Lengths that are remembered although no attempt of theirs is running."""


class Expiring(Protocol):
    """What can run out of time; it is told by the event loop."""

    def time_out(self) -> None:
        """Its time is over."""
        ...


class _Length:
    """Those that may take equally long, in the order in which they began."""

    __slots__ = ("begun", "timer")

    def __init__(self, timer: asyncio.TimerHandle) -> None:
        self.begun: dict[Expiring, float] = {}
        """With the moment of each."""
        self.timer = timer


class Timeouts:
    """The timeouts of one event loop."""

    __slots__ = ("_lengths",)

    def __init__(self) -> None:
        self._lengths: dict[int, _Length] = {}
        """By milliseconds."""

    @property
    def lengths(self) -> int:
        """Lengths that are known, for tests."""
        return len(self._lengths)

    def begin(self, one: Expiring, milliseconds: int) -> None:
        """Its time begins now."""
        length = self._lengths.get(milliseconds)
        if length is None:
            length = self._add(milliseconds)
        length.begun[one] = time.monotonic()

    def end(self, one: Expiring, milliseconds: int) -> None:
        """It needs no more time, or has been told."""
        length = self._lengths.get(milliseconds)
        if length is not None:
            length.begun.pop(one, None)

    def _add(self, milliseconds: int) -> _Length:
        if len(self._lengths) >= _LENGTHS:
            self._forget_idle()
        length = self._lengths[milliseconds] = _Length(self._timer(milliseconds, milliseconds / 1000))
        return length

    def _forget_idle(self) -> None:
        for milliseconds in [key for key, length in self._lengths.items() if not length.begun]:
            self._lengths.pop(milliseconds).timer.cancel()

    def _timer(self, milliseconds: int, seconds: float) -> asyncio.TimerHandle:
        return asyncio.get_running_loop().call_later(seconds, self._look, milliseconds)

    def _look(self, milliseconds: int) -> None:
        """Tell those whose time is over, and come again for the next one."""
        length = self._lengths[milliseconds]
        while length.begun:
            oldest, begun = next(iter(length.begun.items()))
            left = begun + milliseconds / 1000 - time.monotonic()
            if left > 0:
                length.timer = self._timer(milliseconds, left)
                return
            del length.begun[oldest]
            oldest.time_out()
        del self._lengths[milliseconds]
