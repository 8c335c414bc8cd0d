"""Positions in the queue of ready tasks.

Purpose: ``seq`` is time (microseconds since 2024-01-01 by the database's clock) times 4096, plus a counter. Invariant:
positions made by one process grow within a batch, and between processes they are as ordered as the database's clock
(as it is remembered, at most a quarter of a second late, in transactions of one statement), so that a claimer that
starts a little behind its remembered position, and now and then further, misses nothing. Trade-off: no database
sequence, hence no uniqueness across processes, and no round trip to learn the value that the task's record has to
carry.
"""

from __future__ import annotations

import zlib
from datetime import UTC, datetime
from functools import lru_cache
from typing import Final

from partita.domain.state.rows import ReadyKey

LANES: Final = 16
_EPOCH: Final = datetime(2024, 1, 1, tzinfo=UTC)
_COUNTER_BITS: Final = 12


@lru_cache(maxsize=4096)
def lane_of(namespace: str) -> int:
    """The namespace's lane, the same in every process and for ever."""
    return zlib.crc32(namespace.encode()) % LANES


def position(moment: datetime) -> int:
    """The first position of a moment."""
    span = moment - _EPOCH
    return ((span.days * 86_400 + span.seconds) * 1_000_000 + span.microseconds) << _COUNTER_BITS


class ReadySequence:
    """Positions of one batch."""

    __slots__ = ("_next",)

    def __init__(self, now: datetime) -> None:
        self._next = position(now)

    def key(self, queue: str, namespace: str, priority: int) -> ReadyKey:
        """The next position, as the key of a ready row; priorities are clamped to the five levels."""
        seq = self._next
        self._next = seq + 1
        return ReadyKey(queue, lane_of(namespace), max(-2, min(2, priority)), seq)

    def reserve(self, count: int) -> int:
        """The first of so many positions in a row that no other task of the batch gets."""
        first = self._next
        self._next = first + count
        return first
