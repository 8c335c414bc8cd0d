"""What an active row holds, and how it is given back: work, waits, timers.

Invariant: a row that is cancelled while its run goes on leaves nothing behind that could still fire, be claimed or be
waited for; every way to cancel a row goes through ``release``.
"""

from __future__ import annotations

from typing import Final, Literal

from partita.domain.state.draft import Draft
from partita.domain.state.events import CancelRequested, WaitClosed
from partita.domain.state.plan import NodePlan
from partita.domain.state.rows import ACTIVE, ErrorInfo, NodeState, TaskRow, TimerKind

_NO_LONGER: Final = "the parent no longer waits for it"
_TIMERS: Final = (TimerKind.WAIT, TimerKind.EVENT_TIMEOUT, TimerKind.BACKOFF, TimerKind.DELAY)


def release(draft: Draft, plan: NodePlan, row: TaskRow) -> None:
    """Give back what the row (an image) holds; the caller settles it. Raises Lacking."""
    key, effects = row.key, draft.effects
    if row.state is NodeState.QUEUED:
        effects.enqueue.pop(key, None)
        effects.drop_work.add(key)
    elif row.state is NodeState.WAITING:
        if plan.node.event is not None and draft.run.mailbox_id is None:
            draft.drop_waits(key)
        draft.drop_timers(row, _TIMERS)
        let_go(draft, plan, row)


def cancel_quietly(draft: Draft, plan: NodePlan, row: TaskRow, error: ErrorInfo) -> None:
    """The row (an image) is Cancelled and gives back what it holds; nobody is told. Raises Lacking."""
    release(draft, plan, row)
    draft.run.active -= row.state in ACTIVE
    mark_cancelled(draft, plan, row, error)


def mark_cancelled(draft: Draft, plan: NodePlan, row: TaskRow, error: ErrorInfo) -> None:
    """The row (an image) is Cancelled; its run ends, with whatever the row holds."""
    row.state = NodeState.CANCELLED
    row.error = error
    row.finished_at = draft.now
    draft.run.done += not plan.is_part(row.index)


def let_go(draft: Draft, plan: NodePlan, row: TaskRow, mode: Literal["Graceful", "Now"] = "Graceful") -> None:
    """Tell other runs that the row (before it is settled) waits for them no more: its child, or the owner of the
    mailbox that its run shares.
    """
    run = draft.run
    if row.state is not NodeState.WAITING:
        return
    if row.detail is not None and row.detail.child is not None:
        draft.send(row.detail.child, CancelRequested(mode=mode, reason=_NO_LONGER, by=f"run {run.id}"))
    elif plan.node.event is not None and run.mailbox_id is not None:
        draft.send(run.mailbox_id, WaitClosed(child=run.id, node=row.node, index=row.index))


def hurry_children(draft: Draft) -> None:
    """Children that were cancelled before, and may be at their undo and finally, end at once too. Raises Lacking."""
    told = {message.run_id for message in draft.effects.messages}
    for row in draft.rows():
        child = row.detail.child if row.detail is not None else None
        if row.state is NodeState.CANCELLED and child is not None and child not in told:
            draft.send(child, CancelRequested(mode="Now", reason=_NO_LONGER, by=f"run {draft.run.id}"))
