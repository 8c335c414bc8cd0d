"""Where a claimer begins to read each group of ready tasks.

A claimed row stays in the index until vacuum may remove it, which an old snapshot forbids for as long as it is held.
Reading from the beginning would step over all of them again and again; so a claimer remembers how far it has come.

Invariant: a position never passes a row that this claimer could see and did not take. Rows that were invisible then (a
transaction that committed late, another claimer that rolled back) lie behind it: every claim starts a trail behind,
once a second 2 s behind, and every 20 s, and when work runs out, at the beginning. Where such a look finds something
behind a position, the position goes back there, and the trail grows to the delay that was seen. The trade-off is that
the first such row is found up to a second (or, older than 2 s, twenty) later, unless a hint told of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import product
from typing import Final

from partita.engine.pace import LONGEST, SHARE
from partita.store.claims import ReadyGroup
from partita.store.sequence import LANES

LEVELS: Final = range(-2, 3)
_SHIFT: Final = 12
LOOK_BACK_EVERY: Final = 1.0
LOOK_BACK_SECONDS: Final = 2.0
BEGINNING_EVERY: Final = LONGEST
_ALL_EVERY: Final = 0.05
_PROMISED_EVERY: Final = 0.02
_PROMISED_SHARE: Final = 0.25
"""Of the time, at most, goes into looks back for what hints have told of."""
_ACTIVE_FOR: Final = 30.0


class Depth(Enum):
    """How far back, and how wide, a claim looks."""

    ACTIVE = 1
    """The groups that had work lately."""
    ALL = 2
    """Every group, from its position."""
    LOOK_BACK = 3
    """Every group, 2 s behind."""
    BEGINNING = 4
    """Every group, from its first row."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What one claim reads."""

    depth: Depth
    starts: Mapping[ReadyGroup, int]

    @property
    def deep(self) -> bool:
        """Whether it reads behind the positions."""
        return self.depth in {Depth.LOOK_BACK, Depth.BEGINNING}


@dataclass(frozen=True, slots=True)
class Seen:
    """What a claim saw."""

    taken: Sequence[tuple[ReadyGroup, int]]
    """Group and ``seq`` of each row that it took."""
    firsts: Mapping[ReadyGroup, int]
    """First row seen in each group, taken or not, of a deep look."""
    all_taken_at: int | None
    """The position of the database's clock, if everything that could be seen was taken."""


def sequence(seconds: float) -> int:
    """A span of time in units of ``seq``."""
    return int(seconds * 1_000_000) << _SHIFT


class Positions:
    """One claimer's memory. Times are the process's monotonic clock, positions the database's."""

    def __init__(self, queues: Iterable[str], trail_ms: int, *, lanes: Iterable[int] = range(LANES)) -> None:
        self._trail = self._least_trail = sequence(trail_ms / 1000)
        groups = (ReadyGroup(*group) for group in product(queues, sorted(set(lanes)), LEVELS))
        self._positions = dict.fromkeys(groups, 0)
        self._active: dict[ReadyGroup, float] = {}
        self._hinted = False
        self._hints = self._planned_hints = self._answered_hints = 0
        self._looked: dict[Depth, float] = {}
        self._dry = False
        self._planned = 0.0
        self._beginning_took = self._look_back_took = 0.0

    def hint(self) -> None:
        """There is new work somewhere: most likely where it was before."""
        self._hinted = True
        self._hints += 1

    def plan(self, now: float, *, wider_than: Depth | None = None) -> Plan:
        """What to read now; ``wider_than``: the last claim of this depth found too little."""
        depth = self._due(now)
        if wider_than is not None and depth.value <= wider_than.value:
            depth = Depth(min(wider_than.value + 1, Depth.BEGINNING.value))
        self._planned = now
        self._planned_hints = self._hints
        return Plan(depth, self._starts(depth))

    def learn(self, plan: Plan, now: float, seen: Seen) -> None:
        """Remember what a claim saw and took."""
        for depth in Depth:
            if depth.value <= plan.depth.value:
                self._looked[depth] = now
        self._hinted = False
        if seen.taken or plan.deep:
            self._answered_hints = self._planned_hints
        if plan.depth is Depth.BEGINNING:
            self._trail = max(self._trail // 2, self._least_trail)
            self._beginning_took = now - self._planned
        elif plan.depth is Depth.LOOK_BACK:
            self._look_back_took = now - self._planned
        for group, first in seen.firsts.items():
            self._go_back(group, first)
        for group, seq in seen.taken:
            self._active[group] = now
            self._advance(group, seq)
        if seen.all_taken_at is not None:
            for group in plan.starts:
                self._advance(group, seen.all_taken_at)
        self._dry = self._dry and not seen.taken

    def exhausted(self, now: float) -> bool:
        """Whether work has just run out, so that a look from the beginning is worth its cost: once a second at most,
        and rarer where the last one took long.
        """
        pause = min(max(LOOK_BACK_EVERY, self._beginning_took / SHARE), BEGINNING_EVERY)
        if self._dry or now - self._looked.get(Depth.BEGINNING, -BEGINNING_EVERY) < pause:
            return False
        self._dry = True
        return True

    def promised(self, now: float) -> bool:
        """Whether a hint told of work that no look has found since, so that a look 2 s back is worth its cost: the
        transaction that made it took longer than the trail, and other looks passed it meanwhile.
        """
        pause = max(_PROMISED_EVERY, self._look_back_took / _PROMISED_SHARE)
        looked = self._looked.get(Depth.LOOK_BACK, -BEGINNING_EVERY)
        return self._hints > self._answered_hints and now - looked >= pause

    def lanes(self) -> int:
        """Lanes that had work lately, at least 1."""
        return max(1, len({(group.queue, group.lane) for group in self._active}))

    def _go_back(self, group: ReadyGroup, first: int) -> None:
        """A look behind the position found this row, and there may be more: read on from there."""
        late = self._positions[group] - first
        if late > 0 and self._positions[group] > 0:
            self._positions[group] = first
            self._trail = max(self._trail, min(late + late // 2, sequence(LOOK_BACK_SECONDS)))

    def _advance(self, group: ReadyGroup, seq: int) -> None:
        self._positions[group] = max(self._positions[group], seq - self._trail)

    def _due(self, now: float) -> Depth:
        def since(depth: Depth) -> float:
            return now - self._looked.get(depth, -BEGINNING_EVERY)

        self._active = {group: seen for group, seen in self._active.items() if now - seen < _ACTIVE_FOR}
        if since(Depth.BEGINNING) >= BEGINNING_EVERY:
            return Depth.BEGINNING
        if since(Depth.LOOK_BACK) >= LOOK_BACK_EVERY:
            return Depth.LOOK_BACK
        if not self._active or (since(Depth.ALL) >= _ALL_EVERY and not self._hinted):
            return Depth.ALL
        return Depth.ACTIVE

    def _starts(self, depth: Depth) -> Mapping[ReadyGroup, int]:
        if depth is Depth.ACTIVE:
            return {group: self._positions[group] for group in self._active}
        if depth is Depth.BEGINNING:
            return dict.fromkeys(self._positions, 0)
        back = sequence(LOOK_BACK_SECONDS) if depth is Depth.LOOK_BACK else 0
        return {group: max(position - back, 0) for group, position in self._positions.items()}
