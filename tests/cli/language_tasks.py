"""Tasks of ``language.yaml``."""

from __future__ import annotations

from typing import Any

from partita.worker import Fatal, TaskContext, Tasks

app = Tasks()


@app.task("echo")
async def echo(ctx: TaskContext, **_: Any) -> dict[str, Any]:
    """What it is given."""
    return {"echo": ctx.input}


@app.task("moody")
async def moody(i: int) -> None:
    """Refuse the middle one."""
    if i == 1:
        raise Fatal("not this one")
