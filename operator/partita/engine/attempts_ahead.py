"""Attempts whose reports are decided later in the same transaction.

Purpose: the fence takes the leases of all reports away before the first of them is decided. Invariant: while an event
is decided, an attempt is in flight if its lease is there or if its report comes later in the batch, exactly as if each
event had a transaction of its own; otherwise a success that shares a transaction with the failure that ends its run
would be forgotten by undo.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy

from partita.domain.state.events import AttemptTimedOut, Event, LeaseLost, TaskCompleted, TaskFailed
from partita.domain.state.rows import NodeKey
from partita.domain.state.slices import Slice
from partita.engine.turns import Turn

_ENDS = (TaskCompleted, TaskFailed, LeaseLost, AttemptTimedOut)


class AttemptsAhead:
    """The attempts of one run whose reports have not been decided yet, as its turns go by."""

    __slots__ = ("_ahead", "_leased")

    def __init__(self, slice_: Slice, turns: Sequence[Turn]) -> None:
        self._leased = slice_.leased
        """The leases that are there; None: nobody asked for them."""
        self._ahead = {key for turn in turns if (key := _key(turn.event))} if self._leased is not None else set()

    def seen_by(self, slice_: Slice, event: Event) -> Slice:
        """The slice on which the next event is decided; the given one stays as it is."""
        if self._leased is None or not self._ahead:
            return slice_
        key = _key(event)
        if key is not None:
            self._ahead.discard(key)
        seen = copy(slice_)
        seen.leased = ((slice_.leased or set()) & self._leased) | self._ahead
        return seen


def _key(event: Event | None) -> NodeKey | None:
    return NodeKey(event.node, event.index) if isinstance(event, _ENDS) else None
