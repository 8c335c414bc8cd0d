"""How a worker is, and where it says so.

Invariant: a worker is ready while its heartbeats are answered and it takes tasks; a database that is away, a start that
has not reached it yet and a stop that is under way make it unready, and none of them is a reason for a restart. What
is: an event loop that has stood still for longer than its leases last, a duty that has ended, or a heartbeat or claim
that has hung for far longer than its requests may take; such a process holds nothing that a new one would not get.
Trade-off: the duties that it shares with other processes may hang without that, since any other process does them.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Final, Protocol

from partita.domain.errors import InvalidError, Problem
from partita.engine.supervisor import ServiceReport
from partita.environment import variable
from partita.listening import place_of
from partita.probes.health import serving
from partita.probes.vitals import Readiness, Vitals, beating, standing
from partita.settings import WorkerSettings
from partita.worker import metric_families as families
from partita.worker.tally import Tally

HANGING_SECONDS: Final = 900.0
"""How long a round of the worker's own services may take; their requests are bounded by seconds."""


class Observed(Protocol):
    """The worker that is told about."""

    draining: bool
    tally: Tally

    def used(self) -> int:
        """Slots with a task."""
        ...

    def heartbeat_age(self) -> float | None:
        """Seconds since a heartbeat was last answered; None before the first."""
        ...

    def report(self) -> Sequence[ServiceReport]:
        """State of its own services."""
        ...


class WorkerVitals(Vitals):
    """State of one worker process. ``clock``: seconds since some fixed moment."""

    def __init__(self, settings: WorkerSettings, *, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(families.FAMILIES, families.DUTIES, clock=clock)
        self._settings = settings
        self._worker: Observed | None = None
        self._stopping = False
        self.metrics.set(families.SLOTS, settings.slots)
        self.metrics.ask(families.READY, lambda: float(self.readiness().ready))

    def watch(self, worker: Observed, shared: Callable[[], Sequence[ServiceReport]]) -> None:
        """Tell of this worker from now on, and of the duties that it shares with other processes."""
        self._worker = worker
        self.reports = lambda: (*worker.report(), *shared())
        self.metrics.ask(families.USED, worker.used)

    def stop(self) -> None:
        """The process was told to end."""
        self._stopping = True

    @property
    def state(self) -> str:
        """``starting``, ``ready``, ``draining`` or ``unreachable`` (the database is)."""
        if self._stopping or (self._worker is not None and self._worker.draining):
            return "draining"
        age = self._heartbeat_age()
        if age is None:
            return "starting"
        return "ready" if age <= self._settings.lease_ms / 1000 else "unreachable"

    def readiness(self) -> Readiness:
        """Whether it takes tasks."""
        state, age = self.state, self._heartbeat_age()
        every = self._settings.heartbeat_ms / 1000
        words = {
            "starting": "starting: the database has not been reached yet",
            "draining": "draining: takes nothing new",
            "unreachable": f"database: answered no heartbeat for {age or 0:.0f} s; expected one every {every:g} s",
        }
        return Readiness(state == "ready", words.get(state, state))

    def stalled_seconds(self) -> float:
        """As long as its leases last, since until then what it executes is still its own."""
        return max(super().stalled_seconds(), self._settings.lease_ms / 1000)

    def trouble(self) -> str:
        """Why this process must be restarted; empty while it need not be."""
        own = self._worker.report() if self._worker is not None else ()
        return super().trouble() or standing(own, HANGING_SECONDS)

    def text(self) -> str:
        """The metrics, what the worker has counted included."""
        age = self._heartbeat_age()
        self.metrics.replace(families.HEARTBEAT_AGE, {} if age is None else {(): round(age, 3)})
        if self._worker is not None:
            self._show(self._worker.tally)
        return super().text()

    def _show(self, tally: Tally) -> None:
        for family, counts in (
            (families.ATTEMPTS, tally.attempts),
            (families.REPORTS, tally.reports),
            (families.CLAIMS, tally.claims),
        ):
            self.metrics.replace(family, {(name,): count for name, count in dict(counts).items()})
        self.metrics.replace(families.SECONDS, {(name,): round(s, 6) for name, s in dict(tally.seconds).items()})
        self.metrics.replace(families.TAKEN, dict(tally.taken))

    def _heartbeat_age(self) -> float | None:
        return None if self._worker is None else self._worker.heartbeat_age()


@asynccontextmanager
async def probed(settings: WorkerSettings, vitals: WorkerVitals) -> AsyncIterator[None]:
    """Answer probes for the length of the block, where the settings say so; raises InvalidError where none can be."""
    async with AsyncExitStack() as stack:
        try:
            await stack.enter_async_context(serving(*place_of(settings.health_bind), vitals))
        except OSError as error:
            words = f"cannot listen at {settings.health_bind}: {error.strerror}; expected a free ADDRESS:PORT"
            raise InvalidError("settings", (Problem(variable("worker", "health_bind"), words),)) from error
        await stack.enter_async_context(beating(vitals))
        yield
