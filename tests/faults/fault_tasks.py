"""Tasks whose steps a test can see and hold, by files in a folder."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

from partita.worker import TaskContext, Tasks

app = Tasks()


@app.task("hold")
async def hold(ctx: TaskContext, folder: str) -> int:
    """Says that it has begun (``<node>.<attempt>.<pid>``) and goes on when the file ``go`` is there."""
    place = Path(folder)
    (place / f"{ctx.node}.{ctx.attempt}.{os.getpid()}").touch()
    while not (place / "go").exists():  # noqa: ASYNC110 - the test that makes the file is another process
        await asyncio.sleep(0.01)
    return os.getpid()


@app.task("step")
async def step() -> int:
    """Says which process has done it."""
    return os.getpid()
