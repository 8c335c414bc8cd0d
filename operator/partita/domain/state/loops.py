"""Loops: a group row at which the edges end, and a row for each item or iteration.

Invariant: a group row stays Waiting until no part of it is Queued or Waiting; parts have no edges, and what becomes of
one is told to its group once.
"""

from __future__ import annotations

from partita.domain.state.course import Course, loop_of
from partita.domain.state.draft import Draft
from partita.domain.state.events import LoopContinued, Reply
from partita.domain.state.foreach import begin_item, item_settled, move_on
from partita.domain.state.plan import NodePlan
from partita.domain.state.repeat import begin_iteration, iteration_settled
from partita.domain.state.rows import NodeState, TaskRow


def part_settled(draft: Draft, plan: NodePlan, row: TaskRow) -> None:
    """An item or an iteration (an image) has ended. Raises Lacking."""
    group = _going(draft, plan)
    if group is not None:
        (item_settled if plan.node.for_each is not None else iteration_settled)(draft, plan, group, row)


def _going(draft: Draft, plan: NodePlan) -> TaskRow | None:
    """The group's row, if the loop has not ended. Raises Lacking."""
    group = draft.row(plan.key)
    return group if group is not None and group.state is NodeState.WAITING else None


def start_part(draft: Draft, plan: NodePlan, row: TaskRow) -> None:
    """What a suspension kept from starting starts. Raises Lacking."""
    group = _going(draft, plan)
    if group is None:
        return
    image = draft.image(plan, row)
    if plan.node.repeat is not None:
        begin_iteration(draft, plan, draft.image(plan, group), image)
        return
    course = Course(draft, plan, draft.image(plan, group))
    course.running += 1
    course.save()
    begin_item(draft, plan, image)


def delay_over(draft: Draft, plan: NodePlan, row: TaskRow) -> None:
    """The time between two iterations has passed. Raises Lacking."""
    group = _going(draft, plan)
    if group is not None:
        begin_iteration(draft, plan, draft.image(plan, group), draft.image(plan, row))


def loop_continued(draft: Draft, event: LoopContinued) -> None:
    """A forEach makes its next items. Raises Lacking."""
    plan = draft.plan.nodes.get(event.node)
    group = None if plan is None or draft.terminal else _going(draft, plan)
    if plan is None or group is None:
        draft.reply(Reply("stale"))
        return
    draft.begin()
    if loop_of(group).total:
        move_on(Course(draft, plan, draft.image(plan, group)))
