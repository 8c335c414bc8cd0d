"""What waits in the queues, so that a run in progress does not go before work that is more urgent.

Invariant: the picture is at most a second old. Like claims, looks begin at a remembered position in each group of ready
tasks: the first row of the last look, or where there was none, a little behind its time; from the beginning as often as
the cost allows, which without an old snapshot is always. Trade-off: under an old snapshot a row whose transaction
committed late is seen, and given way to, some seconds later; it is claimed in its turn all the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from itertools import product
from typing import Final

from partita.engine.pace import Pace
from partita.engine.positions import LEVELS, LOOK_BACK_SECONDS
from partita.store.claims import ReadyGroup
from partita.store.database import Connection
from partita.store.sequence import LANES, position
from partita.store.sql import Sql

LEVEL: Final = timedelta(seconds=30)
"""Age that one level of priority is worth."""
_FRESH: Final = timedelta(seconds=1)
_BEHIND: Final = timedelta(seconds=LOOK_BACK_SECONDS)


class Urgency:
    """What waits in the queues, as it was at most a second ago."""

    __slots__ = ("_looked", "_pace", "_positions", "_since")

    def __init__(self, pace: Pace | None = None) -> None:
        self._looked: dict[str, datetime] = {}
        self._since: dict[str, datetime] = {}
        self._positions: dict[ReadyGroup, int] = {}
        self._pace = pace or Pace()

    async def look(self, connection: Connection, sql: Sql, queues: Iterable[str], now: datetime) -> None:
        """Look at those queues whose picture is older than a second."""
        stale = [queue for queue in queues if queue not in self._looked or now - self._looked[queue] > _FRESH]
        if not stale:
            return
        groups = [ReadyGroup(*group) for group in product(stale, range(LANES), LEVELS)]
        beginning, begun = self._pace.due, self._pace.now
        starts = [0 if beginning else self._positions.get(group, 0) for group in groups]
        rows = await connection.fetch(sql("urgent_work"), *map(list, zip(*groups, strict=True)), starts)
        if beginning:
            self._pace.looked(begun)
        self._learn(stale, groups, {ReadyGroup(*row[:3]): (row[3], row[4]) for row in map(tuple, rows)}, now)

    def _learn(
        self,
        queues: Sequence[str],
        groups: Sequence[ReadyGroup],
        firsts: dict[ReadyGroup, tuple[int, datetime]],
        now: datetime,
    ) -> None:
        behind = position(now - _BEHIND)
        for group in groups:
            self._positions[group] = firsts[group][0] if group in firsts else behind
        for queue in queues:
            self._looked[queue] = now
            self._since.pop(queue, None)
        for group, (_, enqueued) in firsts.items():
            since = enqueued - group.priority * LEVEL
            self._since[group.queue] = min(self._since.get(group.queue, since), since)

    def allows(self, queue: str, priority: int, now: datetime) -> bool:
        """Whether a task that is ready now may go before what waits in its queue."""
        since = self._since.get(queue)
        return since is None or now - priority * LEVEL < since + LEVEL
