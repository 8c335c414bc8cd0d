"""How a process is, for those who ask from outside: written by its event loop, read by the thread of the probes.

Invariant: only what a restart would mend counts as trouble: an event loop that stands still, or a duty that has ended
although nobody ended it. A lost database or API is neither. Trade-off: a duty that hangs in a request is no trouble by
itself; its requests are bounded, and its round's age says so in the metrics.
"""

from __future__ import annotations

import asyncio
import os
import resource
import time
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from partita.engine.supervisor import ServiceReport, ServiceState
from partita.probes import families
from partita.probes.families import DutyFamilies
from partita.probes.metrics import Family, Metrics

BEAT_SECONDS = 1.0
STALLED_SECONDS = 30.0
_STATM = Path("/proc/self/statm")


def no_duties() -> Sequence[ServiceReport]:
    """The reports of a process that has no duties now."""
    return ()


@dataclass(frozen=True, slots=True)
class Readiness:
    """Whether a process does its work, and in words why or why not."""

    ready: bool
    words: str


class Vitals(ABC):
    """State of one process. ``clock``: seconds since some fixed moment."""

    def __init__(
        self, own: Iterable[Family], duties: DutyFamilies, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """``own``: families of this kind of process, besides those that every process has."""
        self.metrics = Metrics((families.BUILD, *own, *families.OF_EVERY_PROCESS))
        self.reports: Callable[[], Sequence[ServiceReport]] = no_duties
        """The duties of the moment."""
        self._duties = duties
        self._clock = clock
        self._beat = clock()
        self.metrics.set(families.BUILD, 1, version("partita"))
        self.metrics.set(families.STARTED, round(time.time(), 3))
        self.metrics.ask(families.LOOP_AGE, lambda: round(self.silent(), 3))
        self.metrics.ask(families.CPU, _processor_seconds)
        if _STATM.exists():
            self.metrics.ask(families.MEMORY, _resident_bytes)

    @property
    @abstractmethod
    def state(self) -> str:
        """One word for people."""

    @abstractmethod
    def readiness(self) -> Readiness:
        """Whether it does its work."""

    def beat(self) -> None:
        """The event loop gets on."""
        self._beat = self._clock()

    def silent(self) -> float:
        """Seconds since the event loop last got on."""
        return max(0.0, self._clock() - self._beat)

    def stalled_seconds(self) -> float:
        """How long the event loop may stand still."""
        return STALLED_SECONDS

    def trouble(self) -> str:
        """Why this process must be restarted; empty while it need not be."""
        silent, most = self.silent(), self.stalled_seconds()
        if silent > most:
            return f"the event loop has not turned for {silent:.0f} s; expected at most {most:.0f} s"
        dead = [report.name for report in self.reports() if report.state is ServiceState.STOPPED]
        return f"{', '.join(dead)}: ended although nobody ended it" if dead else ""

    def text(self) -> str:
        """The metrics, the duties of the moment included."""
        reports = self.reports()
        for family, value in (
            (self._duties.up, lambda report: float(report.state is ServiceState.RUNNING)),
            (self._duties.restarts, lambda report: report.restarts),
            (self._duties.rounds, lambda report: report.rounds),
            (self._duties.round_age, lambda report: round(report.round_age, 3)),
        ):
            self.metrics.replace(family, {(report.name,): value(report) for report in reports})
        return self.metrics.text()


def standing(reports: Iterable[ServiceReport], seconds: float) -> str:
    """The duties that have been in one round for longer than this; empty when there are none."""
    found = [report for report in reports if report.round_age > seconds]
    return "; ".join(f"{each.name}: in one round for {each.round_age:.0f} s" for each in found)


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
