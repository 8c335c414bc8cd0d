"""Edges: where they come from, what is wrong with them, and the nodes that they connect.

Invariant: linear in nodes and edges. Edges are dependsOn, then the nodes that expressions name, then the nodes that
name this one in a ``next`` list, each once; their order is that of ``from`` and does not depend on the order of keys.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from partita.domain.errors import Problem
from partita.domain.manifest import limits
from partita.domain.manifest.nodes import NodeDraft
from partita.domain.model import Join, Node

Unknown = Callable[[str, str, bool], Problem | None]
"""What is wrong with a name that no node here has: of its path, the name, and whether an expression reads it. None if
it may be read although it makes no edge."""
_MOST_CYCLES: Final = 10
_LONGEST_SHOWN: Final = 20
"""Names of a cycle that are written out."""


@dataclass(slots=True)
class Graph:
    """Sources of each node, in order, with the path of the field that makes the edge."""

    sources: dict[str, dict[str, str]] = field(default_factory=dict)
    read: set[tuple[str, str]] = field(default_factory=set)
    """The edges, as source and target, that only an expression makes."""

    def targets(self) -> dict[str, list[str]]:
        """Targets of each node, in the order of the definition."""
        found: dict[str, list[str]] = {name: [] for name in self.sources}
        for name, sources in self.sources.items():
            for source in sources:
                found[source].append(name)
        return found


def build_graph(drafts: Mapping[str, NodeDraft], unknown: Unknown, problems: list[Problem]) -> Graph:
    """The edges between nodes that exist; the others become problems."""
    builder = _Builder(Graph({name: {} for name in drafts}), unknown, problems)
    for name, draft in drafts.items():
        for index, source in enumerate(draft.depends):
            builder.edge(source, name, f"{draft.path}.dependsOn[{index}]")
        for path, refs in draft.places:
            for source in refs.order:
                builder.edge(source, name, path, read=True)
    for name, draft in drafts.items():
        for path, targets in draft.choices:
            for target in targets:
                builder.choice(name, target, path)
    return builder.graph


@dataclass(slots=True)
class _Builder:
    graph: Graph
    unknown: Unknown
    problems: list[Problem]

    def edge(self, source: str, target: str, path: str, *, read: bool = False) -> None:
        if source == target:
            self.problems.append(Problem(path, _itself(target, read)))
        elif source in self.graph.sources:
            if read and source not in self.graph.sources[target]:
                self.graph.read.add((source, target))
            self.graph.sources[target].setdefault(source, path)
        else:
            self._note(path, source, read)

    def choice(self, source: str, target: str, path: str) -> None:
        if source == target:
            self.problems.append(Problem(path, f"node {source} leads to itself; expected another node"))
        elif target in self.graph.sources:
            self.graph.sources[target].setdefault(source, path)
        else:
            self._note(path, target, False)

    def _note(self, path: str, name: str, read: bool) -> None:
        """Looking for a similar name costs a walk over all names: no more than are shown are looked for."""
        if len(self.problems) < limits.PROBLEMS:
            problem = self.unknown(path, name, read)
            if problem is not None:
                self.problems.append(problem)


def _itself(name: str, read: bool) -> str:
    if read:
        return f"names its own node {name}, which has no output yet; expected another node, or previous in a repeat"
    return f"node {name} waits for itself; expected another node"


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
        why = "; naming a node in an expression makes an edge" if (ordered[-2], ordered[0]) in graph.read else ""
        yield Problem(path, f"closes a cycle: {_shown(ordered)}; expected edges that lead one way{why}")
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
