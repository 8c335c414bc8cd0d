"""Explains a name that no node of a flow has.

Invariant: a name that stands somewhere else in the definition is never just unknown: the message says why it cannot be
used there and what to write instead.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from partita.domain.errors import Problem
from partita.domain.nearest import did_you_mean


@dataclass(frozen=True, slots=True)
class FlowNames:
    """The names of a flow. ``subflow`` is empty for the definition's own nodes."""

    subflow: str
    nodes: Mapping[str, object]
    final: Mapping[str, object]

    def in_nodes(self, others: tuple[FlowNames, ...], path: str, name: str) -> Problem:
        """A name in a node or in the output."""
        if name in self.final:
            return Problem(path, f"names node {name!r} of finally, which comes later; expected a node of the flow")
        return self._elsewhere(others, path, name) or unknown_node(path, name, self.nodes)

    def in_finally(self, others: tuple[FlowNames, ...], path: str, name: str, read: bool) -> Problem | None:
        """A name in a node of ``finally``, which may read the nodes of the flow."""
        if name in self.nodes:
            message = f"names node {name!r} of the flow, which ends before finally starts; expected a node of finally"
            return None if read else Problem(path, message)
        known = {**self.final, **self.nodes} if read else self.final
        return self._elsewhere(others, path, name) or unknown_node(path, name, known)

    def _elsewhere(self, others: tuple[FlowNames, ...], path: str, name: str) -> Problem | None:
        for other in others:
            if other is self or (name not in other.nodes and name not in other.final):
                continue
            if self.subflow:
                hint = f"which is outside of subflow {self.subflow}; expected its output in the input of the subflow"
                return Problem(path, f"names node {name!r}, {hint}")
            hint = "which is seen only there; expected the output of the node that runs the subflow"
            return Problem(path, f"names node {name!r} of subflow {other.subflow}, {hint}")
        return None


def unknown_node(path: str, name: str, known: Mapping[str, object]) -> Problem:
    """The problem of a name that no node has."""
    return Problem(path, f"names node {name!r}, which does not exist{did_you_mean(name, known)}")
