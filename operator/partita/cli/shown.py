"""A run's records as the lines that the command line shows: in the order of its definition, stage by stage.

Invariant: pure. A loop is one line whatever it has, children stand below the node that started them, and what reverses
a node or runs at the end is marked as such.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Final
from uuid import UUID

from partita.cli.backend import ChildLine, NodeLine, RunLine
from partita.domain.model import Definition
from partita.domain.payload import Json
from partita.domain.state.rows import ErrorInfo, NodeState, RunStatus, Stage, is_undo
from partita.engine import projection
from partita.kube.words import error_text, message_of, node_message, waiting_for
from partita.store import views

CHILD_LINES: Final = 5
"""Most children that are shown below one node; ``list --parent`` has all."""
Children = Mapping[str, Sequence[ChildLine]]


def run_line(
    run: views.RunView, waits: Sequence[projection.WaitSummary], nodes: Sequence[projection.NodeSummary] = ()
) -> RunLine:
    """One line of a list."""
    return RunLine(
        id=str(run.id),
        namespace=run.namespace,
        name=run.name,
        definition=f"{run.definition}/{run.subflow}" if run.subflow else run.definition,
        version=run.version,
        phase=run.status.value,
        stage=run.stage,
        progress=f"{run.done}/{run.total}",
        waiting=waiting_for(run.status, waits),
        message=message_of(run.status, error_text(run.error), run.reason, nodes),
        created_at=run.created_at,
        finished_at=run.finished_at,
    )


def node_lines(
    begun: Sequence[projection.NodeSummary],
    waits: Sequence[projection.WaitSummary],
    flow: Definition,
    children: Children,
) -> tuple[NodeLine, ...]:
    """Every node of the flow, those that nothing has happened to as Pending; then what was undone, then finally's."""
    known = {node.name: node for node in begun}
    undone = [node.name for node in begun if is_undo(node.name)]
    last = flow.finally_.nodes if flow.finally_ is not None else ()
    stages = ((Stage.MAIN, flow.nodes), (Stage.UNDO, undone), (Stage.FINALLY, last))
    return tuple(
        _line(name, stage, known.get(name), waits, children.get(name, ())) for stage, names in stages for name in names
    )


def _line(
    name: str,
    stage: Stage,
    node: projection.NodeSummary | None,
    waits: Sequence[projection.WaitSummary],
    children: Sequence[ChildLine],
) -> NodeLine:
    if node is None:
        return NodeLine(name=name, stage=stage.value, state="Pending", attempt=0, message="")
    return NodeLine(
        name=name,
        stage=stage.value,
        state=node.state,
        attempt=node.attempt,
        message=node_message(node, waits),
        children=tuple(children[:CHILD_LINES]) or _coming(node),
        more_children=_hidden(node, len(children)),
    )


def _hidden(node: projection.NodeSummary, children: int) -> int:
    """Children of a loop that are not shown: no more of them are looked at than can be, so its progress counts too."""
    if not children or node.loop is None:
        return 0
    begun = node.loop.completed + node.loop.failed + node.loop.running
    return max(children, begun) - min(children, CHILD_LINES)


def _coming(node: projection.NodeSummary) -> tuple[ChildLine, ...]:
    """The child that is about to start."""
    if node.child is None or node.state != NodeState.WAITING:
        return ()
    return (ChildLine(id=str(node.child), index=None, phase=RunStatus.PENDING.value),)


def node_summary(node: views.NodeView) -> projection.NodeSummary:
    """A node's record as the words about it need it."""
    return projection.NodeSummary(
        name=node.node,
        state=node.state,
        attempt=node.attempt,
        message=error_text(node.error),
        loop=node.loop,
        child=node.child,
    )


def children_by_node(runs: Iterable[views.RunView], flow: Definition) -> Children:
    """Children below the nodes that started them: the latest one, of a loop all, the failed ones first."""
    found: defaultdict[str, list[views.RunView]] = defaultdict(list)
    for run in runs:
        if run.parent is not None:
            found[run.parent.node].append(run)
    return {name: _chosen(children, _is_loop(flow, name)) for name, children in found.items()}


def _chosen(children: list[views.RunView], loop: bool) -> list[ChildLine]:
    if not loop:
        latest = max(children, key=lambda run: (run.parent.attempt if run.parent else 0, run.id))
        return [_child(latest, loop=False)]
    ranked = sorted(children, key=lambda run: (_rank(run), run.parent.index if run.parent else 0, run.id))
    return [_child(run, loop=True) for run in ranked]


def _rank(run: views.RunView) -> int:
    """What people look for first."""
    return ("Failed", "Suspended", "Running", "Pending", "Cancelled", "Succeeded").index(run.status.value)


def _child(run: views.RunView, *, loop: bool) -> ChildLine:
    return ChildLine(
        id=str(run.id), index=run.parent.index if loop and run.parent is not None else None, phase=run.status.value
    )


def _is_loop(flow: Definition, name: str) -> bool:
    node = flow.nodes.get(name) or (flow.finally_.nodes.get(name) if flow.finally_ is not None else None)
    return node is not None and (node.for_each is not None or node.repeat is not None)


def waits_of(detail: views.RunDetailView) -> list[projection.WaitSummary]:
    """What a run waits for: signals, timers and children."""
    own = detail.run.id  # of a subflow's run its waits stand in another run, where it is the child
    signals = [
        _wait("signal", wait.node, wait.name, child=None if wait.child == own else wait.child) for wait in detail.waits
    ]
    timers = [_wait(timer.kind, timer.node, until=timer.fire_at) for timer in detail.timers]
    children = [
        _wait("child", node.node, str(node.child or ""), child=node.child)
        for node in detail.nodes
        if node.kind == "workflow" and node.state == "Waiting"
    ]
    return signals + timers + children


def _wait(
    kind: str, node: str, name: str = "", *, until: datetime | None = None, child: UUID | None = None
) -> projection.WaitSummary:
    return projection.WaitSummary(kind=kind, name=name, node=node, until=until, dead=None, child=child)


def waits_listed(waits: Sequence[views.WaitingView]) -> list[projection.WaitSummary]:
    """The same, for a line of a list."""
    return [_wait(wait.kind, wait.node, wait.name, until=wait.until, child=wait.child) for wait in waits]


def error_json(error: ErrorInfo | None) -> Json:
    """An error with its details."""
    if error is None:
        return None
    return {"type": error.type, "message": error.message, "details": error.details.value if error.details else None}
