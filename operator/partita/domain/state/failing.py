"""What a failure of a node leads to once no retry takes it: a caught error, ``onFailure: continue``, or the run's end.

Invariant: every failure goes through ``fail``, whatever kind of node it comes from, so that the order (onError, then
onFailure, then failFast) is written once.
"""

from __future__ import annotations

from partita.domain.error_types import EXPRESSION, OUTPUT_TOO_LARGE, matches
from partita.domain.expressions import ExpressionError
from partita.domain.model import Route
from partita.domain.payload import Payload
from partita.domain.state.draft import Draft
from partita.domain.state.ending import NODE_FAILED, come_to, end_run, finally_failed
from partita.domain.state.plan import NodePlan
from partita.domain.state.rows import ErrorInfo, NodeState, RunStatus, Stage, TaskRow
from partita.domain.state.scope import choices, error_view


def fail(draft: Draft, plan: NodePlan, row: TaskRow, error: ErrorInfo) -> None:
    """The node (``row``: its image) has failed for good. Raises Lacking.

    A failed part is its loop's or stage's affair; an attempt that undo waited for has just not succeeded.
    """
    if plan.is_part(row.index) or plan.stage is not draft.run.stage:
        settle_failed(draft, plan, row, error, None)
        return
    try:
        route = _route(draft, plan, error)
    except ExpressionError as problem:
        route = None
        error = while_handling(problem, "onError", error)
    row.error = error
    if route is not None:
        settle_failed(draft, plan, row, error, route.next)
        return
    settle_failed(draft, plan, row, error, None)
    if not plan.node.continue_on_failure:
        _unhandled(draft, plan, error)


def _unhandled(draft: Draft, plan: NodePlan, error: ErrorInfo) -> None:
    """Independent nodes of finally always finish; those of main only with failFast false."""
    if plan.stage is Stage.FINALLY:
        finally_failed(draft, error)
    elif draft.slice.definition.fail_fast:
        end_run(draft, RunStatus.FAILED, NODE_FAILED, error, key=plan.key)
    elif not draft.run.pending_outcome:
        come_to(draft, RunStatus.FAILED, NODE_FAILED, error)


def fail_to_start(draft: Draft, plan: NodePlan, row: TaskRow | None, error: ErrorInfo) -> None:
    """The node has failed for good before it began. Raises Lacking."""
    image = draft.image(plan, row)
    image.fired = True
    fail(draft, plan, image, error)


def settle_failed(draft: Draft, plan: NodePlan, row: TaskRow, error: ErrorInfo, route: tuple[str, ...] | None) -> None:
    """The node is Failed; ``route`` is what was chosen instead of its plain edges, None for nothing."""
    row.error = draft.kept(error)
    row.route = route
    draft.settle(plan, row, NodeState.FAILED)


def oversize(draft: Draft, payload: Payload, what: str, error_type: str = OUTPUT_TOO_LARGE) -> ErrorInfo | None:
    """The error of a document that is larger than the limit, or None. Raises InvalidError if it cannot be stored."""
    size, limit = payload.size(), draft.limits.output_bytes
    return ErrorInfo(error_type, f"the {what} has {size} bytes; at most {limit} are kept") if size > limit else None


def while_handling(problem: ExpressionError, place: str, error: ErrorInfo) -> ErrorInfo:
    """The error of an expression that looked at another error; it keeps that one in its details."""
    return ErrorInfo(EXPRESSION, f"{place}: {problem.message}", Payload.of({"error": error_view(error)}))


def _route(draft: Draft, plan: NodePlan, error: ErrorInfo) -> Route | None:
    holds = choices(draft, plan, error=error_view(error))
    return next((one for one in plan.node.on_error if matches(one.match, error.type) and holds(one.when)), None)
