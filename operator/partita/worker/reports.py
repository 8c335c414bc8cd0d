"""Tells the engine how an attempt ended, for as long as it takes.

Invariant: a report is made once and sent, unchanged, until it is answered, so that it counts once whatever gets lost on
the way. While the database is away the attempt stays held and its slot taken. Only a result that cannot be stored fails
the attempt; a defect of the engine spends nothing of the user's: the report is sent again, with growing pauses, while
the lease is held, and at last dropped, after which the lease counts as lost.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import replace
from typing import Final, Protocol
from uuid import UUID

from partita.domain.errors import InvalidError, OutdatedError, PartitaError, UnavailableError
from partita.domain.state.rows import ErrorInfo
from partita.engine.requests import ClaimedTask, Offer, Report, ReportReply
from partita.engine.service import Clock, SystemClock
from partita.engine.supervisor import Backoff
from partita.worker.attempts import Abandoned, HandedBack, Outcome, Succeeded
from partita.worker.failures import Failure
from partita.worker.tally import Tally

log = logging.getLogger(__name__)

REPORT_REFUSED: Final = "report_refused"
UNRECORDED: Final = "unrecorded"
"""How a report without an answer is counted."""
DEFECT_TRIES: Final = 60
"""How often a report is sent although the engine fails at it: about five minutes, with its pauses."""


class Recorder(Protocol):
    """The part of the engine that records attempts."""

    async def report(self, report: Report, offer: Offer | None = None) -> ReportReply:
        """Record the end of an attempt."""
        ...


class Reporter:
    """Sends the reports of one worker."""

    def __init__(
        self, engine: Recorder, worker_id: str, *, tally: Tally | None = None, clock: Clock | None = None
    ) -> None:
        self._engine = engine
        self._answers = (tally or Tally()).reports
        self._worker_id = worker_id
        self._clock: Clock = clock or SystemClock()
        self._backoff = Backoff()
        self._gone = asyncio.Event()
        self._lost: set[UUID] = set()
        """Leases that are gone, of those whose report may not have been answered."""

    def lease_gone(self, lease_id: UUID) -> None:
        """The lease is no longer this worker's: a report that the engine cannot take need not be sent again."""
        self._lost.add(lease_id)

    def give_up(self) -> None:
        """Send nothing again: the process ends."""
        self._gone.set()

    async def report(self, task: ClaimedTask, outcome: Outcome, offer: Offer | None) -> ClaimedTask | None:
        """Report an attempt; returns the task that came with the answer."""
        if isinstance(outcome, Abandoned):
            self._lost.discard(task.lease_id)
            log.info("run %s task %s attempt %d: %s", task.run_id, task.node, task.attempt, outcome.reason)
            return None
        try:
            reply = await self._send(self._made(task, outcome), offer)
        except InvalidError as error:
            await self._refused(task, error)
            return None
        except PartitaError as error:
            self._answers[UNRECORDED] += 1
            log.warning("run %s task %s: its end was not recorded: %s", task.run_id, task.node, error)
            return None
        finally:
            if self._lost:
                self._lost.discard(task.lease_id)
        self._answers[reply.outcome] += 1
        if reply.outcome == "stale":
            log.warning("run %s task %s attempt %d: ended here too late", task.run_id, task.node, task.attempt)
        return reply.next

    async def _refused(self, task: ClaimedTask, error: InvalidError) -> None:
        """The engine cannot store what the task returned: that is how the attempt failed."""
        log.error("run %s task %s: the engine refused its result: %s", task.run_id, task.node, error)
        failure = Failure(ErrorInfo(REPORT_REFUSED, error.message[:4096]))
        try:
            reply = await self._send(self._made(task, failure), None)
            self._answers[reply.outcome] += 1
        except PartitaError as again:
            self._answers[UNRECORDED] += 1
            log.warning("run %s task %s: nor could that be recorded: %s", task.run_id, task.node, again)

    async def _send(self, report: Report, offer: Offer | None) -> ReportReply:
        failures = 0
        while True:
            try:
                return await self._engine.report(report, offer)
            except (InvalidError, OutdatedError):
                raise
            except PartitaError as error:
                failures += 1
                if failures == 1:
                    log.warning("run %s task %s: %s; its report is sent again", report.run_id, report.node, error)
                if await self._clock.wait(self._gone, self._backoff.pause(failures)):
                    raise
                if not isinstance(error, UnavailableError) and (
                    failures >= DEFECT_TRIES or report.lease_id in self._lost
                ):
                    raise

    def _made(self, task: ClaimedTask, outcome: Succeeded | Failure | HandedBack) -> Report:
        """The report of an attempt; its lease, which ends with it, names the report."""
        report = Report(  # by position: by name it takes 1 µs more
            task.run_id,
            task.generation,
            task.node,
            task.index,
            task.attempt,
            task.lease_id,
            self._worker_id,
            task.lease_id,
            outcome.output if isinstance(outcome, Succeeded) else None,
        )
        if isinstance(outcome, Succeeded):
            return report
        if isinstance(outcome, HandedBack):
            return replace(report, handed_back=True)
        return replace(report, error=outcome.error, retryable=outcome.retryable, retry_after_ms=outcome.retry_after_ms)
