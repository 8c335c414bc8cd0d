"""Timeouts of many attempts by one timer: each is told once, in its turn, and none that ended before."""

from __future__ import annotations

import asyncio

from partita.worker.timeouts import Timeouts


class Clocked:
    """Notes that its time is over."""

    def __init__(self, told: list[Clocked], enough: int = 0) -> None:
        self._told = told
        self._enough = enough
        self.all_told = asyncio.Event()

    def time_out(self) -> None:
        self._told.append(self)
        if len(self._told) == self._enough:
            self.all_told.set()


async def _until(last: Clocked) -> None:
    async with asyncio.timeout(10):
        await last.all_told.wait()


async def test_those_of_one_length_are_told_in_the_order_in_which_they_began() -> None:
    timeouts = Timeouts()
    told: list[Clocked] = []
    several = [Clocked(told, 3) for _ in range(3)]
    for one in several:
        timeouts.begin(one, 20)
    await _until(several[-1])
    assert told == several


async def test_one_that_ended_is_not_told_and_does_not_delay_the_next() -> None:
    timeouts = Timeouts()
    told: list[Clocked] = []
    early, late = Clocked(told), Clocked(told, 1)
    timeouts.begin(early, 20)
    timeouts.begin(late, 20)
    timeouts.end(early, 20)
    await _until(late)
    assert told == [late]


async def test_a_length_is_known_again_after_it_was_forgotten() -> None:
    timeouts = Timeouts()
    told: list[Clocked] = []
    first, second = Clocked(told, 1), Clocked(told, 2)
    timeouts.begin(first, 10)
    await _until(first)
    timeouts.begin(second, 10)
    await _until(second)
    assert told == [first, second]


async def test_lengths_without_an_attempt_are_forgotten_when_there_are_many() -> None:
    timeouts = Timeouts()
    told: list[Clocked] = []
    running = Clocked(told, 1)
    timeouts.begin(running, 30)
    for milliseconds in range(100_000, 101_000):
        other = Clocked(told)
        timeouts.begin(other, milliseconds)
        timeouts.end(other, milliseconds)
    assert timeouts.lengths <= 65
    await _until(running)
    assert told == [running]
