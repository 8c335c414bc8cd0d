"""repeat: a node that runs again and again, until what it gave says that it is enough.

Invariant: one iteration at a time; the next one is decided in the transaction that ends the one before, and reads that
one's output and nothing older. What ``collect`` gathers stands on the iterations' own rows and is joined once, at the
end, so that a thousand iterations cost a thousand times one.
"""

from __future__ import annotations

from dataclasses import replace

from partita.domain.error_types import EXPRESSION, INPUT_TOO_LARGE, MAX_ITERATIONS, OUTPUT_TOO_LARGE
from partita.domain.errors import InvalidError
from partita.domain.expressions import ExpressionError
from partita.domain.model import Repeat
from partita.domain.payload import NULL, Payload
from partita.domain.state.ahead import after
from partita.domain.state.draft import Draft
from partita.domain.state.failing import fail, oversize
from partita.domain.state.launching import launch
from partita.domain.state.parts import collected
from partita.domain.state.plan import NodePlan
from partita.domain.state.reading import Lacking
from partita.domain.state.rows import Detail, ErrorInfo, Loop, NodeState, TaskRow, TimerKind
from partita.domain.state.scope import holds, millis, render


def start_repeat(draft: Draft, plan: NodePlan, row: TaskRow | None) -> None:
    """The node starts with its first iteration. Raises Lacking."""
    group = draft.image(plan, row)
    draft.activate(group, NodeState.WAITING)
    _born(group, 0)
    begin_iteration(draft, plan, group, draft.make(plan, 0))


def begin_iteration(draft: Draft, plan: NodePlan, group: TaskRow, row: TaskRow) -> None:
    """An iteration (an image) starts, or is parked while the run is suspended. Raises Lacking."""
    if draft.suspended:
        draft.run.active -= row.state is NodeState.WAITING
        row.state = NodeState.PENDING
        row.fired = True
        _running(group, 0)
        draft.visible()
        return
    _running(group, 1)
    try:
        _launch(draft, plan, row)
    except ExpressionError as error:
        fail(draft, plan, row, ErrorInfo(EXPRESSION, error.message))
    except InvalidError as error:
        fail(draft, plan, row, ErrorInfo(EXPRESSION, str(error)))


def _launch(draft: Draft, plan: NodePlan, row: TaskRow) -> None:
    payload = plan.input
    if payload is None:
        template = plan.node.input
        assert template is not None  # noqa: S101  # a node without input has a constant one
        payload = Payload.of(render(draft, plan, template, row))
        error = oversize(draft, payload, "input", INPUT_TOO_LARGE)
        if error is not None:
            fail(draft, plan, row, error)
            return
    row.input = payload
    launch(draft, plan, row)


def iteration_settled(draft: Draft, plan: NodePlan, group: TaskRow, row: TaskRow) -> None:
    """An iteration (an image) has settled: that is enough, or the next one comes. Raises Lacking."""
    image = draft.image(plan, group)
    _ended(image, row)
    if row.state is not NodeState.COMPLETED:
        assert row.error is not None  # noqa: S101  # an iteration that did not complete has an error
        fail(draft, plan, image, row.error)
        return
    try:
        _go_on(draft, plan, image, row)
    except ExpressionError as error:
        fail(draft, plan, image, ErrorInfo(EXPRESSION, error.message))
    except InvalidError as error:
        fail(draft, plan, image, ErrorInfo(EXPRESSION, str(error)))


def _go_on(draft: Draft, plan: NodePlan, group: TaskRow, row: TaskRow) -> None:
    spec = spec_of(plan)
    error = _collect(draft, plan, group, row)
    if error is None and _is_enough(draft, plan, row):
        draft.complete(plan, group, _output(draft, plan, group, row))
        return
    if error is None and row.index + 1 >= spec.max_iterations:
        error = ErrorInfo(MAX_ITERATIONS, f"repeat did not end within {spec.max_iterations} iterations")
    if error is not None:
        fail(draft, plan, group, error)
    else:
        _next(draft, plan, group, row.index + 1)


def _collect(draft: Draft, plan: NodePlan, group: TaskRow, row: TaskRow) -> ErrorInfo | None:
    """Gather the iteration's value; the error if all of them are more than an output may be."""
    template = spec_of(plan).collect
    if template is None:
        return None
    value = Payload.of(render(draft, plan, template, row, output=_value(row)))
    row.detail = replace(row.detail or Detail(), collected=value)
    loop = _loop(group)
    size = loop.size + 1 + value.size()
    _keep(group, replace(loop, size=size))
    most = draft.limits.output_bytes
    if size <= most:
        return None
    return ErrorInfo(OUTPUT_TOO_LARGE, f"what collect gathered has more than {most} bytes in all")


def _is_enough(draft: Draft, plan: NodePlan, row: TaskRow) -> bool:
    spec = spec_of(plan)
    if spec.until is not None:
        return holds(draft, plan, spec.until, row, output=_value(row))
    assert spec.while_ is not None  # noqa: S101  # exactly one of the two is set
    return not holds(draft, plan, spec.while_, row, output=_value(row))


def _output(draft: Draft, plan: NodePlan, group: TaskRow, row: TaskRow) -> Payload:
    if spec_of(plan).collect is None:
        return row.output or NULL
    try:
        return collected(draft, plan, _loop(group))
    except Lacking:
        draft.lacking().merge(after(draft.plan, plan))
        raise


def _next(draft: Draft, plan: NodePlan, group: TaskRow, index: int) -> None:
    delay = spec_of(plan).delay
    row = draft.make(plan, index)
    wait_ms = 0 if delay is None else millis(draft, plan, delay, row)
    _born(group, index)
    if wait_ms <= 0:
        begin_iteration(draft, plan, group, row)
        return
    _running(group, 1)
    draft.activate(row, NodeState.WAITING)
    draft.set_timer(TimerKind.DELAY, plan.name, wait_ms, index)


def spec_of(plan: NodePlan) -> Repeat:
    """What a repeat node says."""
    spec = plan.node.repeat
    assert spec is not None  # noqa: S101  # asked by the caller
    return spec


def _value(row: TaskRow) -> object:
    return row.output.value if row.output is not None else None


def _loop(group: TaskRow) -> Loop:
    loop = group.detail.loop if group.detail is not None else None
    return loop or Loop(0)


def _keep(group: TaskRow, loop: Loop) -> None:
    group.detail = replace(group.detail or Detail(), loop=loop)


def _born(group: TaskRow, index: int) -> None:
    _keep(group, replace(_loop(group), born=index + 1, next=index + 1))


def _running(group: TaskRow, running: int) -> None:
    _keep(group, replace(_loop(group), running=running))


def _ended(group: TaskRow, row: TaskRow) -> None:
    loop = _loop(group)
    done = row.state is NodeState.COMPLETED
    _keep(group, replace(loop, running=0, completed=loop.completed + done, failed=loop.failed + (not done)))
