"""What is parked: rows that have fired and wait, because the run is suspended or a decision has spent enough.

Invariant: a parked row is Pending and has fired, so that no edge fires it again; what parks it also sees to it that it
starts: the run's resumption, which reads the whole run, or the message that the decision leaves its own run, which
names the nodes in their order. Trade-off: a message as long as the list of nodes, against an order kept on rows.
"""

from __future__ import annotations

from partita.domain.state.draft import Draft
from partita.domain.state.events import ParkedReleased, Reply
from partita.domain.state.loops import start_part
from partita.domain.state.nodes import start
from partita.domain.state.reading import Lacking
from partita.domain.state.rows import NodeState, TaskRow
from partita.domain.state.undo import start_undo


def in_order(draft: Draft) -> list[TaskRow]:
    """Every row that has not settled, in the order of the definition. Raises Lacking."""
    plans = draft.plan.nodes
    return sorted(draft.unsettled(), key=lambda row: (plans[row.node].order, row.index))


def start_parked(draft: Draft, row: TaskRow) -> None:
    """Start a row if it is parked. Raises Lacking."""
    if row.state is not NodeState.PENDING or not row.fired:
        return
    plan = draft.plan.nodes[row.node]
    if plan.undoes is not None:
        start_undo(draft, row.key)
    elif plan.is_part(row.index):
        start_part(draft, plan, row)
    else:
        start(draft, plan, row)


def parked_released(draft: Draft, event: ParkedReleased) -> None:
    """Start what an earlier decision of the run parked because it had spent enough, in this order. Raises Lacking."""
    if draft.suspended or draft.terminal:
        draft.reply(Reply("stale"))  # the resumption starts them
        return
    draft.begin()
    for plan in [draft.plan.nodes[name] for name in event.nodes]:
        if draft.ended:
            return
        try:
            row = draft.row(plan.key)
            if row is not None:
                start_parked(draft, row)
        except Lacking:
            continue
