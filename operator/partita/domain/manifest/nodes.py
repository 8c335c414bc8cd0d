"""Reads one node.

Invariant: whatever is wrong with a node, its name and its edges are read as far as possible, so that the graph can be
checked and one mistake does not look like ten.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from partita.domain.errors import Problem
from partita.domain.expressions import References
from partita.domain.manifest import limits
from partita.domain.manifest.expressions import Expressions
from partita.domain.manifest.kinds import KINDS
from partita.domain.manifest.loops import check_loops, read_for_each, read_repeat
from partita.domain.manifest.placement import check_finally, check_placement
from partita.domain.manifest.policies import NodeDefaults, read_routes, read_tiers
from partita.domain.manifest.reader import Fields
from partita.domain.manifest.refusals import LATER_KINDS
from partita.domain.manifest.undo import read_undo
from partita.domain.manifest.variables import IN_NODE, of_each
from partita.domain.model import Join, Node, NodeKind


@dataclass(slots=True)
class NodeDraft:
    """A node as far as it could be read, and what the graph needs to know of it."""

    path: str
    name: str
    node: Node | None
    """None when its kind could not be read."""
    depends: tuple[str, ...] = ()
    places: list[tuple[str, References]] = field(default_factory=list)
    """Paths of its expressions and what they read."""
    choices: list[tuple[str, tuple[str, ...]]] = field(default_factory=list)
    """Paths of its ``next`` lists and what they name."""


def read_node(
    fields: Fields, defaults: NodeDefaults, problems: list[Problem], *, in_finally: bool = False
) -> NodeDraft | None:
    """One node; None when not even its name can be used."""
    fields.need("name", "a name such as chargeCard")
    name = fields.identifier("name")
    expressions = Expressions(IN_NODE, problems, defaults.config)
    draft = NodeDraft(fields.path, name or "", None)
    draft.depends = fields.names("dependsOn", limits.DEPENDS_ON) or ()
    fields.check_doubles("dependsOn", draft.depends)
    if in_finally:
        check_finally(fields)
    parts = _common(fields, expressions, defaults, problems)
    kind = _kind(fields)
    if kind is not None:
        check_placement(fields, kind)
        parts |= KINDS[kind](fields, name or "", defaults, expressions)
        draft.node = Node(name=name or "", kind=kind, **parts)
    draft.places = expressions.places
    draft.choices = _choices(fields, draft.node, parts)
    return draft if name is not None else None


def _common(
    fields: Fields, expressions: Expressions, defaults: NodeDefaults, problems: list[Problem]
) -> dict[str, Any]:
    join, count = _join(fields)
    each = of_each(fields)
    check_loops(fields)
    return {
        "description": fields.text("description", "a text", longest=limits.NODE_DESCRIPTION, shortest=0) or "",
        "join": join,
        "join_count": count,
        "cancel_remaining": fields.flag("cancelRemaining") or False,
        "when": expressions.condition(fields, "when"),
        "input": expressions.object(fields, "input", each),
        "timeout": expressions.duration(fields, "timeout", each),
        "schedule_to_start_ms": fields.duration("scheduleToStart"),
        "retry": read_tiers(fields, expressions, each),
        "on_error": read_routes(fields, expressions),
        "continue_on_failure": fields.choice("onFailure", "fail", "continue") == "continue",
        "priority": fields.integer("priority", -2, 2),
        "for_each": read_for_each(fields, expressions),
        "repeat": read_repeat(fields, expressions),
        "undo": read_undo(fields, defaults, problems),
    }


def _join(fields: Fields) -> tuple[Join, int]:
    join = fields.choice("join", "all", "merge", "any")
    count = fields.integer("joinCount", 1, limits.NODES)
    if fields.has("join") and fields.has("joinCount"):
        fields.problem("joinCount", "join and joinCount exclude each other; expected one of them")
    return (Join.COUNT, count) if count is not None else (Join(join or "all"), 0)


def _kind(fields: Fields) -> NodeKind | None:
    present = [kind for kind in NodeKind if fields.has(kind.value)]
    later = [name for name in LATER_KINDS if fields.has(name)]
    if len(present) + len(later) == 1:
        return present[0] if present else None
    if present or later:
        names = ", ".join([*(kind.value for kind in present), *later])
        fields.problem("", f"has several kinds: {names}; expected exactly one")
    else:
        kinds = ", ".join(kind.value for kind in NodeKind)
        fields.problem("", f"has no kind; expected one of {kinds}")
    return present[0] if present else None


def _choices(fields: Fields, node: Node | None, parts: dict[str, Any]) -> list[tuple[str, tuple[str, ...]]]:
    found: list[tuple[str, tuple[str, ...]]] = []
    if node is not None:
        found += [(fields.at(f"switch[{index}].next"), case.next) for index, case in enumerate(node.switch)]
    found += [(fields.at(f"onError[{index}].next"), route.next) for index, route in enumerate(parts["on_error"])]
    if node is not None and node.event is not None and node.event.on_timeout is not None:
        found.append((fields.at("waitForEvent.onTimeout.next"), node.event.on_timeout.next or ()))
    return found
