"""The hash that identifies a version.

Invariant: two manifests that mean the same have the same hash: key order, null against absent, ``60s`` against ``1m``
and written-out defaults make no difference. A default stays out of the hash, so that a field added to the language
later does not change the hash of what is stored.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from enum import Enum
from typing import Any, Final

import orjson

from partita.domain.expressions import Condition, DurationTemplate, Template
from partita.domain.model import Definition, Node

_LEFT_OUT: Final = {
    "Definition": {"name", "namespace", "content_hash", "roots", "output_reads", "nodes", "subflows", "finally_"},
    "Finally": {"nodes", "roots"},
    "Node": {"predecessors", "successors", "reads", "reads_input", "reads_from"},
}
"""Fields that follow from others, do not belong to the spec, or are written by hand here."""
_WRITTEN: Final = "dependsOn"


Depends = Mapping[tuple[str, str], tuple[str, ...]]


def content_hash(definition: Definition, depends: Depends) -> str:
    """Hex SHA-256 of the canonical form; ``depends`` are the written ``dependsOn`` lists by subflow and node."""
    form = _flow(definition, depends)
    if definition.subflows:
        form["subflows"] = {name: _flow(flow, depends) for name, flow in definition.subflows.items()}
        for flow in form["subflows"].values():
            flow.pop("config", None)  # the same object in all of them
    return hashlib.sha256(orjson.dumps(form, option=orjson.OPT_SORT_KEYS)).hexdigest()


def _flow(flow: Definition, depends: Depends) -> dict[str, Any]:
    form = _fields(flow)
    form["nodes"] = [_node(node, flow, depends) for node in flow.nodes.values()]
    if flow.finally_ is not None:
        form["finally_"] = _fields(flow.finally_)
        form["finally_"]["nodes"] = [_node(node, flow, depends) for node in flow.finally_.nodes.values()]
    return form


def _node(node: Node, flow: Definition, depends: Depends) -> dict[str, Any]:
    form = _fields(node)
    written = depends.get((flow.subflow, node.name))
    if written:
        form[_WRITTEN] = written
    return form


def _form(value: Any) -> Any:
    if isinstance(value, Condition | Template | DurationTemplate):
        return _source(value)
    if isinstance(value, tuple):
        return [_form(item) for item in value]
    if is_dataclass(value):
        return _fields(value)
    return value.value if isinstance(value, Enum) else _pruned(value)


def _source(value: Condition | Template | DurationTemplate) -> Any:
    if isinstance(value, DurationTemplate) and value.constant is not None:
        return value.constant
    return _pruned(value.source)


def _fields(value: Any) -> dict[str, Any]:
    left_out = _LEFT_OUT.get(type(value).__name__, set())
    return {
        field.name: _form(getattr(value, field.name))
        for field in fields(value)
        if field.name not in left_out and not _is_default(field, getattr(value, field.name))
    }


def _is_default(field: Any, value: Any) -> bool:
    if field.default is not MISSING:
        return bool(value == field.default) and type(value) is type(field.default)
    return field.default_factory is not MISSING and bool(value == field.default_factory())


def _pruned(value: Any) -> Any:
    """Without nulls in objects: client-side apply drops them."""
    if isinstance(value, dict):
        return {key: _pruned(item) for key, item in value.items() if item is not None}
    return [_pruned(item) for item in value] if isinstance(value, list) else value
