"""How a node starts, by kind.

Invariant: a node starts once in a generation, with its ``when`` looked at first. While the run is suspended it is
parked instead: a Pending row that has fired. An expression that fails is the node's failure and nobody else's.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta

from partita.domain.errors import InvalidError
from partita.domain.expressions import DurationTemplate, ExpressionError
from partita.domain.payload import Json, Payload
from partita.domain.state.children import start_child
from partita.domain.state.draft import Draft
from partita.domain.state.effects import Enqueue, TimerKey
from partita.domain.state.error_types import EXPRESSION, INPUT_TOO_LARGE, NO_CASE_MATCHED
from partita.domain.state.failing import fail, oversize
from partita.domain.state.final_nodes import start_fail, start_succeed
from partita.domain.state.plan import NodePlan
from partita.domain.state.rows import ErrorInfo, NodeKey, NodeState, TaskRow, TimerKind, TimerRow
from partita.domain.state.scope import scope_of
from partita.domain.state.waiting import begin_wait


def start(draft: Draft, plan: NodePlan, row: TaskRow | None) -> None:
    """The node's join has fired. Raises Lacking."""
    if draft.suspended:
        draft.image(plan, row).fired = True
        draft.visible()
        return
    try:
        when = plan.node.when
        if when is not None and not when.test(scope_of(draft, plan, when.refs)):
            step_over(draft, plan, row)
        else:
            _STARTERS[plan.kind](draft, plan, row)
    except ExpressionError as error:
        _fail(draft, plan, row, ErrorInfo(EXPRESSION, error.message))
    except InvalidError as error:
        _fail(draft, plan, row, ErrorInfo(EXPRESSION, str(error)))


def step_over(draft: Draft, plan: NodePlan, row: TaskRow | None) -> None:
    """The node's ``when`` is false: it is Skipped, and what follows it runs."""
    image = draft.image(plan, row)
    image.fired = True
    image.stepped_over = True
    draft.settle(plan, image, NodeState.SKIPPED)


def _fail(draft: Draft, plan: NodePlan, row: TaskRow | None, error: ErrorInfo) -> None:
    image = draft.image(plan, row)
    image.fired = True
    fail(draft, plan, image, error)


def _start_attempts(draft: Draft, plan: NodePlan, row: TaskRow | None) -> None:
    """A task or a child: its input is evaluated once, for all its attempts."""
    payload = plan.input
    if payload is None:
        template = plan.node.input
        assert template is not None  # noqa: S101  # a node without input has a constant one
        payload = Payload.of(template.render(scope_of(draft, plan, template.refs)))
        error = oversize(draft, payload, "input", INPUT_TOO_LARGE)
        if error is not None:
            _fail(draft, plan, row, error)
            return
    image = draft.image(plan, row)
    image.input = payload
    launch(draft, plan, image)


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
        timeout_ms = attempt_timeout(draft, plan)
        draft.activate(row, NodeState.QUEUED)
        _offer(draft, plan, row, timeout_ms)


def _offer(draft: Draft, plan: NodePlan, row: TaskRow, timeout_ms: int) -> None:
    node = plan.node
    task = node.task
    assert task is not None  # noqa: S101  # exactly the field of its kind is set
    row.queued_at = draft.now
    draft.effects.enqueue[NodeKey(row.node, row.index)] = Enqueue(
        plan.name,
        row.index,
        row.attempt,
        task.type,
        task.queue,
        draft.run.priority if node.priority is None else node.priority,
        timeout_ms,
        node.schedule_to_start_ms,
    )


def attempt_timeout(draft: Draft, plan: NodePlan) -> int:
    """The attempt's timeout in ms. Raises Lacking, ExpressionError."""
    if plan.timeout_ms is not None:
        return plan.timeout_ms
    template = plan.node.timeout
    return draft.limits.attempt_timeout_ms if template is None else _millis(draft, plan, template)


def _millis(draft: Draft, plan: NodePlan, template: DurationTemplate) -> int:
    return template.millis(scope_of(draft, plan, template.refs))


def _start_switch(draft: Draft, plan: NodePlan, row: TaskRow | None) -> None:
    for number, case in enumerate(plan.node.switch):
        if case.when is None or case.when.test(scope_of(draft, plan, case.when.refs)):
            image = draft.image(plan, row)
            image.fired = True
            image.route = case.next
            draft.complete(plan, image, Payload.of({"case": number, "next": list(case.next)}))
            return
    _fail(draft, plan, row, ErrorInfo(NO_CASE_MATCHED, "no case is true and there is no case without when"))


def _start_compute(draft: Draft, plan: NodePlan, row: TaskRow | None) -> None:
    template = plan.node.compute
    assert template is not None  # noqa: S101  # exactly the field of its kind is set
    output = Payload.of(template.render(scope_of(draft, plan, template.refs)))
    error = oversize(draft, output, "output")
    if error is not None:
        _fail(draft, plan, row, error)
        return
    image = draft.image(plan, row)
    image.fired = True
    draft.complete(plan, image, output)


def _start_wait(draft: Draft, plan: NodePlan, row: TaskRow | None) -> None:
    fire_at = _wait_end(draft, plan)
    image = draft.image(plan, row)
    image.fired = True
    if fire_at <= draft.now:
        draft.complete(plan, image, Payload("null", None))
        return
    draft.activate(image, NodeState.WAITING)
    draft.visible(urgent=True)
    draft.effects.timers[TimerKey(TimerKind.WAIT, plan.name, 0)] = TimerRow(TimerKind.WAIT, plan.name, 0, fire_at)


def _wait_end(draft: Draft, plan: NodePlan) -> datetime:
    spec = plan.node.wait
    assert spec is not None  # noqa: S101  # exactly the field of its kind is set
    if spec.duration is not None:
        return draft.now + timedelta(milliseconds=_millis(draft, plan, spec.duration))
    assert spec.until is not None  # noqa: S101  # exactly one of the two is set
    return _as_time(spec.until.render(scope_of(draft, plan, spec.until.refs)))


def _as_time(value: Json) -> datetime:
    time = value
    if isinstance(value, str):
        try:
            time = datetime.fromisoformat(value)
        except ValueError:
            time = None
    if not isinstance(time, datetime) or time.tzinfo is None:
        raise ExpressionError(f"wait.until: expected a time such as 2030-01-31T08:00:00Z, got {value!r}")
    return time


_STARTERS: dict[str, Callable[[Draft, NodePlan, TaskRow | None], None]] = {
    "task": _start_attempts,
    "workflow": _start_attempts,
    "switch": _start_switch,
    "compute": _start_compute,
    "wait": _start_wait,
    "waitForEvent": begin_wait,
    "fail": start_fail,
    "succeed": start_succeed,
}
