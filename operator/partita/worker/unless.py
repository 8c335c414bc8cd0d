"""Work that an event breaks off."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine


async def unless(event: asyncio.Event, work: Coroutine[object, object, object]) -> bool:
    """Do the work to its end; False when the event came first, which cancels it."""

    async def watch(task: asyncio.Task[object]) -> None:
        await event.wait()
        task.cancel()

    async with asyncio.TaskGroup() as group:
        task = group.create_task(work)
        watcher = group.create_task(watch(task))
        task.add_done_callback(lambda _: watcher.cancel())
    return not task.cancelled()
