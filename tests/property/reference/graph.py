"""A flow as it is written: nodes and the edges between them, read from plain dictionaries."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from tests.property.reference.words import named_nodes

Manifest = dict[str, Any]
_UNITS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000}


def milliseconds(text: str) -> int:
    """A duration."""
    return sum(int(number) * _UNITS[unit] for number, unit in re.findall(r"([0-9]+)(ms|s|m|h)", text))


def chosen_only(node: Manifest) -> set[str]:
    """Targets that the node leads to only when it chooses them."""
    routes = [*node.get("switch", ()), *node.get("onError", ())]
    if (event := node.get("waitForEvent")) and "next" in event.get("onTimeout", {}):
        routes.append(event["onTimeout"])
    return {target for route in routes for target in route["next"]}


@dataclass
class Flow:
    """A definition, a subflow, or the finally of one."""

    spec: Manifest
    nodes: dict[str, Manifest] = field(default_factory=dict)
    sources: dict[str, list[str]] = field(default_factory=dict)
    """Of each node, in the order dependsOn, named by expressions, named by a choice of theirs."""

    def __post_init__(self) -> None:
        self.nodes = {node["name"]: node for node in self.spec["nodes"]}
        for name, node in self.nodes.items():
            parts = {key: value for key, value in node.items() if key != "undo"}
            named = [*node.get("dependsOn", ()), *(one for one in named_nodes(parts) if one in self.nodes)]
            self.sources[name] = list(dict.fromkeys(named))
        for name, node in self.nodes.items():
            for target in self.nodes:
                if target in chosen_only(node) and name not in self.sources[target]:
                    self.sources[target].append(name)

    def targets(self, name: str) -> list[str]:
        """Where a node's edges lead."""
        return [target for target, sources in self.sources.items() if name in sources]
