"""Which variables exist in which field.

Invariant: a name means one thing wherever it exists, but in ``undo``, whose ``input`` is that of the node.
"""

from __future__ import annotations

from typing import Final

from partita.domain.expressions.analysis import TYPES
from partita.domain.manifest.reader import Fields

WITHOUT_NODES: Final = frozenset({"input", "config", "run", "now"})
"""In every expression."""
COMMON: Final = WITHOUT_NODES | {"nodes"}
IN_NODE: Final = COMMON | {"from"}
IN_ITEM: Final = frozenset({"index", "key"})
"""In the fields of a forEach node that every item has for itself, besides the name in ``as``."""
IN_ITERATION: Final = frozenset({"previous", "iteration"})
"""In the fields of a repeat node that every iteration has for itself, and in the delay before it."""
AFTER_ITERATION: Final = IN_ITERATION | {"output"}
"""In until, while and collect, which are looked at when an iteration has ended."""
IN_UNDO: Final = WITHOUT_NODES | {"output", "error"}
DEFAULT_ITEM: Final = "item"
TAKEN: Final = IN_NODE | IN_ITEM | AFTER_ITERATION | IN_UNDO | TYPES | {"events", "json"}
"""What an item cannot be called."""


def of_each(fields: Fields) -> frozenset[str]:
    """The variables of each item or iteration of a node, told by whatever can be read of its loop."""
    found: frozenset[str] = frozenset()
    for_each = fields.raw("forEach")
    if for_each is not None:
        given = for_each.get("as") if isinstance(for_each, dict) else None
        found |= IN_ITEM | {given if isinstance(given, str) else DEFAULT_ITEM}
    return found | IN_ITERATION if fields.has("repeat") else found
