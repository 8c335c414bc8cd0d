"""What a run is coming to: the status and reason that are fixed before it has ended.

Invariant: once an end is marked nothing more of the stage starts in this decision, and ``closing`` takes over when the
edges of what has settled would be followed; so that every way to end a run (a failure, a node that ends it, a control,
the deadline) is two lines here. With failFast false a failure only fixes what is coming.
"""

from __future__ import annotations

from typing import Final

from partita.domain.error_types import EXPRESSION, OUTPUT_TOO_LARGE
from partita.domain.errors import InvalidError
from partita.domain.expressions import ExpressionError
from partita.domain.payload import Payload
from partita.domain.state.draft import Draft
from partita.domain.state.rows import ErrorInfo, NodeKey, RunStatus, coming
from partita.domain.state.scope import render

NODE_FAILED: Final = "NodeFailed"
DEADLINE_EXCEEDED: Final = "DeadlineExceeded"
INVALID_OUTPUT: Final = "InvalidOutput"
CANCEL_REQUESTED: Final = "CancelRequested"
FINALLY_FAILED: Final = "FinallyFailed"


def end_run(
    draft: Draft,
    status: RunStatus,
    reason: str = "",
    error: ErrorInfo | None = None,
    *,
    key: NodeKey | None = None,
    at_once: bool = False,
) -> None:
    """The run comes to its end: what has not settled is cancelled, then undo and finally run, unless ``at_once``.

    ``key`` is the node that caused it. The caller goes on with ``propagate``.
    """
    come_to(draft, status, reason, error)
    draft.cause = key
    draft.at_once = at_once
    draft.stop()


def come_to(draft: Draft, status: RunStatus, reason: str = "", error: ErrorInfo | None = None) -> None:
    """Fix how the run will end, and let it go on."""
    draft.run.pending_outcome = f"{status.value}/{reason}"
    draft.run.error = draft.kept(error)


def finally_failed(draft: Draft, error: ErrorInfo) -> None:
    """The stage finally has failed: this never hides an earlier error."""
    if coming(draft.run)[0] is RunStatus.SUCCEEDED:
        come_to(draft, RunStatus.FAILED, FINALLY_FAILED, error)


def end_settled(draft: Draft) -> None:
    """Every node of the stage main has settled: a failure that was waited with, or the run's output. Raises Lacking."""
    run = draft.run
    if run.pending_outcome:
        end_run(draft, *coming(run), run.error)
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
        output = Payload.of(render(draft, None, template))
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
