"""Trying again what failed because something was away: growing pauses, a bounded number of times."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import TypeVar

from partita.domain.errors import UnavailableError

T = TypeVar("T")


async def retrying(
    action: Callable[[], Awaitable[T]], *, tries: int = 60, first: float = 0.1, longest: float = 5.0
) -> T:
    """The action's result; UnavailableError is raised only after the last try, any other error at once.

    The pauses are in seconds, doubling from ``first`` to ``longest``, each with up to a third of jitter.
    """
    pause = first
    for _ in range(tries - 1):
        try:
            return await action()
        except UnavailableError:
            await asyncio.sleep(pause * random.uniform(0.67, 1.0))  # noqa: S311  # spreads the load; no secret
            pause = min(pause * 2, longest)
    return await action()
