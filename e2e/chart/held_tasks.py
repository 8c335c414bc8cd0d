"""A task that its worker never ends at the first attempt, so that a test can kill the worker in the middle of it."""

from __future__ import annotations

import asyncio

from partita.worker import TaskContext, Tasks

app = Tasks()


@app.task("hold")
async def hold(text: str, context: TaskContext) -> dict[str, str | int]:
    """Say what is held; end at the second attempt."""
    print(f"holds {text}, attempt {context.attempt}", flush=True)
    if context.attempt == 1:
        await asyncio.Event().wait()
    return {"held": text, "attempt": context.attempt}
