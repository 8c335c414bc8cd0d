"""Bounded polling: the only way in which tests wait for something that another process does."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

T = TypeVar("T")


async def until(check: Callable[[], Awaitable[T]], *, within: float = 20.0, every: float = 0.02, what: str = "") -> T:
    """Ask ``check`` until its answer is true, and return it; AssertionError with the last answer after ``within`` s."""
    deadline = time.monotonic() + within
    while True:
        answer = await check()
        if answer:
            return answer
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {within} s: {what or check}; last answer {answer!r}")
        await asyncio.sleep(every)


def until_sync(check: Callable[[], T], *, within: float = 20.0, every: float = 0.02, what: str = "") -> T:
    """The same for code without an event loop."""
    deadline = time.monotonic() + within
    while True:
        answer = check()
        if answer:
            return answer
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {within} s: {what or check}; last answer {answer!r}")
        time.sleep(every)
