"""How this process is, for those who ask from outside: written by its event loop, read by the thread of the probes.

Invariant: only what a restart would mend counts as trouble: an event loop that stands still, or a part that has ended
although nobody ended it. A lost database or API is neither. Trade-off: a duty that hangs in a request is not restarted;
its rounds stand still in the metrics, which is what an alert is for.
"""

from __future__ import annotations

import asyncio
import os
import resource
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from importlib.metadata import version
from pathlib import Path

from partita.engine.supervisor import ServiceReport, ServiceState
from partita.kube import metric_families as families
from partita.kube.metrics import Metrics

BEAT_SECONDS = 1.0
STALLED_SECONDS = 30.0
_STATM = Path("/proc/self/statm")


def _nothing() -> Sequence[ServiceReport]:
    return ()


class Vitals:
    """State of one operator process. ``clock``: seconds since some fixed moment."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.metrics = Metrics(families.FAMILIES)
        self.reports: Callable[[], Sequence[ServiceReport]] = _nothing
        """The duties of the present term."""
        self._clock = clock
        self._beat = clock()
        self._state = "starting"
        self.metrics.set(families.BUILD, 1, version("partita"))
        self.metrics.set(families.STARTED, round(time.time(), 3))
        self.metrics.set(families.LEADER, 0)
        self.metrics.ask(families.CPU, _processor_seconds)
        if _STATM.exists():
            self.metrics.ask(families.MEMORY, _resident_bytes)

    @property
    def state(self) -> str:
        """``starting``, ``standby`` or ``leader``."""
        return self._state

    def become(self, state: str) -> None:
        """Enter a state; whoever stops leading forgets what only a leader says."""
        if state != "leader":
            self.metrics.clear()
            self.reports = _nothing
        self._state = state
        self.metrics.set(families.LEADER, float(state == "leader"))

    def beat(self) -> None:
        """The event loop gets on."""
        self._beat = self._clock()

    def trouble(self) -> str:
        """Why this process must be restarted; empty while it need not be."""
        silent = self._clock() - self._beat
        if silent > STALLED_SECONDS:
            return f"the event loop has not turned for {silent:.0f} s; expected at most {STALLED_SECONDS:.0f} s"
        dead = [report.name for report in self.reports() if report.state is ServiceState.STOPPED]
        return f"{', '.join(dead)}: ended although the operator leads" if dead else ""

    def text(self) -> str:
        """The metrics, the duties of the moment included."""
        reports = self.reports()
        for family, value in (
            (families.DUTY_UP, lambda report: float(report.state is ServiceState.RUNNING)),
            (families.DUTY_RESTARTS, lambda report: report.restarts),
            (families.DUTY_ROUNDS, lambda report: report.rounds),
        ):
            self.metrics.replace(family, {(report.name,): value(report) for report in reports})
        return self.metrics.text()


@asynccontextmanager
async def beating(vitals: Vitals) -> AsyncIterator[None]:
    """Let the event loop say that it turns, for the length of the block."""

    async def beat() -> None:
        while True:
            vitals.beat()
            await asyncio.sleep(BEAT_SECONDS)

    task = asyncio.create_task(beat(), name="partita:heartbeat")
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def _processor_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return round(used.ru_utime + used.ru_stime, 3)


def _resident_bytes() -> float:
    return float(_STATM.read_text("ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")
