"""Which edges of a settled node are live.

Invariant: it follows from the node's own row and its definition alone, so that edges need no rows of their own and can
be counted again at any time.
"""

from __future__ import annotations

from partita.domain.state.plan import NodePlan
from partita.domain.state.rows import NodeState, TaskRow

_NOTHING: frozenset[str] = frozenset()


def live_edges(plan: NodePlan, row: TaskRow) -> tuple[bool, frozenset[str]]:
    """Of a settled node: whether its plain edges are live, and which of the targets that it may choose it chose.

    A node that was stepped over chooses nothing. A failure that was caught leaves only its route alive.
    """
    state = row.state
    chosen = frozenset(row.route) if row.route else _NOTHING
    if state is NodeState.COMPLETED:
        return True, chosen
    if state is NodeState.SKIPPED:
        return row.stepped_over, _NOTHING
    if state is NodeState.FAILED:
        if row.route is not None:
            return False, chosen
        return plan.node.continue_on_failure, _NOTHING
    return False, _NOTHING


def edge_is_live(source: NodePlan, row: TaskRow, target: str) -> bool:
    """Whether the edge from a node in this state to a target is live; False while it is not settled."""
    plain, chosen = live_edges(source, row)
    for plan, must_be_chosen in source.edges:
        if plan.name == target:
            return target in chosen if must_be_chosen else plain
    return False
