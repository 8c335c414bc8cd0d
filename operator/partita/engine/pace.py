"""How often a look that may be expensive is worth its cost.

A look from the beginning of a queue is nearly free as long as vacuum removes what was deleted. While an old snapshot
is held it steps over everything that was ever there. Invariant: such looks take at most a small share of the time
whatever they cost, and come at least every 20 s. Trade-off: the cost is what the looker waited, so that on a busy
machine looks are rarer than they could be.
"""

from __future__ import annotations

from typing import Final

from partita.engine.service import Clock, SystemClock

LONGEST: Final = 20.0
"""Seconds after which a look is due whatever it costs."""
SHARE: Final = 0.01
"""Share of the time that such looks may take."""
_CHEAP: Final = 0.01
"""Seconds up to which a look is not worth avoiding."""


class Pace:
    """Of one kind of look. Times are the process's monotonic clock, in seconds."""

    __slots__ = ("_clock", "_cost", "_ended")

    def __init__(self, clock: Clock | None = None) -> None:
        self._clock: Clock = clock or SystemClock()
        self._cost = 0.0
        self._ended = -LONGEST

    @property
    def now(self) -> float:
        """The clock."""
        return self._clock.monotonic()

    @property
    def due(self) -> bool:
        """Whether the next look may be from the beginning."""
        return self.now - self._ended >= min(self._cost / SHARE, LONGEST)

    @property
    def costly(self) -> bool:
        """Whether the last look took so long that the next ones should begin where it ended."""
        return self._cost > _CHEAP

    def looked(self, begun: float) -> None:
        """A look from the beginning that began then has just ended."""
        self._ended = self.now
        self._cost = self._ended - begun
