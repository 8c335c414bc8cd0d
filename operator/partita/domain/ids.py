"""Run ids: UUIDs of version 7, whose first 48 bits are milliseconds since 1970, and the months they belong to.

Invariant: byte order of ids is time order, so that a month is a half-open range of ids and the smallest and largest id
of a set prune every other partition. A run of a WorkflowRun object has an id that follows from the object alone, so
that starting it twice is impossible. Trade-off: an id tells when its run was made; it must not be used as a secret.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import Final
from uuid import UUID, SafeUUID

from partita.domain.errors import ExpiredError, TooEarlyError

_FREE_BITS: Final = 74
_LOW_BITS: Final = 62
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MAX_MS: Final = (1 << 48) - 1
_new: Final = UUID.__new__
_set_int: Final = vars(UUID)["int"].__set__
_set_safe: Final = vars(UUID)["is_safe"].__set__


def make_id(milliseconds: int, free: int) -> UUID:
    """The UUIDv7 of a time (since 1970) with the lower 74 bits of ``free`` in its free bits."""
    if not 0 <= milliseconds <= _MAX_MS:
        raise ValueError(f"not a UUIDv7 time: {milliseconds} ms")
    high = (free >> _LOW_BITS) & 0xFFF
    low = free & ((1 << _LOW_BITS) - 1)
    return uuid_of(milliseconds << 80 | 0x7 << 76 | high << 64 | 0b10 << 62 | low)


def uuid_of(number: int) -> UUID:
    """The UUID of a number of 128 bits. The class's own constructor looks at six arguments first and takes five times
    as long; an id or two are made for every step.
    """
    made = _new(UUID)
    _set_int(made, number)
    _set_safe(made, SafeUUID.unknown)
    return made


def derived_id(cr_uid: str, created: datetime) -> UUID:
    """The id of the run of a WorkflowRun object: its creationTimestamp and a digest of its uid."""
    digest = int.from_bytes(sha256(f"partita/1/{cr_uid}".encode()).digest(), "big")
    return make_id(to_milliseconds(created), digest >> (256 - _FREE_BITS))


def child_id(parent: UUID, generation: int, node: str, index: int, attempt: int, now: datetime) -> UUID:
    """The id of the child run of an attempt: the moment and a digest of what started it."""
    name = f"partita/child/1/{parent}/{generation}/{node}/{index}/{attempt}"
    digest = int.from_bytes(sha256(name.encode()).digest(), "big")
    return make_id(to_milliseconds(now), digest >> (256 - _FREE_BITS))


def to_milliseconds(moment: datetime) -> int:
    """Whole milliseconds since 1970 of an aware datetime."""
    return (moment - _EPOCH) // timedelta(milliseconds=1)


def time_of(run_id: UUID) -> datetime:
    """When an id was made (UTC)."""
    return _EPOCH + timedelta(milliseconds=run_id.int >> 80)


def bounds(run_ids: Iterable[UUID]) -> tuple[UUID, UUID]:
    """Smallest and largest id: the ``$lo`` and ``$hi`` beside an array of ids. Raises ValueError for none."""
    ids = tuple(run_ids)
    return min(ids), max(ids)


def check_acceptable(run_id: UUID, *, floor: datetime, now: datetime, ahead_ms: int) -> None:
    """Raise ExpiredError below the retention floor, TooEarlyError too far ahead of the database's clock."""
    made = time_of(run_id)
    if made < floor:
        raise ExpiredError(
            f"run {run_id}: is dated {made:%Y-%m-%d %H:%M} UTC; expected {floor:%Y-%m-%d} or later, as older "
            "months have been dropped",
            hint="start it as a new run",
        )
    if made > now + timedelta(milliseconds=ahead_ms):
        raise TooEarlyError(
            f"run {run_id}: is dated {made:%Y-%m-%d %H:%M:%S} UTC, ahead of the database's clock; expected at most "
            f"{ahead_ms // 1000} s ahead",
            hint="check the clock that made the id, or wait",
        )


@dataclass(frozen=True, slots=True, order=True)
class Month:
    """A calendar month in UTC."""

    year: int
    number: int
    """1 to 12."""

    @classmethod
    def of(cls, moment: datetime | UUID) -> Month:
        """The month of a time or of a run id."""
        at = (time_of(moment) if isinstance(moment, UUID) else moment).astimezone(UTC)
        return cls(at.year, at.month)

    @classmethod
    def parse(cls, text: str) -> Month:
        """From ``202611`` or ``2026-11``; raises ValueError."""
        digits = text.replace("-", "")
        if len(digits) != 6 or not digits.isascii() or not digits.isdigit() or not 1 <= int(digits[4:]) <= 12:
            raise ValueError(f"not a month: {text!r}")
        return cls(int(digits[:4]), int(digits[4:]))

    def plus(self, months: int) -> Month:
        """The month so many months later (earlier when negative)."""
        index = self.year * 12 + self.number - 1 + months
        return Month(index // 12, index % 12 + 1)

    @property
    def start(self) -> datetime:
        """Its first moment."""
        return datetime(self.year, self.number, 1, tzinfo=UTC)

    @property
    def lower(self) -> UUID:
        """No id of the month is smaller; belongs to the month."""
        return UUID(int=to_milliseconds(self.start) << 80)

    @property
    def upper(self) -> UUID:
        """Every id of the month is smaller."""
        return self.plus(1).lower

    @property
    def suffix(self) -> str:
        """As in names of partitions: ``202611``."""
        return f"{self.year:04}{self.number:02}"

    def __str__(self) -> str:
        return f"{self.year:04}-{self.number:02}"


def month_range(first: Month, last: Month) -> tuple[Month, ...]:
    """All months from the first to the last, both included."""
    months = []
    while first <= last:
        months.append(first)
        first = first.plus(1)
    return tuple(months)
