"""The time that the decisions of one transaction may take.

Purpose: each decision is bounded, but a batch has hundreds of them, and while they are made the batch holds the locks
of all its runs and the process does nothing else. Invariant: a transaction of one submission always goes through, and a
batch that is cut is at most half as large the next time. Trade-off: what was decided before the cut is decided again,
which is less than the time limit for each batch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from time import perf_counter
from typing import Self

from partita.engine.turns import Group, OverspentError


class Purse:
    """The time of one batch; it is paid for what is done inside ``with``."""

    __slots__ = ("_clock", "_groups", "_left", "_since")

    def __init__(self, groups: Sequence[Group], seconds: float, clock: Callable[[], float] = perf_counter) -> None:
        self._groups = groups
        self._left = seconds
        self._clock = clock
        self._since = 0.0

    def __enter__(self) -> Self:
        self._since = self._clock()
        return self

    def __exit__(self, *_: object) -> None:
        self._pay()

    def check(self) -> None:
        """Raises OverspentError once the time is over and there is more than one submission."""
        now = self._clock()  # as in _pay: written out, since it is asked for every decision
        self._left -= now - self._since
        self._since = now
        if self._left > 0:
            return
        turns = [turn for group in self._groups for turn in group.turns]
        if len(turns) > 1:
            done = sum(turn.decided is not None for turn in turns)
            raise OverspentError(max(1, min(done, len(turns) // 2)))

    def _pay(self) -> None:
        now = self._clock()
        self._left -= now - self._since
        self._since = now
