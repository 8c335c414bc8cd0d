"""Nodes that end the run: ``fail`` and ``succeed``.

Invariant: whatever failFast says, the rest is cancelled at once; in the stage finally a ``fail`` fails the stage like
any other failure, since its independent nodes always finish.
"""

from __future__ import annotations

from partita.domain.error_types import EXPRESSION
from partita.domain.errors import InvalidError
from partita.domain.expressions import ExpressionError
from partita.domain.payload import NULL, Payload
from partita.domain.state.draft import Draft
from partita.domain.state.ending import NODE_FAILED, end_run, finally_failed
from partita.domain.state.failing import fail, oversize, settle_failed
from partita.domain.state.plan import NodePlan
from partita.domain.state.rows import ErrorInfo, RunStatus, Stage, TaskRow
from partita.domain.state.scope import render


def start_fail(draft: Draft, plan: NodePlan, row: TaskRow | None) -> None:
    """The run (or subflow) ends as Failed with the node's error. Raises Lacking.

    A message that cannot be evaluated is an error of type ``expression``, and ends the run all the same.
    """
    error = _error(draft, plan)
    image = draft.image(plan, row)
    image.fired = True
    settle_failed(draft, plan, image, error, None)
    if plan.stage is Stage.FINALLY:
        finally_failed(draft, error)
    else:
        end_run(draft, RunStatus.FAILED, NODE_FAILED, error, key=plan.key)


def _error(draft: Draft, plan: NodePlan) -> ErrorInfo:
    spec = plan.node.fail
    assert spec is not None  # noqa: S101  # exactly the field of its kind is set
    if spec.message is None:
        return ErrorInfo(spec.type, "")
    try:
        message = render(draft, plan, spec.message)
    except ExpressionError as error:
        return ErrorInfo(EXPRESSION, error.message)
    if not isinstance(message, str):
        return ErrorInfo(EXPRESSION, f"fail.message: expected a text, got {Payload.of(message).text}")
    try:
        Payload.of(message).text  # noqa: B018  # raises for what cannot be stored
    except InvalidError as problem:
        return ErrorInfo(EXPRESSION, f"fail.message: {problem}")
    return ErrorInfo(spec.type, message)


def start_succeed(draft: Draft, plan: NodePlan, row: TaskRow | None) -> None:
    """The run (or subflow) ends as Succeeded with the node's output; an output that cannot be evaluated or kept is the
    node's failure. Raises Lacking, ExpressionError, InvalidError.
    """
    spec = plan.node.succeed
    assert spec is not None  # noqa: S101  # exactly the field of its kind is set
    template = spec.output
    output = NULL if template is None else Payload.of(render(draft, plan, template))
    error = oversize(draft, output, "output")
    image = draft.image(plan, row)
    image.fired = True
    if error is not None:
        fail(draft, plan, image, error)
        return
    draft.complete(plan, image, output)
    draft.effects.output = output
    end_run(draft, RunStatus.SUCCEEDED, key=plan.key)
