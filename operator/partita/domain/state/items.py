"""The items of a forEach as they are made: rows with their own evaluated inputs, a bounded number in one decision.

Invariant: an item's input is evaluated once, when its row is made, whatever becomes of the run; what cannot be
evaluated stays on the row as its error until the item's turn. Each decision makes at least one item and then stops
where it would make more than a chunk, or has spent about what one field may spend; so that the longest list never
holds a run's lock for long. The trade-off is a message to oneself for a window that is larger than that.
"""

from __future__ import annotations

from typing import Final

from partita.domain.error_types import EXPRESSION, INPUT_TOO_LARGE
from partita.domain.errors import InvalidError
from partita.domain.expressions import ExpressionError, Template
from partita.domain.payload import Payload
from partita.domain.state.course import Course, spec_of
from partita.domain.state.draft import Draft
from partita.domain.state.failing import oversize
from partita.domain.state.parts import Items, items_of
from partita.domain.state.plan import NodePlan
from partita.domain.state.rows import ErrorInfo, TaskRow
from partita.domain.state.scope import Scope, scope_of

_BYTES_A_VISIT: Final = 32
"""Bytes of an input that cost about as much as one visit of an expression: encoding it, and writing its row."""


def make_items(course: Course) -> bool:
    """Make the next rows; False if this decision may make no more. Raises Lacking."""
    draft, plan = course.draft, course.plan
    if draft.made and _is_enough(draft):
        return False
    template = None if plan.input is not None else plan.node.input
    scope = scope_of(draft, plan, template.refs) if template is not None else {}
    items = items_of(draft, plan) if template is not None else None
    while course.born < course.total:
        row = draft.make(plan, course.born)
        course.faulty += not _evaluate(draft, plan, row, template, scope, items)
        course.born += 1
        draft.made += 1
        if _is_enough(draft):
            break
    return True


def _is_enough(draft: Draft) -> bool:
    return draft.made >= draft.limits.loop_chunk or draft.visits >= draft.limits.visits


def _evaluate(
    draft: Draft, plan: NodePlan, row: TaskRow, template: Template | None, scope: Scope, items: Items | None
) -> bool:
    """Give the row its input, or the error that keeps it from having one; whether it has one."""
    if template is None or items is None:
        row.input = plan.input
        return True
    try:
        names = items.names(spec_of(plan).variable, row.index)
        payload = Payload.of(template.render({**scope, **names}, draft))
        row.error = oversize(draft, payload, "input", INPUT_TOO_LARGE)
        draft.visits += payload.size() // _BYTES_A_VISIT
    except ExpressionError as error:
        row.error = ErrorInfo(EXPRESSION, error.message)
    except InvalidError as error:
        row.error = ErrorInfo(EXPRESSION, str(error))
    if row.error is not None:
        return False
    row.input = payload
    return True
