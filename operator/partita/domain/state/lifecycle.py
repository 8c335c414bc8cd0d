"""A run's start, its deadline, and its timers falling due.

Invariant: a run's deadline counts from the moment its first nodes may start, not from its creation.
"""

from __future__ import annotations

from datetime import datetime

from partita.domain.error_types import TIMEOUT
from partita.domain.model import Definition
from partita.domain.payload import Payload
from partita.domain.state.attempts import STALE, backoff_over
from partita.domain.state.closing import begin_deadline, drain_over, finally_deadline
from partita.domain.state.controls import apply_controls
from partita.domain.state.draft import Draft
from partita.domain.state.edges import propagate
from partita.domain.state.effects import TimerKey
from partita.domain.state.ending import DEADLINE_EXCEEDED, end_run
from partita.domain.state.events import DeadlineReached, Reply, RunStarted, TimerDue
from partita.domain.state.loops import delay_over
from partita.domain.state.nodes import start
from partita.domain.state.plan import plan_of
from partita.domain.state.reading import Lacking
from partita.domain.state.rows import ErrorInfo, NodeKey, NodeState, RunRow, RunStatus, Stage, TimerKind, TimerRow
from partita.domain.state.waiting import event_timeout

_NULL = Payload("null", None)
_TIMED = {
    TimerKind.WAIT: ("wait",),
    TimerKind.EVENT_TIMEOUT: ("waitForEvent",),
    TimerKind.BACKOFF: ("task", "workflow"),
    TimerKind.DELAY: ("task", "workflow"),
}
"""The kinds of node that each kind of timer belongs to."""


def new_run(event: RunStarted, definition: Definition, now: datetime) -> RunRow:
    """The row of a run that is being started."""
    later = event.start_at is not None and event.start_at > now
    return RunRow(
        id=event.run_id,
        namespace=event.namespace,
        name=event.name,
        definition=event.definition,
        version=event.version,
        status=RunStatus.PENDING if later else RunStatus.RUNNING,
        total=plan_of(definition).total,
        priority=event.priority,
        deadline_remaining_ms=definition.timeout_ms if event.timeout_ms is None else event.timeout_ms,
        cr_uid=event.cr_uid,
        subflow=event.subflow,
        parent=event.parent,
        mailbox_id=event.mailbox_id,
        depth=event.depth,
        created_at=now,
    )


def run_started(draft: Draft, event: RunStarted) -> None:
    """A run begins: now, at its ``startAt``, or suspended. Raises Lacking."""
    if not draft.fresh:
        draft.reply(Reply("already_applied"))
        return
    run = draft.begin()
    draft.effects.new_run = True
    draft.effects.input = event.input
    draft.note("RunStarted")
    draft.visible(urgent=True)
    if run.status is RunStatus.PENDING and event.start_at is not None:
        key = TimerKey(TimerKind.START, "", 0)
        draft.effects.timers[key] = TimerRow(TimerKind.START, "", 0, event.start_at)
    controls = event.controls
    if run.status is RunStatus.RUNNING:
        if controls is not None and controls.suspend:
            run.status = RunStatus.SUSPENDED
            run.applied_suspend = True
            draft.note("SuspendRequested", who="WorkflowRun")
        _begin(draft)
    if controls is not None:
        apply_controls(draft, controls)


def _begin(draft: Draft) -> None:
    """The run's first nodes may start, unless it is suspended; its deadline begins to count."""
    run = draft.run
    run.started_at = draft.now
    if run.deadline_remaining_ms is not None:
        begin_deadline(draft, run.deadline_remaining_ms)
    for plan in draft.plan.roots:
        if draft.ended:
            break
        try:
            if plan.name not in run.applied_cancel_nodes:
                start(draft, plan, None)
        except Lacking:
            continue
    propagate(draft)


def deadline_reached(draft: Draft, _event: DeadlineReached) -> None:
    """The run, or its stage finally, took longer than its timeout. Raises Lacking."""
    run = draft.run
    closing = run.stage is not Stage.MAIN
    if draft.terminal or run.deadline_at is None or (closing and draft.now < run.deadline_at):  # the deadline of main
        draft.reply(STALE)
        return
    draft.begin()
    draft.note("DeadlineReached")
    if closing:
        finally_deadline(draft)
    else:
        error = ErrorInfo(TIMEOUT, "the run did not end within its timeout")
        end_run(draft, RunStatus.FAILED, DEADLINE_EXCEEDED, error)
    propagate(draft)


def timer_due(draft: Draft, event: TimerDue) -> None:
    """A timer of a node, or the run's ``startAt``, fell due. Raises Lacking."""
    if event.kind is TimerKind.DEADLINE:
        deadline_reached(draft, DeadlineReached())
    elif event.kind is TimerKind.START:
        _start_due(draft)
    elif event.kind is TimerKind.DRAIN:
        _drain_over(draft)
    else:
        _node_timer_due(draft, event)


def _drain_over(draft: Draft) -> None:
    if drain_over(draft):
        propagate(draft)
    else:
        draft.reply(STALE)


def _start_due(draft: Draft) -> None:
    if draft.terminal or draft.run.started_at is not None:
        draft.reply(STALE)
        return
    run = draft.begin()
    draft.note("TimerDue", details={"kind": TimerKind.START.value})
    draft.visible(urgent=True)
    if not draft.suspended:
        run.status = RunStatus.RUNNING
    _begin(draft)


def _node_timer_due(draft: Draft, event: TimerDue) -> None:
    plan = draft.plan.nodes.get(event.node)
    row = None if plan is None or draft.terminal else draft.row(NodeKey(event.node, event.index))
    if plan is None or row is None or row.state is not NodeState.WAITING or plan.kind not in _TIMED[event.kind]:
        draft.reply(STALE)
        return
    draft.begin()
    if event.kind is TimerKind.BACKOFF:
        backoff_over(draft, plan, row)
        return
    if event.kind is TimerKind.DELAY:
        delay_over(draft, plan, row)
        propagate(draft)
        return
    draft.note("TimerDue", key=plan.key, details={"kind": event.kind.value})
    draft.visible(urgent=True)
    if event.kind is TimerKind.WAIT:
        draft.complete(plan, draft.image(plan, row), _NULL)
    else:
        event_timeout(draft, plan, row)
    propagate(draft)
