"""Follow a run until it ends: the loop under ``watch``, ``wait`` and ``dev run``.

Invariant: each yielded view differs from the one before, and the last one is of a finished run unless the time ran
out. Polling was chosen over watching so that both backends behave alike; the pause is short beside a person's eye.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from partita.cli.backend import Backend, RunDetail
from partita.cli.names import get_command
from partita.domain.errors import TimedOutError

_PAUSE_SECONDS = 0.2


async def follow(
    backend: Backend, namespace: str, run: str, *, timeout_seconds: float | None = None
) -> AsyncIterator[RunDetail]:
    """Yield the run each time it looks different, up to its end; raises TimedOutError after ``timeout_seconds``."""
    loop = asyncio.get_running_loop()
    end = None if timeout_seconds is None else loop.time() + timeout_seconds
    last: RunDetail | None = None
    while True:
        detail = await backend.get(namespace, run)
        if detail != last:
            yield detail
            last = detail
        if detail.run.finished:
            return
        if end is not None and loop.time() >= end:
            raise TimedOutError(
                f"run {run}: still {detail.run.phase} after {timeout_seconds:g} s"
                + (f", waiting for {detail.run.waiting}" if detail.run.waiting else ""),
                hint=get_command(run, namespace),
            )
        await asyncio.sleep(_PAUSE_SECONDS)
