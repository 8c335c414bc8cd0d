"""forEach: a node that runs once for each item of a list or an object.

Invariant: items start in order, at most ``maxParallel`` in flight; each settles once and is counted once, and the
group's row is all that has to be read to know what is next. An item that waits for its turn is known without reading
its row, which holds nothing but its input. Trade-off: the group's row is written with every item that settles, against
counting items ever again.
"""

from __future__ import annotations

from typing import Literal

from partita.domain.error_types import (
    CANCELLED,
    EXPRESSION,
    INPUT_TOO_LARGE,
    OUTPUT_TOO_LARGE,
    TOO_FEW_ITEMS,
    TOO_MANY_ITEMS,
)
from partita.domain.expressions import ExpressionError
from partita.domain.expressions.values import a_kind
from partita.domain.model import ForEach
from partita.domain.payload import Json, Payload
from partita.domain.state.ahead import after
from partita.domain.state.course import Course, spec_of
from partita.domain.state.draft import Draft
from partita.domain.state.failing import fail, fail_to_start, oversize
from partita.domain.state.items import make_items
from partita.domain.state.launching import launch
from partita.domain.state.parts import joined_outputs
from partita.domain.state.plan import NodePlan
from partita.domain.state.reading import Lacking
from partita.domain.state.releasing import cancel_parts
from partita.domain.state.rows import SETTLED, Detail, ErrorInfo, Loop, NodeKey, NodeState, TaskRow
from partita.domain.state.scope import render


def start_for_each(draft: Draft, plan: NodePlan, row: TaskRow | None) -> None:
    """The node starts: its items are evaluated, and the first ones begin. Raises Lacking, ExpressionError."""
    spec = spec_of(plan)
    items = render(draft, plan, spec.items)
    if not isinstance(items, list | dict):
        raise ExpressionError(f"forEach.items: expected a list or an object, found {a_kind(items)}")
    kept = Payload.of({"items": items})
    error = _refusal(draft, spec, items) or oversize(draft, kept, "list of items", INPUT_TOO_LARGE)
    if error is not None:
        fail_to_start(draft, plan, row, error)
        return
    image = draft.image(plan, row)
    image.fired = True
    image.input = kept
    image.detail = Detail(loop=Loop(len(items), keyed=isinstance(items, dict)))
    if not items:
        draft.complete(plan, image, Payload.of(items))
        return
    draft.activate(image, NodeState.WAITING)
    move_on(Course(draft, plan, image))


def _refusal(draft: Draft, spec: ForEach, items: Json) -> ErrorInfo | None:
    most = draft.limits.loop_items
    if len(items) > most:
        return ErrorInfo(TOO_MANY_ITEMS, f"forEach.items: has {len(items)} items; at most {most} are allowed")
    if len(items) < spec.join_count:
        return ErrorInfo(TOO_FEW_ITEMS, f"forEach.items: has {len(items)} items; joinCount is {spec.join_count}")
    return None


def item_settled(draft: Draft, plan: NodePlan, group: TaskRow, row: TaskRow) -> None:
    """An item (an image) has settled: count it, and move on. Raises Lacking."""
    course = Course(draft, plan, draft.image(plan, group))
    course.running -= 1
    _count(course, row)
    move_on(course)


def move_on(course: Course) -> None:
    """Start what may start, or end the node if nothing is left. Raises Lacking."""
    while course.room:
        if course.next == course.born and not make_items(course):
            course.draft.later(course.plan.name)
            break
        _start_next(course)
    course.save()
    if course.over:
        _finish(course)


def _start_next(course: Course) -> None:
    draft, plan = course.draft, course.plan
    row = _waiting_item(course, course.next)
    course.next += 1
    if row.error is not None:
        course.faulty -= 1
        row.fired = True
        fail(draft, plan, row, row.error)
    elif draft.suspended:
        row.fired = True
        draft.visible()
    else:
        begin_item(draft, plan, row)
        course.running += row.state not in SETTLED
    if row.state in SETTLED:  # it could not begin, or nobody waits for it: counted at once, in its turn
        draft.parts.pop()
        _count(course, row)


def begin_item(draft: Draft, plan: NodePlan, row: TaskRow) -> None:
    """The first attempt of an item (an image). Raises Lacking."""
    try:
        launch(draft, plan, row)
    except ExpressionError as error:
        fail(draft, plan, row, ErrorInfo(EXPRESSION, error.message))


def _waiting_item(course: Course, index: int) -> TaskRow:
    """The image of the item whose turn has come. Raises Lacking."""
    draft, plan = course.draft, course.plan
    key = NodeKey(plan.name, index)
    row = draft.known(key)
    if row is None and not course.faulty and plan.node.workflow is None:
        return draft.unread(plan, index)
    if row is None or (plan.node.workflow is not None and row.input is None and row.error is None):
        _ask_for_items(course, index)
    return draft.image(plan, row)


def _ask_for_items(course: Course, first: int) -> None:
    """Rows that have to be read before they start: those that may hold an error, and the inputs of children."""
    room = min(course.spec.max_parallel - course.in_flight, course.born - first)
    keys = {NodeKey(course.plan.name, first + offset) for offset in range(max(room, 1))}
    course.draft.lacking().outputs |= keys
    raise Lacking


def _count(course: Course, row: TaskRow) -> None:
    """What a settled item means for the node."""
    if row.state is NodeState.COMPLETED:
        course.completed += 1
        course.size += 1 + (row.output.size() if row.output is not None else 0)
        if not course.closing and course.joined:
            _close(course, "joined")
        return
    course.failed += 1
    if not course.closing and course.broken:
        course.group.error = row.error
        _close(course, "failed")


def _close(course: Course, why: Literal["joined", "failed"]) -> None:
    """No further item starts. Those in flight are waited for, or cancelled."""
    course.closing = why
    if course.spec.cancel_remaining:
        course.save()
        cancel_parts(course.draft, course.plan, course.group, _not_needed(course.plan))
        course.running, course.dropped = 0, True


def _finish(course: Course) -> None:
    draft, plan, group = course.draft, course.plan, course.group
    cancel_parts(draft, plan, group, _not_needed(plan), started=False)
    if course.closing == "failed":
        assert group.error is not None  # noqa: S101  # kept when it closed
        fail(draft, plan, group, group.error)
    elif course.size > draft.limits.output_bytes:
        fail(draft, plan, group, _too_large(draft))
    else:
        _complete(course)


def _complete(course: Course) -> None:
    draft, plan, group = course.draft, course.plan, course.group
    try:
        output = joined_outputs(draft, plan, course.loop())
    except Lacking:
        draft.lacking().merge(after(draft.plan, plan))
        raise
    error = oversize(draft, output, "list of outputs")
    if error is None:
        draft.complete(plan, group, output)
    else:
        fail(draft, plan, group, error)


def _not_needed(plan: NodePlan) -> ErrorInfo:
    return ErrorInfo(CANCELLED, f"{plan.name} does not need this item")


def _too_large(draft: Draft) -> ErrorInfo:
    return ErrorInfo(
        OUTPUT_TOO_LARGE, f"the outputs of all items have more than {draft.limits.output_bytes} bytes in all"
    )
