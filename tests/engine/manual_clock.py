"""A clock that a test moves."""

from __future__ import annotations

import asyncio


class ManualClock:
    """Time that passes only when a test says so; pauses end at a wake-up or when time has passed."""

    def __init__(self) -> None:
        self.now = 0.0
        self.pauses: list[float] = []
        self._moved = asyncio.Event()

    def monotonic(self) -> float:
        return self.now

    async def wait(self, event: asyncio.Event, seconds: float) -> bool:
        self.pauses.append(seconds)
        end = self.now + seconds
        while not event.is_set() and self.now < end:
            moved = self._moved
            async with asyncio.TaskGroup() as group:
                waits = [group.create_task(event.wait()), group.create_task(moved.wait())]
                await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
                for wait in waits:
                    wait.cancel()
        return event.is_set()

    def move(self, seconds: float) -> None:
        self.now += seconds
        self._moved.set()
        self._moved = asyncio.Event()
