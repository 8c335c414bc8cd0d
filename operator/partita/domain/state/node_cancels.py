"""Cancelling some nodes of a run that goes on.

Invariant: a name acts once, on a node of the run's stage that has not settled; its edges die, and that is no failure.
A node that has not begun gets its row ahead of its edges: the run keeps the names, so that whoever fires a node knows
without a look at rows that are never there otherwise. Names of finally's nodes are kept until that stage begins.
"""

from __future__ import annotations

from collections.abc import Sequence

from partita.domain.error_types import CANCELLED
from partita.domain.state.draft import Draft
from partita.domain.state.plan import NodePlan
from partita.domain.state.releasing import cancel_parts, release
from partita.domain.state.rows import SETTLED, ErrorInfo, NodeState, Stage


def cancel_nodes(draft: Draft, names: Sequence[str], *, reason: str = "", by: str = "") -> bool:
    """Cancel those nodes that can be; whether there are any. The caller goes on with ``propagate``. Raises Lacking."""
    found = [plan for plan in map(draft.plan.nodes.get, dict.fromkeys(names)) if plan and _can_be(draft, plan)]
    if not found:
        return False
    run = draft.begin()
    cancelled = [plan.name for plan in found]
    draft.note("CancelRequested", who=by, details={"nodes": cancelled, "reason": reason})
    draft.visible(urgent=True)
    run.applied_cancel_nodes = (*run.applied_cancel_nodes, *cancelled)
    error = ErrorInfo(CANCELLED, reason or "the node was cancelled")
    for plan in found:
        if plan.stage is run.stage:
            cancel_node(draft, plan, error)
    return True


def _can_be(draft: Draft, plan: NodePlan) -> bool:
    if plan.undoes is not None or plan.name in draft.run.applied_cancel_nodes:
        return False
    if plan.stage is not draft.run.stage:
        return plan.stage is Stage.FINALLY
    row = draft.row(plan.key)
    return row is None or row.state not in SETTLED


def cancel_node(draft: Draft, plan: NodePlan, error: ErrorInfo) -> None:
    """The node, with all parts of a loop, is Cancelled; its edges are followed later. Raises Lacking."""
    image = draft.image(plan, draft.row(plan.key))
    cancel_parts(draft, plan, image, error)
    release(draft, plan, image)
    image.error = error
    draft.settle(plan, image, NodeState.CANCELLED)
