"""Suspend, resume and cancel, from a caller or from the edges of a WorkflowRun object's controls.

Invariant: while a run is suspended nothing new starts and no time passes for it; attempts in flight finish. A control
that finds what it asks for already done changes nothing. Controls of an object act where they differ from what was
applied before, so that the object and direct callers do not undo each other's wishes.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from partita.domain.error_types import CANCELLED, EXPRESSION
from partita.domain.expressions import ExpressionError
from partita.domain.state.children import tell_children
from partita.domain.state.draft import Draft
from partita.domain.state.edges import propagate
from partita.domain.state.effects import TimerKey
from partita.domain.state.ending import CANCEL_REQUESTED, end_run
from partita.domain.state.events import CancelRequested, ControlsApplied, Reply, ResumeRequested, SuspendRequested
from partita.domain.state.failing import fail
from partita.domain.state.launching import enqueue
from partita.domain.state.mailbox import CONSUMED, RUN_FINISHED, receive
from partita.domain.state.node_cancels import cancel_nodes
from partita.domain.state.parking import in_order, start_parked
from partita.domain.state.reading import Lacking
from partita.domain.state.rows import (
    FROZEN,
    ErrorInfo,
    NodeState,
    RunStatus,
    Stage,
    TaskRow,
    TimerKind,
    TimerRow,
    coming,
)

RUN_ENDING: Final = "RunEnding"
_ALREADY = Reply("already_applied")


def _refused(draft: Draft) -> Reply:
    return Reply("refused", RUN_FINISHED, f"the run has ended: {draft.run.status.value}")


def milliseconds(duration: timedelta) -> int:
    """Whole milliseconds of a duration, 0 if it is negative."""
    return max(0, duration // timedelta(milliseconds=1))


def suspend(draft: Draft, event: SuspendRequested) -> None:
    """Start nothing new, and freeze waits, backoffs and the deadline. Raises Lacking."""
    if draft.terminal or draft.suspended:
        draft.reply(_refused(draft) if draft.terminal else _ALREADY)
        return
    timers = draft.timers()
    draft.unsettled()  # the rows name the ready rows to withdraw
    run = draft.begin()
    draft.note("SuspendRequested", who=event.by)
    run.status = RunStatus.SUSPENDED
    if run.deadline_at is not None:
        run.deadline_remaining_ms = milliseconds(run.deadline_at - draft.now)
        run.deadline_at = None
    for timer in timers:
        if timer.kind is not TimerKind.START:
            left = milliseconds(timer.fire_at - draft.now)
            draft.effects.timers[TimerKey(timer.kind, timer.node, timer.index)] = TimerRow(
                timer.kind, timer.node, timer.index, FROZEN, left
            )
    draft.effects.withdraw = True
    tell_children(draft, SuspendRequested(by=f"run {run.id}"))
    draft.visible(urgent=True)


def resume(draft: Draft, event: ResumeRequested) -> None:
    """Go on with the time that was left. Raises Lacking."""
    if draft.terminal or not draft.suspended:
        draft.reply(_refused(draft) if draft.terminal else _ALREADY)
        return
    run = draft.begin()
    draft.note("ResumeRequested", who=event.by)
    draft.visible(urgent=True)
    if run.started_at is None:
        run.status = RunStatus.PENDING
        return
    run.status = RunStatus.RUNNING
    if run.deadline_remaining_ms is not None:
        run.deadline_at = _from_now(draft, run.deadline_remaining_ms)
        run.deadline_remaining_ms = None
        _run_timer(draft, TimerKind.DEADLINE, "", run.deadline_at)
    for timer in draft.timers():
        if timer.remaining_ms is not None and timer.kind is not TimerKind.DEADLINE:
            _run_timer(draft, timer.kind, timer.node, _from_now(draft, timer.remaining_ms), timer.index)
    tell_children(draft, ResumeRequested(by=f"run {run.id}"))
    _restart_nodes(draft)
    propagate(draft)


def _from_now(draft: Draft, millis: int) -> datetime:
    return draft.now + timedelta(milliseconds=millis)


def _run_timer(draft: Draft, kind: TimerKind, node: str, fire_at: datetime, index: int = 0) -> None:
    draft.effects.timers[TimerKey(kind, node, index)] = TimerRow(kind, node, index, fire_at)


def _restart_nodes(draft: Draft) -> None:
    """Start what was parked, and queue again what no worker holds, in the order of the definition."""
    leased = draft.leased()
    for row in in_order(draft):
        if draft.ended:
            return
        try:
            if row.state is NodeState.QUEUED and row.key not in leased:
                _queue_again(draft, row)
            else:
                start_parked(draft, row)
        except Lacking:
            continue


def _queue_again(draft: Draft, row: TaskRow) -> None:
    plan = draft.plan.nodes[row.node]
    image = draft.image(plan, row)
    try:
        enqueue(draft, plan, image)
    except ExpressionError as error:
        fail(draft, plan, image, ErrorInfo(EXPRESSION, error.message))


def cancel(draft: Draft, event: CancelRequested) -> None:
    """End the run as Cancelled, or cancel some of its nodes. Raises Lacking.

    What runs when the run has come to another end already (undo, finally) is stopped by the mode Now only; if it is
    suspended it goes on, since nobody may be left to resume it (a parent that has ended).
    """
    if draft.terminal:
        cancelled = draft.run.status is RunStatus.CANCELLED and not event.nodes
        draft.reply(_ALREADY if cancelled else _refused(draft))
        return
    if event.nodes:
        _cancel_nodes(draft, event)
        return
    now = event.mode == "Now"
    if draft.run.stage is not Stage.MAIN and not now:
        _let_end(draft, event)
        return
    run = draft.begin()
    draft.note("CancelRequested", who=event.by, details={"mode": event.mode, "reason": event.reason})
    if draft.suspended:
        run.status = RunStatus.RUNNING  # so that undo and finally run
    error = ErrorInfo(CANCELLED, event.reason or "the run was cancelled")
    end_run(draft, RunStatus.CANCELLED, CANCEL_REQUESTED, error, at_once=now)
    propagate(draft)


def _cancel_nodes(draft: Draft, event: CancelRequested) -> None:
    if cancel_nodes(draft, event.nodes, reason=event.reason, by=event.by):
        propagate(draft)
    else:
        draft.reply(_ALREADY)


def _let_end(draft: Draft, event: CancelRequested) -> None:
    if draft.suspended:
        resume(draft, ResumeRequested(by=event.by))
    else:
        draft.reply(_ending(draft))


def _ending(draft: Draft) -> Reply:
    status = coming(draft.run)[0]
    if status is RunStatus.CANCELLED:
        return _ALREADY
    return Reply("refused", RUN_ENDING, f"the run is ending: {status.value}, after {draft.run.stage.value}")


def apply_controls(draft: Draft, event: ControlsApplied) -> None:
    """The controls of one generation of the WorkflowRun object. Raises Lacking.

    Suspend and resume come first (so that a signal of the same generation starts nothing in a suspended run), then
    signals, then cancelled nodes, then cancel. The reply's details say what became of each signal.
    """
    run = draft.run
    if event.cr_generation <= run.cr_generation:
        draft.reply(_ALREADY)
        return
    was_suspended, was_cancelled = run.applied_suspend, run.applied_cancel
    run = draft.begin()
    run.cr_generation = event.cr_generation
    run.applied_suspend = event.suspend
    run.applied_cancel = event.cancel is not None
    draft.visible(urgent=True)
    if event.suspend and not was_suspended:
        suspend(draft, SuspendRequested(by="WorkflowRun"))
    elif was_suspended and not event.suspend:
        resume(draft, ResumeRequested(by="WorkflowRun"))
    details = _apply_signals(draft, event)
    if event.cancel_nodes and not draft.terminal and cancel_nodes(draft, event.cancel_nodes, by="WorkflowRun"):
        propagate(draft)
    if event.cancel is not None and not was_cancelled:
        cancel(draft, event.cancel)
    draft.reply(Reply(details=details))


def _apply_signals(draft: Draft, event: ControlsApplied) -> dict[str, str]:
    details: dict[str, str] = {}
    for signal in event.signals:
        reply = receive(draft, signal)
        propagate(draft)
        if reply.outcome == "refused":
            details[signal.id] = f"Refused: {reply.message}"
        elif reply.reason == CONSUMED:
            details[signal.id] = CONSUMED
        else:
            details[signal.id] = "Accepted"
    return details
