"""The coordinator: everything that changes runs in this process, committed in groups.

Purpose: turns calls into submissions and spreads them over lanes by run id. Invariant: submissions of one run share a
lane, so that this process never competes with itself for a run; each call returns after the commit. Trade-off: with
two lanes one transaction is decided while another commits; one lane, the default, has larger and fewer transactions.
"""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any, TypedDict, cast
from uuid import UUID

from partita.domain.state.effects import TimerKey
from partita.domain.state.events import Event, Reply
from partita.domain.state.rows import NodeKey, ReadyKey
from partita.domain.state.slices import Limits
from partita.engine.batch import Tools
from partita.engine.bulk import Bulk
from partita.engine.definitions import Definitions
from partita.engine.eager import IdleWorkers
from partita.engine.known_runs import KnownRuns
from partita.engine.lane import Lane
from partita.engine.memory import Memory
from partita.engine.notices import Notices
from partita.engine.prepared import Prepared
from partita.engine.requests import Offer, Report, ReportReply, StartReply, StartRequest, Version
from partita.engine.submissions import (
    Happening,
    LeaseEnded,
    ReadyExpired,
    Reported,
    Start,
    Submission,
    TimerFell,
)
from partita.engine.transactor import Transactor
from partita.engine.urgency import Urgency
from partita.settings import Settings
from partita.store.database import Database
from partita.store.fences import Demand
from partita.store.writes import ProjectionDelays


class _Common(TypedDict):
    """What every submission has."""

    run_id: UUID
    future: asyncio.Future[Any]
    expires: float


class Coordinator:
    """One process's transactions on runs."""

    def __init__(self, database: Database, settings: Settings, definitions: Definitions) -> None:
        self.notices = Notices()
        self.idle = IdleWorkers()
        """Workers of this process that take what becomes ready at once."""
        self._patience = settings.database.patience_ms / 1000
        self._tools = Tools(
            database.sql,
            database.months,
            settings,
            limits_of(settings),
            ProjectionDelays(
                timedelta(milliseconds=settings.operator.project_delay_ms),
                timedelta(milliseconds=settings.operator.progress_interval_ms),
            ),
            definitions,
            self.notices,
            Urgency(),
            KnownRuns(definitions),
            self.idle,
            Memory(),
        )
        self._patient = Transactor(self._tools, database.dedicated("coordinator-waiting"))
        self.bulk = Bulk(self._tools, database)
        """For starts that come by the hundred."""
        self._lanes = tuple(
            Lane(Transactor(self._tools, database.dedicated(f"coordinator-{number}")), self._patient, settings.engine)
            for number in range(settings.engine.lanes)
        )

    def open(self) -> None:
        """Begin to work, on the running event loop."""
        for lane in self._lanes:
            lane.open()

    async def close(self) -> None:
        """Settle what was accepted, refuse what comes later, give the connections back."""
        for lane in self._lanes:
            await lane.close()
        await self.bulk.close()
        await self._patient.close()

    @property
    def waiting(self) -> int:
        """Submissions that no transaction has taken yet."""
        return sum(lane.waiting for lane in self._lanes)

    @property
    def transactions(self) -> int:
        """Transactions begun so far."""
        apart = self._patient.transactions + self.bulk.transactions
        return apart + sum(lane.transactions for lane in self._lanes)

    async def start(
        self,
        request: StartRequest,
        version: Version,
        prepared: Prepared,
        *,
        inbox_id: int | None = None,
        decided: bool = False,
    ) -> StartReply | None:
        """Start a run of this version; None when it is no longer the one to start, unless it is ``decided``."""
        one = self.prepared_start(request, version, prepared)
        one.inbox_id, one.decided = inbox_id, decided
        return cast("StartReply | None", await self._submit(one))

    def prepared_start(self, request: StartRequest, version: Version, prepared: Prepared) -> Start:
        """A start as a submission, whose time begins now."""
        loop = asyncio.get_running_loop()
        return Start(
            run_id=prepared.event.run_id,
            future=loop.create_future(),
            expires=loop.time() + self._patience,
            request=request,
            version=version,
            input=prepared.event.input,
            input_hash=prepared.input_hash,
            event=prepared.event,
            keys=prepared.keys,
        )

    async def apply(self, run_id: UUID, event: Event) -> Reply:
        """Let an event happen that nothing fences: a signal or a control."""
        return cast("Reply", await self._submit(Happening(**self._common(run_id), event=event)))

    async def report(self, report: Report, offer: Offer | None = None) -> ReportReply:
        """Record the end of an attempt, if its lease is still there."""
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[ReportReply] = loop.create_future()
        expires = loop.time() + self._patience
        self._put(Reported(report.run_id, answer, expires, report, offer))  # by position: by name it takes 1 µs more
        return await answer

    async def inbox_row(self, inbox_id: int, run_id: UUID, event: Event) -> Reply:
        """Apply a row of a run's inbox, if it is still there; the row goes with its effects."""
        one = Happening(**self._common(run_id), event=event, inbox_id=inbox_id)
        return cast("Reply", await self._submit(one))

    async def timer_due(self, run_id: UUID, timer: TimerKey) -> Reply:
        """Fire a timer, if it is still there and due by the database's clock."""
        return cast("Reply", await self._submit(TimerFell(**self._common(run_id), timer=timer)))

    async def lease_lost(self, run_id: UUID, key: NodeKey, attempt: int, lease_id: UUID) -> Reply:
        """Take an attempt from a worker, if the worker's time has run out."""
        return await self._end_lease(run_id, key, attempt, lease_id, Demand.WORKER_GONE)

    async def lease_returned(self, run_id: UUID, key: NodeKey, attempt: int, lease_id: UUID) -> Reply:
        """End a lease that its live worker does not know of; it counts as lost."""
        return await self._end_lease(run_id, key, attempt, lease_id, Demand.WORKER)

    async def attempt_timed_out(self, run_id: UUID, key: NodeKey, attempt: int, lease_id: UUID) -> Reply:
        """End an attempt, if its deadline has passed."""
        return await self._end_lease(run_id, key, attempt, lease_id, Demand.OVERDUE)

    async def _end_lease(self, run_id: UUID, key: NodeKey, attempt: int, lease_id: UUID, demand: Demand) -> Reply:
        one = LeaseEnded(**self._common(run_id), demand=demand, key=key, attempt=attempt, lease_id=lease_id)
        return cast("Reply", await self._submit(one))

    async def schedule_to_start_expired(self, run_id: UUID, key: NodeKey, attempt: int, ready: ReadyKey) -> Reply:
        """Fail an attempt that nobody claimed in time, if its ready row is still there and has expired."""
        one = ReadyExpired(**self._common(run_id), key=key, attempt=attempt, ready=ready)
        return cast("Reply", await self._submit(one))

    def _common(self, run_id: UUID) -> _Common:
        loop = asyncio.get_running_loop()
        return {"run_id": run_id, "future": loop.create_future(), "expires": loop.time() + self._patience}

    async def _submit(self, submission: Submission) -> object:
        self._put(submission)
        return await submission.future

    def _put(self, submission: Submission) -> None:
        self._lanes[submission.run_id.int % len(self._lanes)].put(submission)


def limits_of(settings: Settings) -> Limits:
    """The bounds that decisions obey."""
    return Limits(
        output_bytes=settings.limits.output_bytes,
        attempt_timeout_ms=settings.limits.attempt_timeout_ms,
        lost_leases=settings.engine.lost_leases,
        unknown_types=settings.engine.unknown_types,
        asked_retries=settings.engine.asked_retries,
        signals_buffered=settings.limits.signals_buffered,
        signals_bytes=settings.limits.signals_bytes,
        child_depth=settings.limits.child_depth,
        loop_items=settings.limits.loop_items,
        loop_chunk=settings.engine.loop_chunk,
        drain_ms=settings.engine.drain_ms,
        undo_tries=settings.engine.undo_tries,
    )
