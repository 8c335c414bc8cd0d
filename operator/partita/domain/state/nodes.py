"""How a node starts, by kind.

Invariant: a node starts once in a generation, with its ``when`` looked at first. While the run is suspended, or once
the decision's expressions have spent about what one field may spend, it is parked instead: a Pending row that has
fired. An expression that fails is the node's failure and nobody else's.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta

from partita.domain.error_types import EXPRESSION, INPUT_TOO_LARGE, NO_CASE_MATCHED
from partita.domain.errors import InvalidError
from partita.domain.expressions import ExpressionError
from partita.domain.payload import Json, Payload
from partita.domain.state.draft import Draft
from partita.domain.state.effects import TimerKey
from partita.domain.state.end_nodes import start_fail, start_succeed
from partita.domain.state.failing import fail_to_start, oversize
from partita.domain.state.foreach import start_for_each
from partita.domain.state.launching import launch
from partita.domain.state.plan import NodePlan
from partita.domain.state.repeat import start_repeat
from partita.domain.state.rows import ErrorInfo, NodeState, TaskRow, TimerKind, TimerRow
from partita.domain.state.scope import choices, holds, millis, render
from partita.domain.state.waiting import begin_wait


def start(draft: Draft, plan: NodePlan, row: TaskRow | None) -> None:
    """The node's join has fired. Raises Lacking."""
    if draft.suspended or draft.visits >= draft.limits.visits:
        _park(draft, plan, row)
        return
    try:
        when = plan.node.when
        if when is not None and not holds(draft, plan, when):
            step_over(draft, plan, row)
        else:
            _STARTERS[plan.starts](draft, plan, row)
    except ExpressionError as error:
        fail_to_start(draft, plan, row, ErrorInfo(EXPRESSION, error.message))
    except InvalidError as error:
        fail_to_start(draft, plan, row, ErrorInfo(EXPRESSION, str(error)))


def _park(draft: Draft, plan: NodePlan, row: TaskRow | None) -> None:
    """The node starts when the run is resumed or, if the decision has spent enough, in a transaction of its own."""
    draft.image(plan, row).fired = True
    draft.visible()
    if not draft.suspended:
        draft.parked.append(plan.name)


def step_over(draft: Draft, plan: NodePlan, row: TaskRow | None) -> None:
    """The node's ``when`` is false: it is Skipped, and what follows it runs."""
    image = draft.image(plan, row)
    image.fired = True
    image.stepped_over = True
    draft.settle(plan, image, NodeState.SKIPPED)


def _start_attempts(draft: Draft, plan: NodePlan, row: TaskRow | None) -> None:
    """A task or a child: its input is evaluated once, for all its attempts."""
    payload = plan.input
    if payload is None:
        template = plan.node.input
        assert template is not None  # noqa: S101  # a node without input has a constant one
        payload = Payload.of(render(draft, plan, template))
        error = oversize(draft, payload, "input", INPUT_TOO_LARGE)
        if error is not None:
            fail_to_start(draft, plan, row, error)
            return
    image = draft.image(plan, row)
    image.input = payload
    launch(draft, plan, image)


def _start_switch(draft: Draft, plan: NodePlan, row: TaskRow | None) -> None:
    true = choices(draft, plan)
    for number, case in enumerate(plan.node.switch):
        if true(case.when):
            image = draft.image(plan, row)
            image.fired = True
            image.route = case.next
            draft.complete(plan, image, Payload.of({"case": number, "next": list(case.next)}))
            return
    fail_to_start(draft, plan, row, ErrorInfo(NO_CASE_MATCHED, "no case is true and there is no case without when"))


def _start_compute(draft: Draft, plan: NodePlan, row: TaskRow | None) -> None:
    template = plan.node.compute
    assert template is not None  # noqa: S101  # exactly the field of its kind is set
    output = Payload.of(render(draft, plan, template))
    error = oversize(draft, output, "output")
    if error is not None:
        fail_to_start(draft, plan, row, error)
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
        return draft.now + timedelta(milliseconds=millis(draft, plan, spec.duration))
    assert spec.until is not None  # noqa: S101  # exactly one of the two is set
    return _as_time(render(draft, plan, spec.until))


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
    "forEach": start_for_each,
    "repeat": start_repeat,
    "task": _start_attempts,
    "workflow": _start_attempts,
    "switch": _start_switch,
    "compute": _start_compute,
    "wait": _start_wait,
    "waitForEvent": begin_wait,
    "fail": start_fail,
    "succeed": start_succeed,
}
