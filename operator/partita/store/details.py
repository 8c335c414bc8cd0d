"""The ``detail`` of a task row as JSON: what only groups, items of loops, workflow nodes and undo rows have.

Invariant: reading back what was written gives an equal record; what is not set is not written, and a column that is
null stands for None. Trade-off: one json column that an ordinary row does not pay for, against columns that could be
compared in SQL.
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any
from uuid import UUID

import orjson

from partita.domain.payload import Payload, encode
from partita.domain.state.rows import Detail, Loop, NodeKey

_LOOP = tuple(one.name for one in fields(Loop))


def detail_text(detail: Detail) -> str:
    """A detail as it is stored."""
    value: dict[str, Any] = {}
    if detail.loop is not None:
        loop = detail.loop
        value["loop"] = {name: number for name in _LOOP if (number := getattr(loop, name))}
    if detail.child is not None:
        value["child"] = str(detail.child)
    if detail.version:
        value["version"] = detail.version
    if detail.collected is not None:
        value["collected"] = detail.collected.value
    if detail.order:
        value["order"] = detail.order
    if detail.undo_next is not None:
        value["undo_next"] = list(detail.undo_next)
    if detail.undo_rest:
        value["undo_rest"] = detail.undo_rest
    return encode(value, "detail")


def detail_of(text: str | None) -> Detail | None:
    """The detail that ``detail_text`` wrote."""
    if text is None:
        return None
    value = orjson.loads(text)
    child, next_ = value.get("child"), value.get("undo_next")
    return Detail(
        loop=Loop(**{"total": 0, **value["loop"]}) if "loop" in value else None,
        child=UUID(child) if child else None,
        version=value.get("version", 0),
        collected=Payload.of(value["collected"]) if "collected" in value else None,
        order=value.get("order", 0),
        undo_next=NodeKey(*next_) if next_ else None,
        undo_rest=tuple((node, tuple(indexes)) for node, indexes in value.get("undo_rest", ())),
    )
