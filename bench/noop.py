"""The task of the benchmark: ``partita worker bench.noop:app`` serves it.

Invariant: it does nothing, so that what is measured is the engine and the worker alone.
"""

from __future__ import annotations

from typing import Final

from partita.worker import Tasks

app: Final = Tasks()


@app.task("noop")
async def noop() -> None:
    """Do nothing."""
