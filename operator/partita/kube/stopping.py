"""Ending in good order: signals that set an event, and work that an event cuts short."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import Coroutine, Iterator
from typing import Any, TypeVar

T = TypeVar("T")

_SIGNALS = (signal.SIGTERM, signal.SIGINT)
_ELSEWHERE = (NotImplementedError, RuntimeError, ValueError)
"""What asyncio raises off the main thread, where signals are somebody else's."""


def take_signals(stop: asyncio.Event) -> None:
    """Let SIGTERM and SIGINT set the event, whoever had them before."""
    loop = asyncio.get_running_loop()
    for number in _SIGNALS:
        with contextlib.suppress(*_ELSEWHERE):
            loop.add_signal_handler(number, stop.set)


@contextlib.contextmanager
def own_signals(stop: asyncio.Event) -> Iterator[None]:
    """Take the signals for the length of the block."""
    take_signals(stop)
    try:
        yield
    finally:
        loop = asyncio.get_running_loop()
        for number in _SIGNALS:
            with contextlib.suppress(*_ELSEWHERE):
                loop.remove_signal_handler(number)


async def first_of(stop: asyncio.Event, work: Coroutine[Any, Any, T]) -> T | None:
    """The result of the work; None when the event is set first, and the work is then cancelled."""
    task, stopping = asyncio.create_task(work), asyncio.create_task(stop.wait())
    try:
        await asyncio.wait({task, stopping}, return_when=asyncio.FIRST_COMPLETED)
        return task.result() if task.done() else None
    finally:
        for each in (task, stopping):
            each.cancel()
        await asyncio.gather(task, stopping, return_exceptions=True)
