"""kopf inside our own event loop.

Invariant: our process decides when to end. kopf's own runner would take SIGTERM for itself and, at its end, cancel
every task that began after it, the engine's included; so its tasks are spawned by kopf and awaited here. Trade-off:
the end of kopf is spelled out: raise its flag, cancel its root tasks once, wait.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Sequence

import kopf

from partita.domain.errors import PartitaError

STOP_SECONDS = 15.0


class StillRunningError(PartitaError):
    """Something of a term cannot be ended, so that this process must not go on."""

    reason = "StillRunning"


class EmbeddedKopf:
    """One run of kopf."""

    def __init__(self, settings: kopf.OperatorSettings, namespaces: Sequence[str]) -> None:
        self._settings = settings
        self._namespaces = tuple(namespaces)
        self._stop = asyncio.Event()
        self._tasks: Collection[asyncio.Task[None]] = ()

    async def start(self, registry: kopf.OperatorRegistry) -> None:
        """Begin to watch what the registry has handlers for."""
        self._tasks = await kopf.spawn_tasks(
            registry=registry,
            settings=self._settings,
            standalone=True,
            clusterwide=not self._namespaces,
            namespaces=self._namespaces,
            stop_flag=self._stop,
        )

    async def ended(self) -> None:
        """Return when any of its root tasks has ended, which none does by itself; raises what it raised."""
        done, _ = await asyncio.wait(self._tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            if not task.cancelled() and (error := task.exception()):
                raise error

    async def stop(self) -> None:
        """End watches, handlers and daemons, in kopf's own order. Raises StillRunningError."""
        self._stop.set()
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            _, pending = await asyncio.wait(self._tasks, timeout=STOP_SECONDS)
            if pending:
                raise StillRunningError(f"kopf: {len(pending)} tasks did not end within {STOP_SECONDS:g} s")
