"""Edges and joins, worked out anew from the states of all sources."""

from __future__ import annotations

from collections.abc import Mapping

from tests.property.reference.graph import Flow, chosen_only
from tests.property.reference.spot import Spot


def edge(source: Spot, target: str) -> bool | None:
    """Whether an edge is live; None while its source is not settled."""
    if not source.settled:
        return None
    choosable = target in chosen_only(source.node)
    if source.route is not None and (choosable or source.state == "Failed"):
        return target in source.route
    reached = not choosable
    match source.state:
        case "Completed":
            return reached
        case "Failed":
            return source.node.get("onFailure") == "continue" and reached
        case "Skipped":
            return source.stepped and reached
        case _:
            return False


def live_sources(flow: Flow, spots: Mapping[str, Spot], name: str) -> list[str]:
    """Sources whose edges are live, in written order."""
    return [source for source in flow.sources[name] if edge(spots[source], name)]


def verdict(flow: Flow, spots: Mapping[str, Spot], name: str) -> str:
    """What becomes of a node that has not fired: ``fire``, ``skip``, or ``wait``."""
    node = flow.nodes[name]
    edges = [edge(spots[source], name) for source in flow.sources[name]]
    live, open_ = edges.count(True), edges.count(None)
    if not edges:
        return "fire"
    if "joinCount" in node:
        return _reached(live >= node["joinCount"], live + open_ < node["joinCount"])
    match node.get("join", "all"):
        case "all":
            return _reached(live == len(edges), False in edges)
        case "merge":
            return _reached(live > 0 and not open_, not live and not open_)
        case _:
            return _reached(live > 0, not live and not open_)


def _reached(fires: bool, never: bool) -> str:
    return "fire" if fires else "skip" if never else "wait"


def cancelled_by(flow: Flow, spots: Mapping[str, Spot], name: str) -> list[str]:
    """What ``cancelRemaining`` of a node cancels: its unsettled sources and whatever leads only to them."""
    gone = {source for source in flow.sources[name] if not spots[source].settled}
    grown = True
    while grown:
        grown = False
        for other, spot in spots.items():
            targets = flow.targets(other)
            if other not in gone and other != name and not spot.settled and targets and set(targets) <= gone:
                gone.add(other)
                grown = True
    return [other for other in spots if other in gone]
