"""The table of values in the chart's README."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Final

from chart_values.nodes import Node, Unset

LONG: Final = 60
ITEM: Final = "NAME"
"""What stands for the key of a map whose values have keys of their own."""


def table(root: Node) -> str:
    """One section for each key of the root."""
    parts = []
    plain = [row for key, node in (root.children or {}).items() if not _has_own(node) for row in _rows(node, key)]
    parts.append(_markdown("General", "", plain))
    for key, node in (root.children or {}).items():
        if _has_own(node):
            parts.append(_markdown(f"`{key}`", node.description, list(_rows(node, key))))
    return "\n".join(parts)


def _has_own(node: Node) -> bool:
    return bool(node.children) or bool(node.item and node.item.children and node.kind == "map")


def _rows(node: Node, path: str) -> Iterator[str]:
    if node.shared and path != node.shared:
        yield f"| `{path}` | object | `{{}}` | As `{node.shared}`, for these alone. |"
        return
    if node.children:
        for key, child in node.children.items():
            yield from _rows(child, f"{path}.{key}")
        return
    words = node.description.replace("|", "\\|")
    yield f"| `{path}` | {node.kind} | {_default(node)} | {words} |"


def _markdown(title: str, words: str, rows: list[str]) -> str:
    if not rows:
        return f"### {title}\n"
    head = ["| value | type | default | meaning |", "|---|---|---|---|"]
    intro = f"{words}\n\n" if words else ""
    return f"### {title}\n\n{intro}" + "\n".join([*head, *rows]) + "\n"


def _default(node: Node) -> str:
    if isinstance(node.default, Unset):
        return ""
    shown = json.dumps(node.default)
    return f"`{shown}`" if len(shown) <= LONG else "see values.yaml"
