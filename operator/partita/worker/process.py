"""A worker as a process: engine, duties, worker, and the signals that end it.

The first SIGTERM or SIGINT stops in good order, a second one at once. Invariant: however it ends, nothing is lost:
what could not be handed back is found by the sweeper of another process.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
from collections.abc import Callable, Iterable
from typing import Final, Protocol

from partita import collector
from partita.engine.duties import Duties
from partita.engine.engine import Engine
from partita.engine.supervisor import Supervisor
from partita.settings import Settings
from partita.worker.registry import Tasks
from partita.worker.runtime import Worker
from partita.worker.unless import unless
from partita.worker.vitals import WorkerVitals, probed

log = logging.getLogger(__name__)

STOPPED: Final = 0
STUCK: Final = 5
"""Exit code when the worker stopped by itself or had to leave a function running in a thread."""
_GRACE: Final = 2.0
"""Seconds that the duties have to end their rounds; what is cut off is done by other processes."""
SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)


class SignalSource(Protocol):
    """Where signals come from; a test has its own."""

    def subscribe(self, signals: Iterable[signal.Signals], handler: Callable[[], None]) -> None:
        """Call the handler for each of these signals."""
        ...

    def unsubscribe(self, signals: Iterable[signal.Signals]) -> None:
        """Leave these signals to whoever had them before."""
        ...


class ProcessSignals:
    """The signals of this process, delivered on its event loop."""

    def subscribe(self, signals: Iterable[signal.Signals], handler: Callable[[], None]) -> None:
        """Call the handler for each of these signals."""
        for number in signals:
            asyncio.get_running_loop().add_signal_handler(number, handler)

    def unsubscribe(self, signals: Iterable[signal.Signals]) -> None:
        """Leave these signals to whoever had them before."""
        for number in signals:
            asyncio.get_running_loop().remove_signal_handler(number)


async def serve(
    settings: Settings,
    tasks: Tasks,
    *,
    signals: SignalSource | None = None,
    started: Callable[[Worker], None] | None = None,
) -> int:
    """Run a worker until it is told to stop, and return the process's exit code.

    Raises InvalidError for an address of the probes that cannot be had.
    """
    collector.calm()
    source = signals or ProcessSignals()
    stop, now = asyncio.Event(), asyncio.Event()
    vitals = WorkerVitals(settings.worker)
    source.subscribe(SIGNALS, lambda: now.set() if stop.is_set() else stop.set())
    try:
        async with (
            probed(settings.worker, vitals),
            await Engine.open(settings, application="partita-worker") as engine,
        ):
            return await _serve(engine, tasks, stop, now, started, vitals)
    finally:
        source.unsubscribe(SIGNALS)


def exit_process(code: int) -> None:
    """End the process with this code, also when functions still run in threads."""
    logging.shutdown()
    os._exit(code)


async def _serve(
    engine: Engine,
    tasks: Tasks,
    stop: asyncio.Event,
    now: asyncio.Event,
    started: Callable[[Worker], None] | None,
    vitals: WorkerVitals,
) -> int:
    duties = Duties(engine, listen=True)
    worker = Worker(engine, tasks, duties.wakeups)
    supervisor = Supervisor()
    supervisor.start(*duties.services)
    vitals.watch(worker, supervisor.report)
    try:
        if not await unless(stop, worker.start()):
            await worker.abort()
            return STOPPED
        if started is not None:
            started(worker)
        await unless(stop, worker.wait_stop_wanted())
        stop.set()
        vitals.stop()
        log.info("worker %s stops%s", worker.worker_id, f": {worker.stop_reason}" if worker.stop_reason else "")
        if not await unless(now, worker.stop()):
            await worker.abort()
        return STOPPED if worker.ended and not worker.stop_reason else STUCK
    finally:
        vitals.stop()
        engine.database.hurry()  # whatever is left to do is done by other processes when the database is back
        await supervisor.stop(grace=_GRACE)
