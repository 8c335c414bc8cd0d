"""How a run ends.

Invariant: a run ends once. Everything that has not settled is Cancelled, nothing that this decision would have started
is left, and the ready rows, leases, timers and waits go in the same transaction.
"""

from __future__ import annotations

from partita.domain.errors import InvalidError
from partita.domain.expressions import ExpressionError
from partita.domain.payload import Payload
from partita.domain.state.draft import Draft
from partita.domain.state.error_types import CANCELLED, EXPRESSION, OUTPUT_TOO_LARGE
from partita.domain.state.events import ChildFinished
from partita.domain.state.releasing import let_go
from partita.domain.state.rows import ErrorInfo, NodeKey, NodeState, RunStatus
from partita.domain.state.scope import scope_of

NODE_FAILED = "NodeFailed"
DEADLINE_EXCEEDED = "DeadlineExceeded"
INVALID_OUTPUT = "InvalidOutput"
CANCEL_REQUESTED = "CancelRequested"

_RUN_ENDED = ErrorInfo(CANCELLED, "the run ended before this node did")


def finish_if_settled(draft: Draft) -> None:
    """End the run if every node has settled. Raises Lacking."""
    run = draft.run
    if run.done < run.total or draft.need is not None or draft.terminal:
        return
    if run.pending_outcome:
        end_run(draft, RunStatus.FAILED, run.pending_outcome, run.error)
        return
    error = _evaluate_output(draft)
    if error is not None:
        end_run(draft, RunStatus.FAILED, INVALID_OUTPUT, error)
    else:
        end_run(draft, RunStatus.SUCCEEDED)


def _evaluate_output(draft: Draft) -> ErrorInfo | None:
    template = draft.slice.definition.output
    if template is None:
        return None
    try:
        output = Payload.of(template.render(scope_of(draft, None, template.refs)))
        size = output.size()
    except ExpressionError as error:
        return ErrorInfo(EXPRESSION, f"output: {error.message}")
    except InvalidError as error:
        return ErrorInfo(EXPRESSION, f"output: {error}")
    if size > draft.limits.output_bytes:
        return ErrorInfo(
            OUTPUT_TOO_LARGE, f"output: the run's output has {size} bytes; at most {draft.limits.output_bytes} are kept"
        )
    draft.effects.output = output
    return None


def end_run(
    draft: Draft, status: RunStatus, reason: str = "", error: ErrorInfo | None = None, *, key: NodeKey | None = None
) -> None:
    """End the run now; ``key`` is the node that caused it. Raises Lacking."""
    run = draft.run
    if run.done < run.total:
        _cancel_unsettled(draft)
    effects = draft.effects
    effects.enqueue.clear()
    effects.timers.clear()
    effects.waits.clear()
    effects.clear = True
    draft.ended = True
    draft.settled.clear()
    run.status = status
    run.reason = reason
    run.error = error
    run.active = 0
    run.finished_at = draft.now
    draft.note("RunFinished", key=key, error=error, details=_details(status, reason))
    draft.visible(urgent=True)
    tell_parent(draft)


def tell_parent(draft: Draft) -> None:
    """A child has ended for good: the row that waits for it is told how."""
    run = draft.run
    parent = run.parent
    if parent is not None:
        output = draft.effects.output if run.status is RunStatus.SUCCEEDED else None
        event = ChildFinished(
            node=parent.node,
            index=parent.index,
            attempt=parent.attempt,
            child=run.id,
            status=run.status,
            output=output,
            error=run.error,
        )
        draft.send(parent.run_id, event)


def _details(status: RunStatus, reason: str) -> dict[str, object]:
    return {"status": status.value, "reason": reason} if reason else {"status": status.value}


def _cancel_unsettled(draft: Draft) -> None:
    for row in draft.unsettled():
        image = draft.image(draft.plan.nodes[row.node], row)
        let_go(draft, draft.plan.nodes[row.node], image)
        image.state = NodeState.CANCELLED
        image.error = _RUN_ENDED
        image.finished_at = draft.now
        draft.run.done += not draft.plan.nodes[row.node].is_part(row.index)
