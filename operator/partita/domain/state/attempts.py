"""What happens to a task's attempt: it completes, fails, is lost, times out, or is never taken.

Invariant: only the attempt that the row counts can change the row, so that a late or repeated report changes nothing.
Each attempt that was spent leaves one line of history; one that was handed back is not spent and leaves none.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Final, NamedTuple

from partita.domain.error_types import EXPRESSION, LEASE_LOST, SCHEDULE_TO_START, TIMEOUT, UNKNOWN_TASK_TYPE
from partita.domain.expressions import ExpressionError
from partita.domain.state.draft import Draft
from partita.domain.state.edges import propagate
from partita.domain.state.events import (
    AttemptTimedOut,
    LeaseLost,
    Reply,
    ScheduleToStartExpired,
    TaskCompleted,
    TaskFailed,
)
from partita.domain.state.failing import fail, oversize, while_handling
from partita.domain.state.launching import enqueue
from partita.domain.state.plan import NodePlan
from partita.domain.state.retry import LOST, Again, after_unknown_type, jitter_share, next_try, undo_tier
from partita.domain.state.rows import ErrorInfo, NodeState, TaskRow, TimerKind
from partita.domain.state.scope import choices, error_view
from partita.domain.state.undo import draining, unknown

STALE = Reply("stale")


class Asked(NamedTuple):
    """Whether a worker asked for a retry, and when."""

    asked: bool
    after_ms: int | None


_LOST: Final = ErrorInfo(LEASE_LOST, "the worker stopped renewing its lease on the task")
_NOT_ASKED: Final = Asked(asked=False, after_ms=None)

AttemptEvent = TaskCompleted | TaskFailed | LeaseLost | AttemptTimedOut | ScheduleToStartExpired


def _current(draft: Draft, event: AttemptEvent) -> tuple[NodePlan, TaskRow] | None:
    """The node and its row if the event is about its current attempt. Raises Lacking."""
    plan = draft.plan.nodes.get(event.node)
    if plan is not None and not draft.terminal:
        row = draft.row(plan.key_of(event.index))
        if row is not None and row.state is NodeState.QUEUED and row.attempt == event.attempt:
            return plan, row
    draft.reply(STALE)
    return None


def task_completed(draft: Draft, event: TaskCompleted) -> None:
    """The attempt succeeded. Raises Lacking."""
    current = _current(draft, event)
    if current is None:
        return
    plan, row = current
    error = oversize(draft, event.output, "output")
    if error is not None:
        spent(draft, plan, row, "TaskFailed", error, worker=event.worker, started_at=event.started_at)
        return
    draft.begin()
    key = plan.key_of(row.index)
    draft.note("TaskCompleted", key=key, attempt=event.attempt, who=event.worker, started_at=event.started_at)
    draft.complete(plan, draft.image(plan, row), event.output)
    propagate(draft)


def task_failed(draft: Draft, event: TaskFailed) -> None:
    """The attempt failed. Raises Lacking."""
    current = _current(draft, event)
    if current is not None:
        asked = Asked(event.retryable, event.retry_after_ms)
        spent(draft, *current, "TaskFailed", event.error, worker=event.worker, started_at=event.started_at, asked=asked)


def attempt_timed_out(draft: Draft, event: AttemptTimedOut) -> None:
    """The attempt's deadline passed. Raises Lacking."""
    current = _current(draft, event)
    if current is None:
        return
    plan, row = current
    error = ErrorInfo(TIMEOUT, "the attempt did not end within its timeout")
    if draining(draft, plan):
        draft.begin()
        _outcome_unknown(draft, plan, draft.image(plan, row), "AttemptTimedOut", event, error)
    else:
        spent(draft, plan, row, "AttemptTimedOut", error, worker=event.worker, started_at=event.started_at)


def _outcome_unknown(
    draft: Draft, plan: NodePlan, image: TaskRow, name: str, event: LeaseLost | AttemptTimedOut, error: ErrorInfo
) -> None:
    """An attempt that undo waits for has lapsed. Raises Lacking."""
    draft.note(name, key=image.key, attempt=event.attempt, who=event.worker, started_at=event.started_at, error=error)
    unknown(draft, plan, image, error)
    propagate(draft)


def schedule_to_start_expired(draft: Draft, event: ScheduleToStartExpired) -> None:
    """No worker took the attempt in time. Raises Lacking."""
    current = _current(draft, event)
    if current is not None:
        error = ErrorInfo(SCHEDULE_TO_START, "no worker took the task within scheduleToStart")
        spent(draft, *current, "ScheduleToStartExpired", error)


def lease_lost(draft: Draft, event: LeaseLost) -> None:
    """The worker let the attempt go: on purpose (it is queued again, unspent) or not (own budget). Raises Lacking."""
    current = _current(draft, event)
    if current is None:
        return
    plan, row = current
    draft.begin()
    image = draft.image(plan, row)
    if draining(draft, plan):
        _outcome_unknown(draft, plan, image, "LeaseLost", event, _LOST)
        return
    if not event.handed_back:
        used = row.retries.get(LOST, 0)
        error = _LOST
        draft.note(
            "LeaseLost", key=row.key, attempt=event.attempt, who=event.worker, started_at=event.started_at, error=error
        )
        image.error = error
        image.first_failed_at = row.first_failed_at or draft.now
        if used >= draft.limits.lost_leases:
            fail(draft, plan, image, error)
            propagate(draft)
            return
        image.retries = {**row.retries, LOST: used + 1}
    try_again(draft, plan, image, spent=not event.handed_back)


def try_again(draft: Draft, plan: NodePlan, image: TaskRow, *, spent: bool = True) -> None:
    """Queue the next attempt, or the same one if it was not spent. Raises Lacking.

    A timeout that cannot be evaluated any more is the node's failure.
    """
    image.attempt += spent
    try:
        enqueue(draft, plan, image)
    except ExpressionError as error:
        fail(draft, plan, image, ErrorInfo(EXPRESSION, error.message))
    propagate(draft)


def spent(
    draft: Draft,
    plan: NodePlan,
    row: TaskRow,
    name: str,
    error: ErrorInfo,
    *,
    worker: str = "",
    started_at: datetime | None = None,
    asked: Asked | None = None,
    details: Mapping[str, object] | None = None,
) -> None:
    """The row's attempt (``row``: stored) is spent without success: one line of history, then a retry or the node's
    failure. Raises Lacking.
    """
    draft.begin()
    image = draft.image(plan, row)
    again: Again | None = None
    final = error
    try:
        again = _retry(draft, plan, row, error, asked or _NOT_ASKED)
    except ExpressionError as problem:
        final = while_handling(problem, "retry", error)
    if again is not None:
        details = {**(details or {}), "retryInMs": again.delay_ms}
    draft.note(name, key=row.key, attempt=row.attempt, who=worker, started_at=started_at, error=error, details=details)
    image.first_failed_at = row.first_failed_at or draft.now
    if again is None:
        fail(draft, plan, image, final)
        propagate(draft)
    else:
        image.error = error
        _wait_and_retry(draft, plan, image, again)


def _wait_and_retry(draft: Draft, plan: NodePlan, image: TaskRow, again: Again) -> None:
    image.retries = again.retries
    if image.detail is not None and image.detail.child is not None:
        image.detail = replace(image.detail, child=None)
    if again.delay_ms <= 0:
        try_again(draft, plan, image)
    else:
        draft.activate(image, NodeState.WAITING)
        draft.set_timer(TimerKind.BACKOFF, plan.name, again.delay_ms, image.index)


def backoff_over(draft: Draft, plan: NodePlan, row: TaskRow) -> None:
    """The node's backoff has ended. Raises Lacking."""
    try_again(draft, plan, draft.image(plan, row))


def _retry(draft: Draft, plan: NodePlan, row: TaskRow, error: ErrorInfo, asked: Asked) -> Again | None:
    if draining(draft, plan):
        return None
    if error.type == UNKNOWN_TASK_TYPE and plan.kind == "task":  # a child has used its budget already
        again = after_unknown_type(row.retries, draft.limits.unknown_types)
        if again is not None:
            return again
    tiers = plan.node.retry
    if not tiers and plan.undoes is not None:
        tiers = (undo_tier(draft.limits.undo_tries),)
    if not tiers and not asked.asked:
        return None
    holds = choices(draft, plan, row, error=error_view(error))
    return next_try(
        tiers,
        row.retries,
        error,
        asked=asked.asked,
        after_ms=asked.after_ms,
        asked_limit=draft.limits.asked_retries,
        now=draft.now,
        share=jitter_share(draft.run.id, plan.name, row.index, row.attempt),
        holds=lambda tier: holds(tier.when),
    )
