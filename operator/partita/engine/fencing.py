"""From submissions to events: only what its fence allows has happened.

Invariant: called after the runs were locked; each lease, timer, ready or inbox row makes at most one event, whoever
else claims it. A report without its lease is answered from the history: recorded before, or stale.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final, TypeVar
from uuid import UUID

from partita.domain.payload import NULL
from partita.domain.state.events import (
    AttemptTimedOut,
    DeadlineReached,
    Event,
    LateResult,
    LeaseLost,
    Reply,
    ScheduleToStartExpired,
    TaskCompleted,
    TaskFailed,
    TimerDue,
)
from partita.domain.state.rows import TERMINAL, RunRow, TimerKind
from partita.engine.requests import ClaimedTask, Report, ReportReply
from partita.engine.submissions import Happening, LeaseEnded, ReadyExpired, Reported, Submission, TimerFell
from partita.engine.turns import EarlierFirstError, Turn
from partita.store import fences
from partita.store.database import Connection
from partita.store.fences import (
    Demand,
    EndedLease,
    EndedLeases,
    HandedOn,
    LeaseFence,
    ReadyFence,
    RecordedAttempt,
    TimerFence,
)
from partita.store.slices import Loaded
from partita.store.sql import Sql

S = TypeVar("S", bound=Submission)
STALE = Reply("stale")
_Reports = list[tuple[Turn, Reported]]
_NO_LEASE: Final = EndedLease(0, "", datetime.min.replace(tzinfo=UTC))


async def fence(
    connection: Connection, sql: Sql, turns: Sequence[Turn], loaded: Loaded, ended: EndedLeases | None = None
) -> None:
    """Give each turn its event or its answer. While the engine is paused no timer falls due.

    ``ended``: leases of reports that this transaction has ended already.
    """
    paused = loaded.paused
    happenings = _of(turns, Happening)
    for turn, unfenced in happenings:
        if unfenced.inbox_id is None:
            turn.event = unfenced.event
    await _ready(connection, sql, _of(turns, ReadyExpired), paused=paused)
    await _leases(connection, sql, turns, loaded, ended or {})
    await _timers(connection, sql, _of(turns, TimerFell), paused=paused)
    await _inbox(connection, sql, [pair for pair in happenings if pair[1].inbox_id is not None])


def _of(turns: Sequence[Turn], kind: type[S]) -> list[tuple[Turn, S]]:
    return [(turn, one) for turn in turns if isinstance(one := turn.submission, kind)]


async def _ready(connection: Connection, sql: Sql, pairs: list[tuple[Turn, ReadyExpired]], *, paused: bool) -> None:
    if not pairs:
        return
    wanted = [] if paused else [ReadyFence.of(one.run_id, one.key, one.attempt, one.ready) for _, one in pairs]
    won = await fences.expire_ready(connection, sql, wanted) if wanted else set()
    for turn, one in pairs:
        place = (one.run_id, one.key.node, one.key.index, one.attempt)
        if place in won:
            won.discard(place)
            turn.event = ScheduleToStartExpired(node=one.key.node, index=one.key.index, attempt=one.attempt)
        else:
            turn.settle(STALE)


def fence_of(report: Report) -> LeaseFence:
    """The lease that a report ends."""
    return LeaseFence(report.run_id, report.node, report.index, report.attempt, report.lease_id, Demand.WORKER)


def supposed(report: Report) -> Event:
    """The event that a report will be if its lease is there, but for what only the lease tells."""
    return _reported(report, _NO_LEASE)


async def _leases(connection: Connection, sql: Sql, turns: Sequence[Turn], loaded: Loaded, won: EndedLeases) -> None:
    reports, endings = _of(turns, Reported), _of(turns, LeaseEnded)
    wanted = [fence_of(one.report) for _, one in reports if _place(one.report) not in won]
    wanted += [LeaseFence(e.run_id, e.key.node, e.key.index, e.attempt, e.lease_id, e.demand) for _, e in endings]
    if wanted:
        won = won | await fences.end_leases(connection, sql, wanted)
    lost: list[tuple[Turn, Reported]] = []
    for turn, reported in reports:
        report = reported.report
        lease = won.pop(_place(report), None)
        if lease is not None:
            turn.event = _reported(report, lease)
        else:
            lost.append((turn, reported))
    _ended(endings, won)
    if lost:
        await _answer_late(connection, sql, _not_sent_twice(lost, reports), loaded)


def _place(report: Report) -> tuple[UUID, str, int, UUID]:
    """The key of the lease that a report ends."""
    return report.run_id, report.node, report.index, report.lease_id


def _not_sent_twice(lost: _Reports, reports: _Reports) -> _Reports:
    """The reports that are late; one that is in this batch twice has just been applied."""
    winners = {reported.report.lease_id for turn, reported in reports if turn.event is not None}
    for turn, reported in lost:
        if reported.report.lease_id in winners:
            turn.settle(ReportReply("already_applied"))
    return [pair for pair in lost if not pair[0].settled]


def _reported(report: Report, lease: EndedLease) -> Event:
    node, index, attempt = report.node, report.index, report.attempt
    worker, since = lease.worker_id, lease.claimed_at
    if report.handed_back:
        return LeaseLost(node=node, index=index, attempt=attempt, worker=worker, started_at=since, handed_back=True)
    if report.error is None:
        output = report.output or NULL
        return TaskCompleted(node, index, attempt, output, worker, since)
    return TaskFailed(
        node=node,
        index=index,
        attempt=attempt,
        error=report.error,
        worker=worker,
        started_at=since,
        retryable=report.retryable,
        retry_after_ms=report.retry_after_ms,
    )


def _ended(pairs: list[tuple[Turn, LeaseEnded]], won: EndedLeases) -> None:
    for turn, one in pairs:
        lease = won.pop((one.run_id, one.key.node, one.key.index, one.lease_id), None)
        if lease is None:
            turn.settle(STALE)
            continue
        kind = AttemptTimedOut if one.demand is Demand.OVERDUE else LeaseLost
        turn.event = kind(
            node=one.key.node,
            index=one.key.index,
            attempt=one.attempt,
            worker=lease.worker_id,
            started_at=lease.claimed_at,
        )


async def _answer_late(connection: Connection, sql: Sql, late: list[tuple[Turn, Reported]], loaded: Loaded) -> None:
    """Reports whose lease is gone: recorded before (then with the task that was handed on), or stale. While the run
    goes on the first one of an attempt becomes an event, as it may be the late result of a cancelled node."""
    if not late:
        return
    reports = [reported.report for _, reported in late]
    asked = [(r.run_id, r.generation, r.node, r.index, r.attempt, r.worker_id) for r in reports]
    recorded = await fences.recorded_attempts(connection, sql, asked)
    known: list[tuple[Turn, Reported]] = []
    for turn, reported in late:
        r = reported.report
        place = RecordedAttempt(r.run_id, r.node, r.index, r.attempt, r.worker_id)
        if place in recorded and not recorded[place]:
            turn.settle(ReportReply("already_applied"))
            if reported.offer is not None:
                known.append((turn, reported))
        elif place not in recorded and _may_be_recorded(r, loaded.runs[r.run_id].row):
            recorded[place] = True
            turn.event = _late_result(r)
        else:
            turn.settle(ReportReply("stale"))
    if not known:
        return
    requests = [(reported.run_id, reported.report.request_id) for _, reported in known]
    handed = await fences.handed_on(connection, sql, requests)
    for turn, reported in known:
        task = handed.get(reported.report.request_id)
        if task is not None:
            turn.settle(ReportReply("already_applied", _claimed(reported.run_id, task)))


def _may_be_recorded(report: Report, run: RunRow) -> bool:
    return run.status not in TERMINAL and run.generation == report.generation and not report.handed_back


def _late_result(report: Report) -> LateResult:
    return LateResult(
        node=report.node,
        index=report.index,
        attempt=report.attempt,
        worker=report.worker_id,
        output=report.output,
        error=report.error,
    )


def _claimed(run_id: UUID, task: HandedOn) -> ClaimedTask:
    return ClaimedTask(
        run_id=run_id,
        generation=task.generation,
        node=task.node,
        index=task.index,
        attempt=task.attempt,
        lease_id=task.lease_id,
        type=task.type,
        queue=task.queue,
        namespace=task.namespace,
        input=task.input,
        deadline=task.deadline_at,
        timeout_ms=round((task.deadline_at - task.claimed_at).total_seconds() * 1000),
    )


async def _timers(connection: Connection, sql: Sql, pairs: list[tuple[Turn, TimerFell]], *, paused: bool) -> None:
    if not pairs:
        return
    wanted = [TimerFence(one.run_id, one.timer.kind.value, one.timer.node, one.timer.index) for _, one in pairs]
    won = set() if paused else await fences.fire_timers(connection, sql, wanted)
    for (turn, one), place in zip(pairs, wanted, strict=True):
        if place not in won:
            turn.settle(STALE)
            continue
        won.discard(place)
        timer = one.timer
        if timer.kind is TimerKind.DEADLINE:
            turn.event = DeadlineReached()
        else:
            turn.event = TimerDue(kind=timer.kind, node=timer.node, index=timer.index)


async def _inbox(connection: Connection, sql: Sql, pairs: list[tuple[Turn, Happening]]) -> None:
    """Rows of inboxes that are still there; messages only as the first of their run, whoever delivers the others."""
    if not pairs:
        return
    messages = [(one.run_id, one.inbox_id) for _, one in pairs if one.is_message and one.inbox_id is not None]
    blocked = await fences.out_of_turn(connection, sql, messages) if messages else set()
    ids = [one.inbox_id for _, one in pairs if one.inbox_id is not None and one.inbox_id not in blocked]
    taken = await fences.take_inbox(connection, sql, ids) if ids else set()
    for turn, one in pairs:
        if one.inbox_id in taken:
            taken.discard(one.inbox_id)
            turn.event = one.event
        elif one.inbox_id in blocked:
            turn.settle(EarlierFirstError(one.run_id))
        else:
            turn.settle(STALE)
