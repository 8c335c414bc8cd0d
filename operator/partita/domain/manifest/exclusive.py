"""Finds joins that can never fire: ``all`` over branches of which one choice takes only one.

Invariant: only certain cases are reported. For each node it is worked out which outcomes of the choices before it (the
case of a switch, the route of an error, of a timeout) are needed for it to run; if none is left, it never runs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from partita.domain.errors import Problem
from partita.domain.manifest import limits
from partita.domain.manifest.graph import Graph, topological
from partita.domain.manifest.nodes import NodeDraft
from partita.domain.model import Join, Node

Outcomes = dict[str, int]
"""For a choosing node the outcomes, as bits, under which something happens; one that is absent does not matter."""


def exclusive_problems(drafts: Mapping[str, NodeDraft], graph: Graph) -> Iterator[Problem]:
    """One problem for each join that can never fire."""
    needed: dict[str, Outcomes] = {}
    work = 0
    for name in topological(graph):
        incoming = {source: _through(drafts[source].node, name, needed[source]) for source in graph.sources[name]}
        work += sum(map(len, incoming.values())) + 1
        if work > limits.EXCLUSIVITY_WORK:
            return
        node = drafts[name].node
        if node is None or node.join is Join.ALL:
            needed[name], clash = _all(incoming)
            if clash is not None:
                yield _problem(drafts[name], clash, incoming)
        else:
            needed[name] = _some(incoming)


def _through(source: Node | None, target: str, needed: Outcomes) -> Outcomes:
    """What must have happened for the edge from a source to a target to be live."""
    if source is None:
        return needed
    taken = _taken(source, target)
    return needed if taken is None else {**needed, source.name: taken}


def _taken(source: Node, target: str) -> int | None:
    """The outcomes of a source that make its edge to the target live; None if it does not choose."""
    cases = [case.next for case in source.switch]
    routes = [route.next for route in source.on_error]
    if source.event is not None and source.event.on_timeout is not None:
        routes.append(source.event.on_timeout.next or ())
    if not cases and not any(routes):
        return None
    chosen = [*(cases or [()]), *routes]
    bits = sum(1 << index for index, names in enumerate(chosen) if target in names)
    normal = (1 << max(len(cases), 1)) - 1
    return bits or normal


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
    return Problem(
        f"{draft.path}.join",
        f"node {draft.name} can never run: {chooser} never leads to all of {', '.join(branches)}; use join: merge",
    )
