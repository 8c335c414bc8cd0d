"""Tasks for workers that are processes of their own."""

from __future__ import annotations

from partita.worker import Tasks

app = Tasks()


@app.task("double")
async def double(number: int) -> int:
    """Twice the number."""
    return number * 2
