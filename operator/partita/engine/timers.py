"""Fires due timers at their time rather than at the next poll.

Each look says how long it is until the first timer, and the loop sleeps exactly that long; timers that this process
sets cut the sleep short. Invariant: the loop only reads candidates, and the coordinator deletes the row under the run's
lock if it is due by the database's clock, so that two loops fire a timer once. Like claims, a look starts at a
remembered position, since fired timers stay in the index while an old snapshot is held: once a second it starts 2 s
behind, every 20 s at the beginning. The trade-off is that a timer of another process is noticed a tick late if that
process has died.
"""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Final, Protocol
from uuid import UUID

from partita.domain.state.effects import TimerKey
from partita.domain.state.events import Reply
from partita.domain.state.rows import TimerKind
from partita.engine.positions import BEGINNING_EVERY, LOOK_BACK_EVERY, LOOK_BACK_SECONDS
from partita.engine.service import Clock, TickingService
from partita.store.database import Record
from partita.store.duties import DutyStore

_CHUNK: Final = 500
_BEGINNING: Final = datetime(1970, 1, 1, tzinfo=UTC)
_NOT_MY_TURN: Final = 0.02
_ROUNDING: Final = 0.001


class Firing(Protocol):
    """The coordinator's entry point for timers; it checks again under the run's lock that the timer is due."""

    async def timer_due(self, run_id: UUID, timer: TimerKey) -> Reply:
        """The timer seems to be due."""
        ...


class Timers(TickingService):
    """The loop; one process of the installation fires at a time."""

    def __init__(
        self, store: DutyStore, firing: Firing, *, longest_ms: int, trail_ms: int, clock: Clock | None = None
    ) -> None:
        super().__init__("timers", clock=clock)
        self._store = store
        self._firing = firing
        self._longest = longest_ms / 1000
        self._trail = timedelta(milliseconds=trail_ms)
        self._position = _BEGINNING
        self._next_look = _BEGINNING
        """Database time of the next look, as planned."""
        self._looked_back = self._looked_all = -BEGINNING_EVERY

    def timers_set(self, earliest: datetime) -> None:
        """This process has set timers; the first falls due then."""
        self._position = min(self._position, earliest)
        if earliest < self._next_look:
            self._next_look = earliest
            self.wake()

    async def tick(self) -> float:
        """Fire what is due; the answer is the time until the next timer, or the longest pause."""
        start = self._start(self._clock.monotonic())
        now, seconds = await self._store.next_timer(start)
        if seconds is None or seconds > 0:
            self._position = max(self._position, now - self._trail)
            pause = self._longest if seconds is None else min(seconds + _ROUNDING, self._longest)
            self._next_look = now + timedelta(seconds=pause)
            return pause
        self._next_look = _BEGINNING
        ours = await self._store.in_turn("timers", lambda: self._fire(start))
        return 0.0 if ours else _NOT_MY_TURN

    async def _fire(self, start: datetime) -> None:
        rows = await self._store.due_timers(start, _CHUNK)
        if rows:
            await asyncio.gather(*(self._firing.timer_due(row["run_id"], _key(row)) for row in rows))
            self._position = max(self._position, rows[-1]["fire_at"] - self._trail)

    def _start(self, now: float) -> datetime:
        if now - self._looked_all >= BEGINNING_EVERY:
            self._looked_all = self._looked_back = now
            return _BEGINNING
        if now - self._looked_back >= LOOK_BACK_EVERY and self._position > _BEGINNING:
            self._looked_back = now
            return self._position - timedelta(seconds=LOOK_BACK_SECONDS)
        return self._position


def _key(row: Record) -> TimerKey:
    return TimerKey(TimerKind(row["kind"]), row["node"], row["index"])
