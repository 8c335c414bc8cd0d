"""What a value of the chart is: its meaning, its default, and the JSON Schema that refuses anything else.

Invariant: a node's default satisfies its schema, and an object that the chart itself defines knows all of its keys.
Trade-off: fields that Kubernetes defines and that are handed on as they are (affinity, volumes) are checked by the API
server only; their description says where they go.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

QUANTITY: Final = r"^[0-9]+(\.[0-9]+)?(m|k|Ki|Mi|Gi|Ti|M|G|T)?$"
NAME: Final = r"^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$"


class Unset:
    """The default of a value that has none, so that nothing of it stands in values.yaml."""


UNSET: Final = Unset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """One value. ``children`` of a group by key, ``item`` of a list or a map; ``schema`` is the rest of its schema."""

    description: str
    kind: str
    default: Any = UNSET
    schema: Mapping[str, Any] = field(default_factory=dict)
    children: Mapping[str, Node] | None = None
    item: Node | None = None
    shared: str = ""
    """Name of a definition that holds the schema of this value, which occurs in several places."""

    def json_schema(self) -> dict[str, Any]:
        """The JSON Schema (draft 7) of this value and all below it."""
        return {"$ref": f"#/definitions/{self.shared}"} if self.shared else self.definition()

    def definition(self) -> dict[str, Any]:
        """The schema itself, also of a value whose schema is shared."""
        made: dict[str, Any] = {"description": self.description, **self.schema}
        if self.children is not None:
            made["properties"] = {key: child.json_schema() for key, child in self.children.items()}
        if self.item is not None and self.kind.startswith("list"):
            made["items"] = self.item.json_schema()
        elif self.item is not None:
            made["additionalProperties"] = self.item.json_schema()
        if not isinstance(self.default, Unset) and self.children is None:
            made["default"] = self.default
        return made

    def values(self) -> Any:
        """The default value; of a group, what its children have."""
        if self.children is None or not isinstance(self.default, Unset):
            return self.default
        made = {key: child.values() for key, child in self.children.items()}
        return {key: value for key, value in made.items() if not isinstance(value, Unset)}


def group(description: str, /, **children: Node) -> Node:
    """An object whose keys are all known."""
    schema = {"type": "object", "additionalProperties": False}
    return Node(description=description, kind="object", schema=schema, children=children)


def hidden(node: Node) -> Node:
    """A group that stands empty in values.yaml, although its keys are known."""
    return replace(node, default={})


def text(description: str, default: Any = "", *, pattern: str = "", choices: Sequence[str] = ()) -> Node:
    """A text; with a pattern an empty one is accepted too, where that is the default."""
    schema: dict[str, Any] = {"type": "string"}
    if pattern:
        schema["pattern"] = f"^$|{pattern}" if default == "" else pattern
    if choices:
        schema["enum"] = list(choices)
    return Node(description=description, kind="string", default=default, schema=schema)


def number(description: str, default: Any = UNSET, *, low: int = 0, high: int | None = None) -> Node:
    """A whole number within bounds."""
    schema: dict[str, Any] = {"type": "integer", "minimum": low}
    if high is not None:
        schema["maximum"] = high
    return Node(description=description, kind="integer", default=default, schema=schema)


def flag(description: str, default: Any) -> Node:
    """True or false."""
    return Node(description=description, kind="boolean", default=default, schema={"type": "boolean"})


def amount(description: str, default: Any = UNSET) -> Node:
    """A whole number or a percentage."""
    either = [
        {"type": "integer", "minimum": 0},
        {"type": "string", "pattern": "^([0-9]+%)?$"},
    ]
    return Node(description=description, kind="integer or percentage", default=default, schema={"anyOf": either})


def listing(description: str, item: Node, default: Sequence[Any] = ()) -> Node:
    """A list."""
    kind = f"list of {item.kind}s"
    return Node(description=description, kind=kind, default=list(default), schema={"type": "array"}, item=item)


def texts(description: str, *, pattern: str = "") -> Node:
    """A list of texts."""
    return listing(description, text("One of them.", UNSET, pattern=pattern))


def mapping(description: str, item: Node, *, keys: str = "") -> Node:
    """An object with keys that the person chooses."""
    schema: dict[str, Any] = {"type": "object"}
    if keys:
        schema["propertyNames"] = {"pattern": keys}
    return Node(description=description, kind="map", default={}, schema=schema, item=item)


def labels(description: str) -> Node:
    """Labels or annotations."""
    return mapping(description, text("Its value.", UNSET))


def kubernetes(description: str, where: str, default: Any = None) -> Node:
    """An object of Kubernetes that is handed on as it is."""
    schema = {"type": "object", "additionalProperties": True}
    return Node(description=f"{description} As in {where}.", kind="object", default=default or {}, schema=schema)


def kubernetes_list(description: str, where: str) -> Node:
    """A list of objects of Kubernetes that are handed on as they are."""
    item = Node(description="One of them.", kind="object", schema={"type": "object", "additionalProperties": True})
    return listing(f"{description} As in {where}.", item)
