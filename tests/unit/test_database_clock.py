"""What a process thinks that the database's clock says."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from partita.engine.clock import DatabaseClock

READ = datetime(2031, 6, 1, tzinfo=UTC)


def after(seconds: float) -> datetime:
    """So long after the first reading."""
    return READ + timedelta(seconds=seconds)


@pytest.fixture
def clock() -> DatabaseClock:
    """One that was read at second 100 of the process's own."""
    clock = DatabaseClock()
    clock.learn(READ, 100.0)
    return clock


def test_it_says_nothing_before_it_was_read() -> None:
    assert DatabaseClock().now(100.0) is None


def test_it_goes_on_as_the_process_does(clock: DatabaseClock) -> None:
    assert [clock.now(100.0), clock.now(100.25), clock.now(160.0)] == [READ, after(0.25), after(60)]


@pytest.mark.parametrize("at", [160.1, 99.9])
def test_a_reading_is_good_for_a_minute(clock: DatabaseClock, at: float) -> None:
    assert clock.now(at) is None


def test_a_new_reading_replaces_the_old_one(clock: DatabaseClock) -> None:
    clock.learn(after(90), 150.0)
    assert clock.now(210.0) == after(150)


def test_no_answer_is_earlier_than_one_before(clock: DatabaseClock) -> None:
    """A reading that was long on its way makes the clock seem to go back."""
    assert clock.now(101.0) == after(1)
    clock.learn(after(0.75), 101.0)
    assert clock.now(101.0) == clock.now(101.25) == after(1)
    assert clock.now(101.5) == after(1.25)


def test_no_answer_is_earlier_than_a_reading_before(clock: DatabaseClock) -> None:
    """Readings of several connections may overtake each other."""
    clock.learn(after(1), 101.0)
    clock.learn(after(0.75), 101.0)
    assert clock.now(101.0) == after(1)


def test_a_clock_that_was_set_back_is_believed(clock: DatabaseClock) -> None:
    assert clock.now(110.0) == after(10)
    clock.learn(after(8.9), 110.0)
    assert clock.now(110.0) == after(8.9)
