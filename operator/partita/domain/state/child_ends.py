"""What the end of a child does to the row that waits for it.

Invariant: only the child of the row's current attempt can change the row, and only once: an end that comes after the
row was cancelled, or of an earlier attempt's child, changes nothing. A child's root error is its parent's error.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from partita.domain.error_types import CANCELLED
from partita.domain.payload import NULL
from partita.domain.state.attempts import STALE, spent
from partita.domain.state.draft import Draft
from partita.domain.state.edges import propagate
from partita.domain.state.events import ChildFinished, LateResult
from partita.domain.state.late_results import late_result
from partita.domain.state.plan import NodePlan
from partita.domain.state.rows import ErrorInfo, NodeKey, NodeState, RunStatus, TaskRow
from partita.domain.state.undo import draining

CHILD_FINISHED: Final = "ChildFinished"
_CANCELLED: Final = ErrorInfo(CANCELLED, "the child run was cancelled")


def child_finished(draft: Draft, event: ChildFinished) -> None:
    """A child has ended or could not be started: its output, a retry with a new child, or its error. Raises Lacking."""
    plan = draft.plan.nodes.get(event.node)
    row = None if plan is None or draft.terminal else draft.row(NodeKey(event.node, event.index))
    if plan is None or row is None or not _is_current(row, event):
        _late(draft, row, event)
    elif event.status is RunStatus.SUCCEEDED:
        _succeeded(draft, plan, row, event)
    else:
        error = event.error or _CANCELLED
        details = {"child": str(event.child), "status": event.status.value}
        if event.status is RunStatus.CANCELLED and draining(draft, plan):
            _cancelled(draft, plan, row, details)
        else:
            spent(draft, plan, row, CHILD_FINISHED, error, started_at=row.queued_at, details=details)


def _late(draft: Draft, row: TaskRow | None, event: ChildFinished) -> None:
    """A child that ended otherwise before its cancellation reached it is a late result; all else changes nothing."""
    draft.reply(STALE)
    detail = row.detail if row is not None else None
    if detail is not None and detail.child == event.child and event.status is not RunStatus.CANCELLED:
        late = LateResult(
            node=event.node,
            index=event.index,
            attempt=event.attempt,
            worker=f"run {event.child}",
            output=event.output,
            error=event.error,
        )
        late_result(draft, late)


def _is_current(row: TaskRow, event: ChildFinished) -> bool:
    detail = row.detail
    waits = row.state is NodeState.WAITING and row.attempt == event.attempt
    return waits and detail is not None and detail.child == event.child


def _cancelled(draft: Draft, plan: NodePlan, row: TaskRow, details: Mapping[str, object]) -> None:
    """The child has ended as its parent, which is ending, told it to."""
    draft.begin()
    draft.note(CHILD_FINISHED, key=row.key, attempt=row.attempt, started_at=row.queued_at, details=details)
    image = draft.image(plan, row)
    image.error = _CANCELLED
    draft.settle(plan, image, NodeState.CANCELLED)
    propagate(draft)


def _succeeded(draft: Draft, plan: NodePlan, row: TaskRow, event: ChildFinished) -> None:
    draft.begin()
    details = {"child": str(event.child), "status": event.status.value}
    draft.note(CHILD_FINISHED, key=row.key, attempt=row.attempt, started_at=row.queued_at, details=details)
    draft.complete(plan, draft.image(plan, row), event.output or NULL)
    propagate(draft)
