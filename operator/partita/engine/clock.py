"""What the database's clock says now, without asking it.

Invariant: the answer is never later than that clock by more than the two clocks drift apart in a minute, and never
earlier than a reading or an answer before, unless the database's own clock was set back: by less than a second it is
waited for, by more it is followed. Trade-off: it is earlier by what the last reading took to arrive, which for the
times of a run's history and the deadlines of attempts is nothing; statements that rely on it (``store.direct``) compare
it with the real one.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

_FRESH: Final = 60.0
"""Seconds for which a reading is good."""
_JUMP: Final = timedelta(seconds=1)
"""A reading that is so much earlier than an answer means that the clock was set back."""


class DatabaseClock:
    """One process's idea of it. ``at`` are seconds of the process's own monotonic clock."""

    __slots__ = ("_at", "_latest", "_now")

    def __init__(self) -> None:
        self._now: datetime | None = None
        self._latest: datetime | None = None
        self._at = 0.0

    def learn(self, now: datetime, at: float) -> None:
        """The clock was read, and the answer arrived at this time."""
        self._now, self._at = now, at
        latest = self._latest
        self._latest = now if latest is None or latest - now > _JUMP else max(latest, now)

    def now(self, at: float) -> datetime | None:
        """What the clock says; None when it was not read lately."""
        if self._now is None or self._latest is None or not 0 <= at - self._at <= _FRESH:
            return None
        self._latest = max(self._latest, self._now + timedelta(seconds=at - self._at))
        return self._latest
