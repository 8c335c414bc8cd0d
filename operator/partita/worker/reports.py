"""Tells the engine how an attempt ended, for as long as it takes.

Invariant: a report is made once and sent, unchanged, until it is answered, so that it counts once whatever gets lost on
the way. While the database is away the attempt stays held and its slot taken.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Final, Protocol
from uuid import uuid4

from partita.domain.errors import PartitaError, UnavailableError
from partita.domain.state.rows import ErrorInfo
from partita.engine.requests import ClaimedTask, Offer, Report, ReportReply
from partita.engine.service import Clock, SystemClock
from partita.engine.supervisor import Backoff
from partita.worker.attempts import Abandoned, HandedBack, Outcome, Succeeded
from partita.worker.failures import Failure

log = logging.getLogger(__name__)

REPORT_REFUSED: Final = "report_refused"


class Recorder(Protocol):
    """The part of the engine that records attempts."""

    async def report(self, report: Report, offer: Offer | None = None) -> ReportReply:
        """Record the end of an attempt."""
        ...


class Reporter:
    """Sends the reports of one worker."""

    def __init__(self, engine: Recorder, worker_id: str, *, clock: Clock | None = None) -> None:
        self._engine = engine
        self._worker_id = worker_id
        self._clock: Clock = clock or SystemClock()
        self._backoff = Backoff()
        self._gone = asyncio.Event()

    def give_up(self) -> None:
        """Send nothing again: the process ends."""
        self._gone.set()

    async def report(self, task: ClaimedTask, outcome: Outcome, offer: Offer | None) -> ClaimedTask | None:
        """Report an attempt; returns the task that came with the answer."""
        if isinstance(outcome, Abandoned):
            log.info("run %s task %s attempt %d: %s", task.run_id, task.node, task.attempt, outcome.reason)
            return None
        try:
            reply = await self._send(self._made(task, outcome), offer)
        except PartitaError as error:
            if isinstance(error, UnavailableError):
                log.warning("run %s task %s: its end was not recorded: %s", task.run_id, task.node, error)
                return None
            await self._refused(task, error)
            return None
        if reply.outcome == "stale":
            log.warning("run %s task %s attempt %d: ended here too late", task.run_id, task.node, task.attempt)
        return reply.next

    async def _refused(self, task: ClaimedTask, error: PartitaError) -> None:
        """The engine cannot store what the task returned: that is how the attempt failed."""
        log.error("run %s task %s: the engine refused its result: %s", task.run_id, task.node, error)
        failure = Failure(ErrorInfo(REPORT_REFUSED, error.message[:4096]))
        try:
            await self._send(self._made(task, failure), None)
        except PartitaError as again:
            log.warning("run %s task %s: nor could that be recorded: %s", task.run_id, task.node, again)

    async def _send(self, report: Report, offer: Offer | None) -> ReportReply:
        failures = 0
        while True:
            try:
                return await self._engine.report(report, offer)
            except UnavailableError as error:
                failures += 1
                if failures == 1:
                    log.warning("run %s task %s: %s; its report is sent again", report.run_id, report.node, error)
                if await self._clock.wait(self._gone, self._backoff.pause(failures)):
                    raise

    def _made(self, task: ClaimedTask, outcome: Succeeded | Failure | HandedBack) -> Report:
        failed = outcome if isinstance(outcome, Failure) else None
        return Report(
            run_id=task.run_id,
            generation=task.generation,
            node=task.node,
            index=task.index,
            attempt=task.attempt,
            lease_id=task.lease_id,
            worker_id=self._worker_id,
            request_id=uuid4(),
            output=outcome.output if isinstance(outcome, Succeeded) else None,
            error=failed.error if failed else None,
            retryable=failed.retryable if failed else False,
            retry_after_ms=failed.retry_after_ms if failed else None,
            handed_back=isinstance(outcome, HandedBack),
        )
