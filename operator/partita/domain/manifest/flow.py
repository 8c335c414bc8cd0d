"""Reads a flow: the nodes, ``finally`` and output of a definition or of one of its subflows.

Invariant: reading notes every problem and goes on; what a flow becomes is asked for only if there is none.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from partita.domain.errors import Problem
from partita.domain.manifest import limits, shapes
from partita.domain.manifest.exclusive import Work, never_problems
from partita.domain.manifest.expressions import Expressions
from partita.domain.manifest.graph import Graph, build_graph, connected, cycle_problems, join_problems
from partita.domain.manifest.names_known import FlowNames
from partita.domain.manifest.nodes import NodeDraft, read_node
from partita.domain.manifest.policies import NodeDefaults
from partita.domain.manifest.reader import Fields
from partita.domain.manifest.shape import Shape
from partita.domain.manifest.variables import COMMON
from partita.domain.model import Finally, Node
from partita.domain.nearest import did_you_mean


@dataclass(slots=True)
class FlowDraft:
    """A flow as far as it could be read."""

    subflow: str
    drafts: dict[str, NodeDraft]
    final: dict[str, NodeDraft]
    final_timeout_ms: int | None
    head: dict[str, Any]
    """``output``, ``fail_fast`` and ``timeout_ms``."""
    output: Expressions
    graph: Graph = field(default_factory=Graph)
    final_graph: Graph = field(default_factory=Graph)

    @property
    def names(self) -> FlowNames:
        """The names of its nodes."""
        return FlowNames(self.subflow, self.drafts, self.final)

    def parts(self) -> dict[str, Any]:
        """The fields of a Definition that come from the flow."""
        nodes = connected(self.drafts, self.graph)
        return {
            **self.head,
            "subflow": self.subflow,
            "nodes": nodes,
            "roots": _roots(nodes),
            "finally_": self._finally(),
            "output_reads": self.output.refs.nodes,
        }

    def _finally(self) -> Finally | None:
        if not self.final:
            return None
        nodes = connected(self.final, self.final_graph)
        return Finally(nodes, _roots(nodes), self.final_timeout_ms)

    def depends(self) -> dict[tuple[str, str], tuple[str, ...]]:
        """The written ``dependsOn`` lists, by subflow and node."""
        return {(self.subflow, draft.name): draft.depends for draft in (*self.drafts.values(), *self.final.values())}


def _roots(nodes: Mapping[str, Node]) -> tuple[str, ...]:
    return tuple(node.name for node in nodes.values() if not node.predecessors)


def read_flow(fields: Fields, subflow: str, defaults: NodeDefaults, problems: list[Problem]) -> FlowDraft:
    """The fields that definitions and subflows have in common."""
    output = Expressions(COMMON, problems, defaults.config)
    drafts = _nodes(fields, shapes.NODE, limits.NODES, partial(read_node, defaults=defaults, problems=problems), {})
    final, timeout = _read_finally(fields, defaults, drafts, problems)
    fail_fast = fields.flag("failFast")
    head = {
        "timeout_ms": fields.duration("timeout"),
        "fail_fast": True if fail_fast is None else fail_fast,
        "output": output.object(fields, "output"),
    }
    return FlowDraft(subflow, drafts, final, timeout, head, output)


def _nodes(
    fields: Fields, shape: Shape, most: int, read: partial[NodeDraft | None], others: Mapping[str, NodeDraft]
) -> dict[str, NodeDraft]:
    fields.need("nodes", f"a list of 1 to {most:,} nodes")
    found: dict[str, NodeDraft] = {}
    for node in fields.each("nodes", shape, most, least=1):
        draft = read(node)
        if draft is None:
            continue
        other = found.get(draft.name) or others.get(draft.name)
        if other is not None:
            node.problem("name", f"{draft.name!r} is the name of {other.path} already; expected another")
        else:
            found[draft.name] = draft
    return found


def _read_finally(
    flow: Fields, defaults: NodeDefaults, drafts: Mapping[str, NodeDraft], problems: list[Problem]
) -> tuple[dict[str, NodeDraft], int | None]:
    fields = flow.fields("finally", shapes.FINALLY)
    if fields is None:
        return {}, None
    read = partial(read_node, defaults=defaults, problems=problems, in_finally=True)
    return _nodes(fields, shapes.NODE, limits.FINALLY_NODES, read, drafts), fields.duration("timeout")


def check_flow(
    flow: FlowDraft, subflows: Mapping[str, object], others: tuple[FlowNames, ...], problems: list[Problem], work: Work
) -> None:
    """Everything that needs the whole flow: its edges, and what its names mean."""
    names = flow.names
    for path, refs in flow.output.places:
        for name in refs.order:
            if name not in flow.drafts and len(problems) < limits.PROBLEMS:
                problems.append(names.in_nodes(others, path, name))
    _check_subflows(flow, subflows, problems)
    flow.graph = build_graph(flow.drafts, lambda path, name, _: names.in_nodes(others, path, name), problems)
    _check_graph(flow.drafts, flow.graph, problems, work)
    flow.final_graph = build_graph(
        flow.final, lambda path, name, read: names.in_finally(others, path, name, read), problems
    )
    _check_graph(flow.final, flow.final_graph, problems, work)


def _check_graph(drafts: Mapping[str, NodeDraft], graph: Graph, problems: list[Problem], work: Work) -> None:
    cycles = [*cycle_problems(graph)]
    problems.extend(cycles)
    problems.extend(join_problems(drafts, graph))
    if not cycles:
        problems.extend(never_problems(drafts, graph, work))


def _check_subflows(flow: FlowDraft, subflows: Mapping[str, object], problems: list[Problem]) -> None:
    for draft in (*flow.drafts.values(), *flow.final.values()):
        child = draft.node.workflow if draft.node is not None else None
        if child is None or not child.subflow or child.subflow in subflows or len(problems) >= limits.PROBLEMS:
            continue
        hint = did_you_mean(child.subflow, subflows)
        message = f"names subflow {child.subflow!r}, which does not exist{hint}; expected the name of a spec.subflows[]"
        problems.append(Problem(f"{draft.path}.workflow.subflow", message))
