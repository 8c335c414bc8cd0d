"""Which fields belong to which kinds of nodes, and what to write where one does not belong.

Invariant: a field that is not in the table belongs to every kind.
"""

from __future__ import annotations

from typing import Final

from partita.domain.manifest.reader import Fields
from partita.domain.model import NodeKind

_WORK: Final = (NodeKind.TASK, NodeKind.WORKFLOW)
_ENDS: Final = (NodeKind.FAIL, NodeKind.SUCCEED)
_OTHERS: Final = tuple(kind for kind in NodeKind if kind not in _ENDS)

OWNERS: Final[dict[str, tuple[NodeKind, ...]]] = {
    "input": _WORK,
    "timeout": _WORK,
    "scheduleToStart": (NodeKind.TASK,),
    "retry": _WORK,
    "priority": _WORK,
    "forEach": _WORK,
    "repeat": _WORK,
    "undo": _WORK,
    "onError": _OTHERS,
    "onFailure": _OTHERS,
}
"""The kinds that have a field which not every kind has."""

_LOOP: Final = "a subflow around the node, and the loop at a workflow node that runs it"
_ELSE: Final[dict[str, str]] = {
    "timeout": "no timeout, since the node takes no time",
    "scheduleToStart": "none, since no worker takes the node",
    "retry": "none, since another try would give the same",
    "priority": "none, since no worker takes the node",
    "forEach": _LOOP,
    "repeat": _LOOP,
    "undo": "it at the task whose effect is to be reversed",
    "onError": "it at the nodes before, since this one ends the run",
    "onFailure": "it at the nodes before, since this one ends the run",
}
_INSTEAD: Final[dict[tuple[str, NodeKind], str]] = {
    ("input", NodeKind.SWITCH): "the values in the conditions of its cases",
    ("input", NodeKind.WAIT): "the values in wait.duration or wait.until",
    ("input", NodeKind.WAIT_FOR_EVENT): "the values in waitForEvent; data comes with the signal",
    ("input", NodeKind.COMPUTE): "the values in compute",
    ("input", NodeKind.FAIL): "the values in fail.message",
    ("input", NodeKind.SUCCEED): "the values in succeed.output",
    ("timeout", NodeKind.WAIT): "no timeout, since a wait ends by itself",
    ("timeout", NodeKind.WAIT_FOR_EVENT): "it in waitForEvent.timeout",
    ("scheduleToStart", NodeKind.WORKFLOW): "it at the tasks of the child",
    ("retry", NodeKind.WAIT_FOR_EVENT): "a subflow around the node, and retry at a workflow node that runs it",
    ("forEach", NodeKind.COMPUTE): "map() in an expression, such as ${input.lines.map(line, line.price)}",
}


def check_placement(fields: Fields, kind: NodeKind) -> None:
    """Note every field that the node's kind does not have."""
    for name, owners in OWNERS.items():
        if kind not in owners and fields.has(name):
            whose = f"{_listed(owners)} nodes" if owners is not _OTHERS else "nodes that something can follow"
            instead = _INSTEAD.get((name, kind)) or _ELSE[name]
            fields.problem(name, f"{name} belongs to {whose}; this node is a {kind.value}; expected {instead}")


def _listed(owners: tuple[NodeKind, ...]) -> str:
    return " and ".join(kind.value for kind in owners)


def check_finally(fields: Fields) -> None:
    """Note what nodes of ``finally`` cannot be or have."""
    for name, why in _NOT_IN_FINALLY.items():
        if fields.has(name):
            fields.problem(name, f"{name} does not exist in finally, {why}")


_NOT_IN_FINALLY: Final[dict[str, str]] = {
    "waitForEvent": "so that no end waits for people; expected the wait in a node of the flow",
    "succeed": "since the run's status is decided; expected fail, or no such node",
    "undo": "since nothing comes after it; expected the task that undoes as a node of finally",
}
