"""What a schema applies to one and the same value.

Invariant: a schema that would apply itself to the same value again, or so many parts to one value that no document
could be checked, is refused when it is defined. This is read from the schema alone, in time linear in its size: trying
it on documents would cost the whole budget of a check for each of the schemas that a definition holds.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from partita.domain.payload import Json
from partita.domain.schema.keywords import parts
from partita.domain.schema.references import target
from partita.domain.schema.walk import ENDLESS, STEPS

DEEPEST: Final = 64
"""References and combinations inside each other."""
_LISTS: Final = ("allOf", "anyOf", "oneOf")
_SINGLE: Final = ("not", "if", "then", "else")
_TOO_DEEP: Final = f"refers to itself through more than {DEEPEST} levels; expected fewer"
_TOO_MUCH: Final = f"applies more than {STEPS:,} parts to one value, since they refer to each other repeatedly"


class _RefusedError(Exception):
    """A reason to refuse the schema; never leaves this module."""


def inplace_problem(schema: Json) -> str:
    """Why a schema without other problems can never be applied; empty if it can."""
    counts = _Counts(schema)
    try:
        for part in _every(schema):
            counts.of(part, 0)
    except _RefusedError as error:
        return str(error)
    return ""


class _Counts:
    """How many parts each part applies to one value, itself included, and how deep; each is looked at once."""

    def __init__(self, root: Json) -> None:
        self._root = root
        self._known: dict[int, tuple[int, int]] = {}
        self._open: set[int] = set()

    def of(self, schema: Json, depth: int) -> tuple[int, int]:
        """The number for one part and its height. Raises _RefusedError."""
        if not isinstance(schema, dict):
            return 1, 0
        known = self._known.get(id(schema))
        if known is not None:
            return known
        if id(schema) in self._open:
            raise _RefusedError(ENDLESS)
        if depth > DEEPEST:
            raise _RefusedError(_TOO_DEEP)
        self._open.add(id(schema))
        applied = [self.of(part, depth + 1) for part in _applied(schema, self._root)]
        self._open.discard(id(schema))
        count = 1 + sum(each for each, _ in applied)
        height = 1 + max((each for _, each in applied), default=0)
        if height > DEEPEST:
            raise _RefusedError(_TOO_DEEP)
        if count > STEPS:
            raise _RefusedError(_TOO_MUCH)
        self._known[id(schema)] = count, height
        return count, height


def _applied(schema: Mapping[str, Any], root: Json) -> Iterator[Json]:
    """The parts that a schema applies to the value that it is applied to itself."""
    if "$ref" in schema:
        yield target(root, schema["$ref"])
    for keyword in _LISTS:
        yield from schema.get(keyword, ())
    for keyword in _SINGLE:
        if keyword in schema:
            yield schema[keyword]
    yield from schema.get("dependentSchemas", {}).values()


def _every(schema: Json) -> Iterator[Json]:
    """The schema and all its parts."""
    pending = [schema]
    while pending:
        part = pending.pop()
        yield part
        if isinstance(part, dict):
            pending.extend(inner for keyword, value in part.items() for inner, _ in parts(keyword, value, ""))
