"""Nodes that a person names: which of them a run has, and which can still be cancelled.

Invariant: pure, and the same for both backends.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from partita.cli.backend import NodeLine
from partita.cli.names import get_command
from partita.domain.errors import NotFoundError
from partita.domain.model import Definition
from partita.domain.nearest import did_you_mean
from partita.domain.state.rows import SETTLED


def require_nodes(run: str, namespace: str, nodes: Iterable[str], flow: Definition) -> None:
    """Raise NotFoundError for a name that the run does not have."""
    known = [*flow.nodes, *(flow.finally_.nodes if flow.finally_ is not None else ())]
    for name in nodes:
        if name not in known:
            hint = get_command(run, namespace)
            raise NotFoundError(f"run {run}: has no node {name}{did_you_mean(name, known)}", hint=hint)


def settled(nodes: Sequence[NodeLine], names: Iterable[str]) -> dict[str, str]:
    """State by name of those nodes that have come to their end, so that cancelling them changes nothing."""
    states = {node.name: node.state for node in nodes}
    return {name: states[name] for name in names if states.get(name) in SETTLED}
