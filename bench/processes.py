"""Partita's own processes, started as a person would start them and ended in good order.

Invariant: a process that was started here does not outlive the block, whatever happens in it.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

from partita.settings import Settings

_ROOT: Final = Path(__file__).parents[1]
_COMMAND: Final = "from partita.cli.main import main; main()"
_GRACE: Final = 15.0
"""Seconds that a process has to end after SIGTERM."""


@asynccontextmanager
async def partita(
    settings: Settings, *arguments: str, variables: Mapping[str, str] | None = None
) -> AsyncIterator[asyncio.subprocess.Process]:
    """A process of the command ``partita``."""
    environment = {
        **os.environ,
        "PARTITA_DATABASE_URL": settings.database.url,
        "PARTITA_LOG_LEVEL": "WARNING",
        **(variables or {}),
    }
    command = (sys.executable, "-c", _COMMAND, *arguments)
    process = await asyncio.create_subprocess_exec(*command, cwd=_ROOT, env=environment, stdout=sys.stderr)
    try:
        yield process
    finally:
        await _end(process)


def worker(settings: Settings) -> tuple[str, ...]:
    """Arguments of a worker that serves the benchmark's task."""
    return ("worker", "bench.noop:app", "--slots", str(settings.worker.slots))


def check(running: Sequence[asyncio.subprocess.Process]) -> None:
    """Raise SystemExit when one of them has ended, so that nobody waits for it in vain."""
    for process in running:
        if process.returncode is not None:
            raise SystemExit(f"bench: process {process.pid} of partita has ended with code {process.returncode}")


async def _end(process: asyncio.subprocess.Process) -> None:
    if process.returncode is None:
        process.send_signal(signal.SIGTERM)
    try:
        await asyncio.wait_for(process.wait(), _GRACE)
    except TimeoutError:
        process.kill()
        await process.wait()
