"""Finds nodes that can never run: no outcome of the choices before them leads to them.

Invariant: only certain cases are reported, and only where they begin. For each node it is worked out which outcomes of
the choices before it (the case of a switch, the route of an error, of a timeout) are needed for it to run; if none is
left, or if the edges that it needs come from nodes that end the run, it never runs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from partita.domain.errors import Problem
from partita.domain.manifest import limits
from partita.domain.manifest.graph import Graph, topological
from partita.domain.manifest.nodes import NodeDraft
from partita.domain.model import Join, Node, NodeKind

Outcomes = dict[str, int]
"""For a choosing node the outcomes, as bits, under which something happens; one that is absent does not matter."""
_NORMAL: Final = ""
"""Stands for every target that no list of a choosing node names."""
_MOST_SHOWN: Final = 10
"""Branches that are written out."""


@dataclass(slots=True)
class Work:
    """Steps that are left for all flows of a definition; without any, nothing more is looked for."""

    left: int = field(default_factory=lambda: limits.EXCLUSIVITY_WORK)

    def spent(self, steps: int) -> bool:
        """Take steps; True when there were not enough."""
        self.left -= steps
        return self.left < 0


def never_problems(drafts: Mapping[str, NodeDraft], graph: Graph, work: Work) -> Iterator[Problem]:
    """One problem for each node that can never run although the nodes before it can."""
    needed: dict[str, Outcomes] = {}
    chosen = {name: _chosen(draft.node) for name, draft in drafts.items()}
    for name in topological(graph):
        if work.spent(sum(len(needed[source]) + 1 for source in graph.sources[name]) + 1):
            return
        sources = graph.sources[name]
        ends = [source for source in sources if _ends(drafts[source].node)]
        incoming = {
            source: _through(source, name, chosen[source], needed[source]) for source in sources if source not in ends
        }
        needed[name], problem = _joined(drafts[name], incoming, ends, sources, work)
        if problem is not None:
            yield problem


def _ends(node: Node | None) -> bool:
    """Whether nothing ever follows a node; one with a condition may be stepped over."""
    return node is not None and node.kind in (NodeKind.FAIL, NodeKind.SUCCEED) and node.when is None


def _joined(
    draft: NodeDraft, incoming: Mapping[str, Outcomes], ends: list[str], sources: Mapping[str, str], work: Work
) -> tuple[Outcomes, Problem | None]:
    """What is needed for a node to run, or nothing and why it never does."""
    node = draft.node
    if node is not None and node.join is Join.COUNT and node.join_count <= len(sources):
        most = _most_together([*incoming.values()], work)
        if most < node.join_count:
            return {}, _too_few(draft, most, node.join_count)
        return _some(incoming), None
    if ends and (node is None or node.join is Join.ALL or not incoming):
        return {}, Problem(sources[ends[0]], _ended(draft.name, ends[0]), lint=True)
    if node is None or node.join is Join.ALL:
        needed, clash = _all(incoming)
        return needed, None if clash is None else _problem(draft, clash, incoming)
    return _some(incoming), None


def _ended(name: str, end: str) -> str:
    return f"node {name} can never run: {end} ends the run; expected when at {end}, or no edge from it"


def _too_few(draft: NodeDraft, most: int, wanted: int) -> Problem:
    taken = "1 of its edges is" if most == 1 else f"{most} of its edges are"
    message = f"node {draft.name} can never run: at most {taken} taken together, found joinCount {wanted}"
    return Problem(f"{draft.path}.joinCount", message, lint=True)


def _most_together(incoming: Collection[Outcomes], work: Work) -> int:
    """How many edges can be taken together at most, looking at one choice at a time."""
    by_chooser: dict[str, Counter[int]] = {}
    for outcomes in incoming:
        for chooser, bits in outcomes.items():
            by_chooser.setdefault(chooser, Counter())[bits] += 1
    most = len(incoming)
    for counts in by_chooser.values():
        width = max(bits.bit_length() for bits in counts)
        if work.spent(width * len(counts)):
            return len(incoming)
        free = len(incoming) - counts.total()
        best = max(sum(count for bits, count in counts.items() if bits >> outcome & 1) for outcome in range(width))
        most = min(most, free + best)
    return most


def _through(source: str, target: str, chosen: Outcomes | None, needed: Outcomes) -> Outcomes:
    """What must have happened for the edge from a source to a target to be live."""
    return needed if chosen is None else {**needed, source: chosen.get(target, chosen[_NORMAL])}


def _chosen(source: Node | None) -> Outcomes | None:
    """The outcomes of a node that make its edge to each target live; None if it does not choose.

    Read once a node: its lists may be long, and it may have a thousand edges.
    """
    if source is None:
        return None
    cases = [case.next for case in source.switch]
    routes = [route.next for route in source.on_error]
    if source.event is not None and source.event.on_timeout is not None:
        routes.append(source.event.on_timeout.next or ())
    if not cases and not any(routes):
        return None
    bits: Outcomes = {_NORMAL: (1 << max(len(cases), 1)) - 1}
    for index, names in enumerate([*(cases or [()]), *routes]):
        for name in names:
            bits[name] = bits.get(name, 0) | 1 << index
    return bits


def _all(incoming: Mapping[str, Outcomes]) -> tuple[Outcomes, str | None]:
    """What must have happened for all edges, and a choice that would have to go two ways."""
    result: Outcomes = {}
    for outcomes in incoming.values():
        for chooser, bits in outcomes.items():
            left = result.get(chooser, bits) & bits
            if not left:
                return {}, chooser
            result[chooser] = left
    return result, None


def _some(incoming: Mapping[str, Outcomes]) -> Outcomes:
    """What must have happened for any one edge."""
    edges = [*incoming.values()]
    if not edges:
        return {}
    shared = set(edges[0]).intersection(*edges[1:])
    result: Outcomes = {}
    for chooser in shared:
        bits = 0
        for outcomes in edges:
            bits |= outcomes[chooser]
        result[chooser] = bits
    return result


def _problem(draft: NodeDraft, chooser: str, incoming: Mapping[str, Outcomes]) -> Problem:
    branches = [source for source, outcomes in incoming.items() if chooser in outcomes]
    if len(branches) > _MOST_SHOWN:
        branches[_MOST_SHOWN:] = [f"{len(branches) - _MOST_SHOWN} more"]
    return Problem(
        f"{draft.path}.join",
        f"node {draft.name} can never run: {chooser} never leads to all of {', '.join(branches)}; use join: merge",
        lint=True,
    )
