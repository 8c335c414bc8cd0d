"""Following the edges of settled nodes: joins, firing, skipping, cancelling what a join no longer needs.

Invariant: every edge is counted once, because a node settles once; a queue is worked through instead of recursing, so
that the longest chain of skipped nodes costs time in proportion to its edges and no stack.
"""

from __future__ import annotations

from partita.domain.error_types import CANCELLED
from partita.domain.state.closing import advance
from partita.domain.state.draft import Draft, keys_of
from partita.domain.state.liveness import live_edges
from partita.domain.state.loops import part_settled
from partita.domain.state.nodes import start
from partita.domain.state.plan import NodePlan, Verdict
from partita.domain.state.reading import Lacking
from partita.domain.state.releasing import cancel_parts, release
from partita.domain.state.rows import SETTLED, ErrorInfo, NodeState, TaskRow
from partita.domain.state.undo import undone


def propagate(draft: Draft) -> None:
    """Follow the edges of everything that has settled, and leave the run's stage if it is over. Raises Lacking."""
    _follow(draft)
    while advance(draft):
        _follow(draft)


def _follow(draft: Draft) -> None:
    settled = draft.settled
    skipped: list[str] = []
    stepped: list[str] = []
    while (settled or draft.parts) and not draft.ended:
        if draft.parts:
            _part_settled(draft, *draft.parts.popleft())
            continue
        plan, row = settled.popleft()
        if plan.stage is not draft.run.stage:
            continue
        if row.state is NodeState.SKIPPED:
            skipped.append(plan.name)
            if row.stepped_over:
                stepped.append(plan.name)
        if plan.edges:
            plain, chosen = live_edges(plan, row)
            for target, must_be_chosen in plan.edges:
                try:
                    _settle_edge(draft, target, target.name in chosen if must_be_chosen else plain)
                except Lacking:
                    continue
    if skipped:
        _note_skipped(draft, skipped, stepped)


def _part_settled(draft: Draft, plan: NodePlan, row: TaskRow) -> None:
    try:
        if plan.undoes is not None:
            undone(draft, row)
        elif plan.stage is draft.run.stage:
            part_settled(draft, plan, row)
    except Lacking:
        return  # what else has settled may lack rows too


def _note_skipped(draft: Draft, skipped: list[str], stepped: list[str]) -> None:
    details: dict[str, object] = {"nodes": skipped}
    if stepped:
        details["steppedOver"] = stepped
    draft.note("NodeSkipped", key=draft.plan.nodes[skipped[0]].key, details=details)


def _settle_edge(draft: Draft, plan: NodePlan, live: bool) -> None:
    if draft.ended:
        return
    if not plan.tracked and plan.name not in draft.run.applied_cancel_nodes:
        _decide_join(draft, plan, None, Verdict.FIRE if live and plan.needed <= 1 else Verdict.SKIP)
        return
    row = draft.row(plan.key)
    if row is not None and (row.fired or row.state in SETTLED):
        return
    if len(plan.predecessors) == 1:
        _decide_join(draft, plan, row, Verdict.FIRE if live and plan.needed <= 1 else Verdict.SKIP)
        return
    image = draft.image(plan, row)
    image.edges_settled += 1
    image.edges_live += live
    _decide_join(draft, plan, image, plan.verdict(image.edges_settled, image.edges_live))


def _decide_join(draft: Draft, plan: NodePlan, row: TaskRow | None, verdict: Verdict) -> None:
    if verdict is Verdict.FIRE:
        if plan.node.cancel_remaining:
            _cancel_sources(draft, plan)
        start(draft, plan, row)
    elif verdict is Verdict.SKIP:
        draft.settle(plan, draft.image(plan, row), NodeState.SKIPPED)


def _cancel_sources(draft: Draft, joined: NodePlan) -> None:
    """Cancel the unsettled sources of a join and what leads only to them."""
    sources = keys_of(joined.predecessors)
    cancelled: dict[str, tuple[NodePlan, TaskRow | None]] = {}
    lacking = False
    for plan in joined.ancestors:
        try:
            row = draft.row(plan.key)
        except Lacking:
            lacking = True
            continue
        if row is not None and row.state in SETTLED:
            continue
        if plan.key in sources or all(target.name in cancelled for target, _ in plan.edges):
            cancelled[plan.name] = (plan, row)
    if lacking:
        raise Lacking
    error = ErrorInfo(CANCELLED, f"{joined.name} no longer needs this node")
    for plan, row in reversed(cancelled.values()):
        _cancel(draft, plan, row, error)
    if cancelled:
        draft.note("CancelRequested", key=joined.key, details={"nodes": list(reversed(cancelled))})
        draft.visible(urgent=True)


def _cancel(draft: Draft, plan: NodePlan, row: TaskRow | None, error: ErrorInfo) -> None:
    image = draft.image(plan, row)
    cancel_parts(draft, plan, image, error)
    release(draft, plan, image)
    image.error = error
    draft.settle(plan, image, NodeState.CANCELLED)
