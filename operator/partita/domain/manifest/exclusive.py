"""Finds joins that can never fire: ``all`` over branches of which one choice takes only one.

Invariant: only certain cases are reported. For each node it is worked out which outcomes of the choices before it (the
case of a switch, the route of an error, of a timeout) are needed for it to run; if none is left, it never runs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from partita.domain.errors import Problem
from partita.domain.manifest import limits
from partita.domain.manifest.graph import Graph, topological
from partita.domain.manifest.nodes import NodeDraft
from partita.domain.model import Join, Node

Outcomes = dict[str, int]
"""For a choosing node the outcomes, as bits, under which something happens; one that is absent does not matter."""
_NORMAL: Final = ""
"""Stands for every target that no list of a choosing node names."""
_MOST_SHOWN: Final = 10
"""Branches that are written out."""


def exclusive_problems(drafts: Mapping[str, NodeDraft], graph: Graph) -> Iterator[Problem]:
    """One problem for each join that can never fire."""
    needed: dict[str, Outcomes] = {}
    chosen = {name: _chosen(draft.node) for name, draft in drafts.items()}
    work = 0
    for name in topological(graph):
        work += sum(len(needed[source]) + 1 for source in graph.sources[name]) + 1
        if work > limits.EXCLUSIVITY_WORK:
            return
        incoming = {source: _through(source, name, chosen[source], needed[source]) for source in graph.sources[name]}
        node = drafts[name].node
        if node is None or node.join is Join.ALL:
            needed[name], clash = _all(incoming)
            if clash is not None:
                yield _problem(drafts[name], clash, incoming)
        else:
            needed[name] = _some(incoming)


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
    )
