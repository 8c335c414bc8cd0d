"""What an active row holds, and how it is given back: work, waits, timers.

Invariant: a row that is cancelled while its run goes on leaves nothing behind that could still fire, be claimed or be
waited for; every way to cancel a row goes through ``release``.
"""

from __future__ import annotations

from typing import Final, Literal

from partita.domain.state.draft import Draft
from partita.domain.state.events import CancelRequested, WaitClosed, WaitOpened
from partita.domain.state.plan import NodePlan
from partita.domain.state.reading import Lacking
from partita.domain.state.rows import ACTIVE, SETTLED, ErrorInfo, Loop, NodeKey, NodeState, TaskRow, TimerKind

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


def cancel_parts(draft: Draft, plan: NodePlan, group: TaskRow, error: ErrorInfo, *, started: bool = True) -> None:
    """Cancel the items or iterations of a loop (``group``: its row) that have not settled; with ``started`` false only
    those that wait for their turn. Their group is not told. Raises Lacking.
    """
    loop = group.detail.loop if group.detail is not None else None
    if loop is None:
        return
    for row in _unsettled_parts(draft, plan, loop) if started else ():
        cancel_quietly(draft, plan, row, error)
    for index in range(loop.next, loop.born):
        stored = draft.known(NodeKey(plan.name, index))
        row = draft.unread(plan, index) if stored is None else draft.image(plan, stored)
        mark_cancelled(draft, plan, row, error)


def _unsettled_parts(draft: Draft, plan: NodePlan, loop: Loop) -> list[TaskRow]:
    """Images of those whose turn has come. Raises Lacking."""
    keys = [NodeKey(plan.name, index) for index in range(loop.next)]
    rows = [draft.known(key) for key in keys]
    missing = {key for key, row in zip(keys, rows, strict=True) if row is None}
    if missing:
        need = draft.lacking()
        need.whole |= len(missing) > draft.limits.loop_chunk
        need.rows |= set() if need.whole else missing
        raise Lacking
    return [draft.image(plan, row) for row in rows if row is not None and row.state not in SETTLED]


def let_go(draft: Draft, plan: NodePlan, row: TaskRow, mode: Literal["Graceful", "Now"] = "Graceful") -> None:
    """Tell other runs that the row (before it is settled) waits for them no more: its child, or the owner of the
    mailbox that its run shares.
    """
    run = draft.run
    if row.state is not NodeState.WAITING:
        return
    if row.detail is not None and row.detail.child is not None:
        draft.send(row.detail.child, CancelRequested(mode=mode, reason=_NO_LONGER, by=f"run {run.id}"))
    elif plan.node.event is not None and run.mailbox_id is not None and not _unsaid(draft, row):
        draft.send(run.mailbox_id, WaitClosed(child=run.id, node=row.node, index=row.index))


def _unsaid(draft: Draft, row: TaskRow) -> bool:
    """Take back a wait that this very decision was about to open: a signal must not be given to it."""
    messages = draft.effects.messages
    for position, message in enumerate(messages):
        event = message.event
        if isinstance(event, WaitOpened) and (event.node, event.index) == row.key:
            del messages[position]
            return True
    return False


def hurry_children(draft: Draft) -> None:
    """Children that were cancelled before, and may be at their undo and finally, end at once too. Raises Lacking."""
    told = {message.run_id for message in draft.effects.messages}
    for row in draft.rows():
        child = row.detail.child if row.detail is not None else None
        if row.state is NodeState.CANCELLED and child is not None and child not in told:
            draft.send(child, CancelRequested(mode="Now", reason=_NO_LONGER, by=f"run {draft.run.id}"))
