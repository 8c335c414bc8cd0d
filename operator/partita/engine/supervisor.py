"""Runs the background duties of a process, restarts those that fail and says how they are.

Invariant: every task that outlives a call is started here, awaited here and ended here. A service that fails is
restarted with growing pauses and never takes its neighbours down; a lost database is expected and logged in one line.
The trade-off is that a service with a lasting fault goes on being tried, which the report and the log make visible.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from enum import StrEnum

from partita.domain.errors import ForbiddenError, UnavailableError
from partita.engine.service import Clock, Service, SystemClock

log = logging.getLogger(__name__)


TIDYING_SECONDS = 1.0
"""How long what was cancelled may tidy up, such as roll back, before that is cancelled, too; milliseconds are usual."""


class ServiceState(StrEnum):
    """What a supervised service is doing."""

    RUNNING = "running"
    BACKING_OFF = "backing off"
    STOPPED = "stopped"


@dataclass(frozen=True, slots=True)
class ServiceReport:
    """How one service is, for those who show it."""

    name: str
    state: ServiceState
    restarts: int
    last_error: str
    """Message of the failure that caused the last restart; empty if there was none."""
    rounds: int = 0
    """Rounds that it has completed."""
    round_age: float = 0.0
    """Seconds that its round in progress has taken so far; 0 between two rounds."""


@dataclass(slots=True)
class _Supervised:
    service: Service
    stop: asyncio.Event
    task: asyncio.Task[None] | None = None
    state: ServiceState = ServiceState.RUNNING
    restarts: int = 0
    last_error: str = ""


def _state_of(entry: _Supervised) -> ServiceState:
    """A service whose task has ended does nothing any more, however it ended."""
    return ServiceState.STOPPED if entry.task is not None and entry.task.done() else entry.state


def _report(entry: _Supervised) -> ServiceReport:
    health = entry.service.health
    return ServiceReport(
        entry.service.name, _state_of(entry), entry.restarts, entry.last_error, health.ticks, health.round_age
    )


async def _end(entries: Sequence[_Supervised], grace: float) -> None:
    """Ask all of them to end, and see to it that they do."""
    for entry in entries:
        entry.stop.set()
        entry.service.stop()
    tasks = {entry.task for entry in entries if entry.task is not None}
    if not tasks:
        return
    _, late = await asyncio.wait(tasks, timeout=grace)
    while late:
        for task in late:
            task.cancel()
        _, late = await asyncio.wait(late, timeout=TIDYING_SECONDS)


@dataclass(frozen=True, slots=True)
class Backoff:
    """Pauses between restarts, in seconds: doubled each time, from the first up to the last."""

    first: float = 0.1
    last: float = 5.0

    def pause(self, failures: int) -> float:
        """Pause after this many failures in a row (1 or more)."""
        return min(self.first * 2.0 ** min(failures - 1, 30), self.last)


class Supervisor:
    """Owns the tasks of a process's services."""

    def __init__(self, *, clock: Clock | None = None, backoff: Backoff | None = None) -> None:
        self._clock: Clock = clock or SystemClock()
        self._backoff = backoff or Backoff()
        self._supervised: list[_Supervised] = []

    def start(self, *services: Service) -> None:
        """Run these services from now on, in this order."""
        for service in services:
            entry = _Supervised(service, asyncio.Event())
            entry.task = asyncio.create_task(self._keep_running(entry), name=f"partita:{service.name}")
            self._supervised.append(entry)

    async def stop(self, *, grace: float = 5.0) -> None:
        """End all services, asked one after the other, the last started first; what has not ended ``grace`` seconds
        later is cancelled. They have that time together, since what makes one wait makes most of them wait."""
        entries, self._supervised = self._supervised, []
        await _end(entries[::-1], grace)

    async def stop_one(self, service: Service, *, grace: float = 5.0) -> None:
        """End one service and forget it."""
        found = [entry for entry in self._supervised if entry.service is service]
        self._supervised = [entry for entry in self._supervised if entry.service is not service]
        await _end(found, grace)

    def report(self) -> tuple[ServiceReport, ...]:
        """State of every service; safe in any thread."""
        return tuple(map(_report, self._supervised))

    async def _keep_running(self, entry: _Supervised) -> None:
        failures = 0
        while not entry.stop.is_set():
            entry.state = ServiceState.RUNNING
            ticks = entry.service.health.ticks
            try:
                await entry.service.run()
                break
            except Exception as error:  # noqa: BLE001 - whatever a duty raises must not end its neighbours
                failures = 1 if entry.service.health.ticks > ticks else failures + 1
                self._note_failure(entry, error, failures)
            await self._clock.wait(entry.stop, self._backoff.pause(failures))
        entry.state = ServiceState.STOPPED

    def _note_failure(self, entry: _Supervised, error: Exception, failures: int) -> None:
        entry.restarts += 1
        told, entry.last_error = entry.last_error, str(error) or type(error).__name__
        entry.state = ServiceState.BACKING_OFF
        if isinstance(error, UnavailableError | ForbiddenError):  # their words say all that a trace could
            level = logging.WARNING if failures == 1 or entry.last_error != told else logging.DEBUG
            log.log(level, "service %s: %s; it is tried again", entry.service.name, error)
        else:
            log.error("service %s failed (%d in a row) and is restarted", entry.service.name, failures, exc_info=error)


class Jobs:
    """Short-lived tasks of one owner, such as attempts in flight: kept, awaited at the end, their errors logged."""

    def __init__(self, name: str, ended: Callable[[], None] | None = None) -> None:
        """``ended`` is called whenever one of them has ended."""
        self._name = name
        self._call_ended = ended
        self._tasks: set[asyncio.Task[None]] = set()

    def __len__(self) -> int:
        return len(self._tasks)

    def spawn(self, work: Coroutine[object, object, None], name: str) -> asyncio.Task[None]:
        """Start a coroutine and keep it until it ends."""
        task = asyncio.create_task(work, name=f"{self._name}:{name}")
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    async def join(self, seconds: float | None = None) -> bool:
        """Wait for all of them; False if some are still running after this many seconds."""
        if not self._tasks:
            return True
        _, pending = await asyncio.wait(self._tasks, timeout=seconds)
        return not pending

    async def cancel(self, seconds: float | None = None) -> None:
        """Cancel what is left and wait for it, at most this many seconds."""
        for task in tuple(self._tasks):
            task.cancel()
        await self.join(seconds)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if self._call_ended is not None:
            self._call_ended()
        if not task.cancelled() and (error := task.exception()):
            log.error("%s failed", task.get_name(), exc_info=error)
