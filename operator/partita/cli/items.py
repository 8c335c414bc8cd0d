"""Which item of a loop a person means: by its number, or by its key where the loop is over an object.

Invariant: pure; a key wins over a number that is spelled alike.
"""

from __future__ import annotations

from typing import Final

from partita.domain.errors import InvalidError, NotFoundError, Problem
from partita.domain.payload import Json
from partita.store.views import NodeView

_DIGITS: Final = 9
"""Most digits of an item's number."""


def keys_of(group: NodeView | None) -> tuple[str, ...]:
    """Keys of the items in their order; none where the loop is over a list, or is a repeat."""
    items = _items(group)
    return tuple(sorted(items)) if isinstance(items, dict) else ()


def item_index(run: str, name: str, item: str, group: NodeView | None) -> int:
    """The index that a person means. Raises InvalidError and NotFoundError."""
    hint = f"partita get {run} --node {name}"
    if group is None:
        raise InvalidError("get", (Problem("--item", f"{name} is no loop; expected no --item"),), hint=hint)
    keys, items = keys_of(group), _items(group)
    if item in keys:
        return keys.index(item)
    if not (item.isascii() and item.isdigit() and len(item) <= _DIGITS):
        words = f"{item!r} is no item of {name}; expected its number" + (" or its key" if keys else "")
        raise InvalidError("get", (Problem("--item", words),), hint=hint)
    if items is not None and int(item) >= len(items):
        count = f"{len(items)} item{'' if len(items) == 1 else 's'}, from 0"
        raise NotFoundError(f"run {run}: {name}: has {count}; there is no item {item}", hint=hint)
    return int(item)


def _items(group: NodeView | None) -> Json:
    value = group.input.value if group is not None and group.input is not None else None
    return value.get("items") if isinstance(value, dict) else None
