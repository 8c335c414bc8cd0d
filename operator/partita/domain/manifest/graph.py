"""Edges: where they come from, what is wrong with them, and the nodes that they connect.

Invariant: linear in nodes and edges. Edges are dependsOn, then the nodes that expressions name, then the nodes that
name this one in a ``next`` list, each once; their order is that of ``from`` and does not depend on the order of keys.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from partita.domain.errors import Problem
from partita.domain.manifest import limits
from partita.domain.manifest.nodes import NodeDraft
from partita.domain.model import Join, Node
from partita.domain.nearest import did_you_mean

_MOST_CYCLES: Final = 10
_LONGEST_SHOWN: Final = 20
"""Names of a cycle that are written out."""


@dataclass(slots=True)
class Graph:
    """Sources of each node, in order, with the path of the field that makes the edge."""

    sources: dict[str, dict[str, str]] = field(default_factory=dict)

    def targets(self) -> dict[str, list[str]]:
        """Targets of each node, in the order of the definition."""
        found: dict[str, list[str]] = {name: [] for name in self.sources}
        for name, sources in self.sources.items():
            for source in sources:
                found[source].append(name)
        return found


def build_graph(drafts: Mapping[str, NodeDraft], problems: list[Problem]) -> Graph:
    """The edges between nodes that exist; the others become problems."""
    graph = Graph({name: {} for name in drafts})
    for name, draft in drafts.items():
        for index, source in enumerate(draft.depends):
            _edge(graph, drafts, source, name, f"{draft.path}.dependsOn[{index}]", problems)
        for path, refs in draft.places:
            for source in refs.order:
                _edge(graph, drafts, source, name, path, problems)
    for name, draft in drafts.items():
        for path, targets in draft.choices:
            for target in targets:
                _choice(graph, drafts, name, target, path, problems)
    return graph


def _edge(
    graph: Graph, drafts: Mapping[str, NodeDraft], source: str, target: str, path: str, problems: list[Problem]
) -> None:
    if source == target:
        problems.append(Problem(path, f"node {target} waits for itself; expected another node"))
    elif source in drafts:
        graph.sources[target].setdefault(source, path)
    else:
        _note_unknown(problems, path, source, drafts)


def _choice(
    graph: Graph, drafts: Mapping[str, NodeDraft], source: str, target: str, path: str, problems: list[Problem]
) -> None:
    if source == target:
        problems.append(Problem(path, f"node {source} leads to itself; expected another node"))
    elif target in drafts:
        graph.sources[target].setdefault(source, path)
    else:
        _note_unknown(problems, path, target, drafts)


def unknown_node(path: str, name: str, known: Mapping[str, object]) -> Problem:
    """The problem of a name that no node has."""
    return Problem(path, f"names node {name!r}, which does not exist{did_you_mean(name, known)}")


def _note_unknown(problems: list[Problem], path: str, name: str, known: Mapping[str, object]) -> None:
    """Looking for a similar name costs a walk over all names: no more than are shown are looked for."""
    if len(problems) < limits.PROBLEMS:
        problems.append(unknown_node(path, name, known))


def cycle_problems(graph: Graph) -> Iterator[Problem]:
    """Every cycle, named with all its nodes, at the field that closes it; at most ten."""
    left = _cyclic(graph)
    for _ in range(_MOST_CYCLES):
        if not left:
            return
        cycle = _one_cycle(graph, left)
        names = [*reversed(cycle)]
        first = names.index(min(names))
        ordered = names[first:] + names[: first + 1]
        path = graph.sources[ordered[0]][ordered[-2]]
        yield Problem(path, f"closes a cycle: {_shown(ordered)}; expected edges that lead one way")
        left = _trimmed(graph, left - {*cycle})


def _shown(names: list[str]) -> str:
    if len(names) > _LONGEST_SHOWN:
        half = _LONGEST_SHOWN // 2
        names = [*names[:half], f"({len(names) - 2 * half} more)", *names[-half:]]
    return " → ".join(names)


def _cyclic(graph: Graph) -> set[str]:
    """Nodes on a cycle or behind one."""
    return _trimmed(graph, set(graph.sources))


def _trimmed(graph: Graph, nodes: set[str]) -> set[str]:
    waiting = {name: sum(source in nodes for source in graph.sources[name]) for name in nodes}
    targets = graph.targets()
    ready = [name for name, count in waiting.items() if not count]
    left = set(nodes)
    while ready:
        name = ready.pop()
        left.discard(name)
        for target in targets[name]:
            if target in waiting:
                waiting[target] -= 1
                if not waiting[target]:
                    ready.append(target)
    return left


def _one_cycle(graph: Graph, left: set[str]) -> list[str]:
    """Walk against the edges until a node repeats; every node that is left has a source that is left."""
    name = min(left)
    walked: dict[str, int] = {}
    while name not in walked:
        walked[name] = len(walked)
        name = next(source for source in graph.sources[name] if source in left)
    return [*walked][walked[name] :]


def topological(graph: Graph) -> list[str]:
    """The nodes, sources first; only for a graph without cycles."""
    waiting = {name: len(sources) for name, sources in graph.sources.items()}
    targets = graph.targets()
    order = [name for name, count in waiting.items() if not count]
    for name in order:
        for target in targets[name]:
            waiting[target] -= 1
            if not waiting[target]:
                order.append(target)
    return order


def join_problems(drafts: Mapping[str, NodeDraft], graph: Graph) -> Iterator[Problem]:
    """Joins that ask for more edges than there are."""
    for name, draft in drafts.items():
        node, edges = draft.node, len(graph.sources[name])
        if node is not None and node.join is Join.COUNT and node.join_count > edges:
            yield Problem(f"{draft.path}.joinCount", f"is {node.join_count}, but {name} has {edges} edges")


def connected(drafts: Mapping[str, NodeDraft], graph: Graph) -> dict[str, Node]:
    """The nodes with their edges and what they read filled in."""
    targets = graph.targets()
    nodes: dict[str, Node] = {}
    for name, draft in drafts.items():
        if draft.node is None:
            continue
        variables = frozenset[str]().union(*(refs.names for _, refs in draft.places))
        nodes[name] = replace(
            draft.node,
            predecessors=tuple(graph.sources[name]),
            successors=tuple(targets[name]),
            reads=frozenset[str]().union(*(refs.nodes for _, refs in draft.places)),
            reads_input="input" in variables,
            reads_from="from" in variables,
        )
    return nodes
