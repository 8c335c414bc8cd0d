"""Attempts as they begin: work for a worker, or a child run.

Invariant: an attempt begins with everything about it decided (its input is on the row, its timeout is evaluated), and
the row is changed only then. Plain nodes, items of a forEach and iterations of a repeat begin theirs in the same way.
"""

from __future__ import annotations

from partita.domain.expressions import ExpressionError
from partita.domain.state.children import start_child
from partita.domain.state.draft import Draft
from partita.domain.state.effects import Enqueue
from partita.domain.state.plan import NodePlan
from partita.domain.state.rows import NodeState, TaskRow
from partita.domain.state.scope import millis


def launch(draft: Draft, plan: NodePlan, row: TaskRow) -> None:
    """Begin the first attempt of a row (an image) that has its input: of a plain node or of a part of a loop.

    Raises Lacking, ExpressionError.
    """
    row.attempt = 1
    try:
        enqueue(draft, plan, row)
    except ExpressionError:
        row.attempt = 0
        raise


def enqueue(draft: Draft, plan: NodePlan, row: TaskRow) -> None:
    """Begin the attempt that the row (an image) counts, unless the run is suspended. Raises Lacking, ExpressionError.

    A Queued row without a ready row is what a suspended run has: the run's resumption begins its attempt.
    """
    if draft.suspended:
        draft.activate(row, NodeState.QUEUED)
    elif plan.kind == "workflow":
        start_child(draft, plan, row)
    else:
        timeout_ms = attempt_timeout(draft, plan, row)
        draft.activate(row, NodeState.QUEUED)
        _offer(draft, plan, row, timeout_ms)


def _offer(draft: Draft, plan: NodePlan, row: TaskRow, timeout_ms: int) -> None:
    node = plan.node
    task = node.task
    assert task is not None  # noqa: S101  # exactly the field of its kind is set
    row.queued_at = draft.now
    draft.effects.enqueue[plan.key_of(row.index)] = Enqueue(
        plan.name,
        row.index,
        row.attempt,
        task.type,
        task.queue,
        draft.run.priority if node.priority is None else node.priority,
        timeout_ms,
        node.schedule_to_start_ms,
    )


def attempt_timeout(draft: Draft, plan: NodePlan, row: TaskRow) -> int:
    """The attempt's timeout in ms. Raises Lacking, ExpressionError."""
    if plan.timeout_ms is not None:
        return plan.timeout_ms
    template = plan.node.timeout
    return draft.limits.attempt_timeout_ms if template is None else millis(draft, plan, template, row)
