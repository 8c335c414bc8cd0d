"""Run ids: UUIDs of version 7 in order of time, and the months they belong to."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from hashlib import sha256
from uuid import RFC_4122, UUID

import pytest
import uuid6
from hypothesis import given
from hypothesis import strategies as st

from partita.domain.errors import ExpiredError, TooEarlyError
from partita.domain.ids import (
    Month,
    bounds,
    check_acceptable,
    derived_id,
    make_id,
    month_range,
    time_of,
    to_milliseconds,
)
from partita.minting import new_id

times = st.integers(0, (1 << 47) - 1)
free = st.integers(0, (1 << 74) - 1)
moments = st.datetimes(datetime(1970, 2, 1), datetime(9998, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001  # hypothesis adds the zone


@given(times, free)
def test_ids_are_uuids_of_version_7_that_keep_their_time(milliseconds: int, bits: int) -> None:
    made = make_id(milliseconds, bits)
    assert (made.version, made.variant, made.int >> 80) == (7, RFC_4122, milliseconds)
    assert uuid6.UUID(str(made)).time == milliseconds


@given(times, free, times, free)
def test_order_of_ids_is_order_of_time(first: int, one: int, second: int, other: int) -> None:
    if first < second:
        assert make_id(first, one) < make_id(second, other)


@given(moments, free)
def test_an_id_lies_in_its_month_and_in_no_other(moment: datetime, bits: int) -> None:
    made = make_id(to_milliseconds(moment), bits)
    month = Month.of(made)
    assert month == Month.of(moment)
    assert month.lower <= made < month.upper
    assert month.plus(-1).upper == month.lower
    assert Month.parse(month.suffix) == Month.parse(str(month)) == month


def test_derived_ids_follow_from_the_object_alone() -> None:
    created = datetime(2026, 11, 29, 18, 8, 27, tzinfo=UTC)
    uid = "5b3ab1a8-9a5c-4d4c-8a6b-0c6f8e4d2f11"
    made = derived_id(uid, created)
    assert made == derived_id(uid, created) != derived_id(uid + "x", created)
    assert time_of(made) == created
    digest = f"{int.from_bytes(sha256(f'partita/1/{uid}'.encode()).digest(), 'big'):0256b}"
    text = f"{made.int:0128b}"
    assert text[52:64] + text[66:] == digest[:74]


def test_new_ids_grow_strictly_and_stay_at_the_true_time() -> None:
    before = to_milliseconds(datetime.now(UTC))
    made = [new_id() for _ in range(20_000)]
    after = to_milliseconds(datetime.now(UTC))
    assert made == sorted(set(made))
    assert before <= made[0].int >> 80
    assert made[-1].int >> 80 <= after + 1
    assert len({each.int & ((1 << 62) - 1) for each in made}) == len(made)


def test_the_window_of_acceptance() -> None:
    now = datetime(2026, 11, 29, tzinfo=UTC)
    floor = datetime(2026, 1, 1, tzinfo=UTC)
    day = 86_400_000

    def check(moment: datetime) -> None:
        check_acceptable(make_id(to_milliseconds(moment), 1), floor=floor, now=now, ahead_ms=day)

    check(floor)
    check(now + timedelta(days=1))
    with pytest.raises(ExpiredError, match="2025-12-31 23:59 UTC; expected 2026-01-01 or later"):
        check(floor - timedelta(milliseconds=1))
    with pytest.raises(TooEarlyError, match="ahead of the database's clock"):
        check(now + timedelta(days=1, milliseconds=1))


def test_bounds_are_the_smallest_and_the_largest() -> None:
    ids = [make_id(milliseconds, 1) for milliseconds in (5, 3, 9)]
    assert bounds(ids) == (ids[1], ids[2])
    with pytest.raises(ValueError, match="empty"):
        bounds([])


def test_months_count_in_utc_and_over_years() -> None:
    assert Month.of(datetime.fromisoformat("2027-01-01T00:30:00+02:00")) == Month(2026, 12)
    assert month_range(Month(2026, 11), Month(2027, 2)) == tuple(Month(2026, 11).plus(n) for n in range(4))
    assert month_range(Month(2026, 2), Month(2026, 1)) == ()
    assert Month(2026, 1).lower == UUID(int=to_milliseconds(datetime(2026, 1, 1, tzinfo=UTC)) << 80)
    for bad in ("2026", "202613", "2026-00", "abcdef", "\u0662" * 6):
        with pytest.raises(ValueError, match="not a month"):
            Month.parse(bad)
