"""The keywords of JSON Schema 2020-12 and what their values must be.

Invariant: whatever is accepted here is accepted by the published meta-schema (a test compares them). A table of our
own, because checking against the meta-schema takes a millisecond for each part of a schema, and a definition may hold
thousands of parts. Keywords that are not listed mean nothing, as the standard has it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from partita.domain.payload import Json
from partita.domain.places import element, member

Check = Callable[[Json], str]
"""What the value should be, or '' if it is."""

SCHEMA: Final = frozenset(
    {"items", "contains", "additionalProperties", "propertyNames", "not", "if", "then", "else", "contentSchema"}
)
"""Keywords whose value is a schema."""
SCHEMAS: Final = frozenset({"allOf", "anyOf", "oneOf", "prefixItems"})
"""Keywords whose value is a list of schemas."""
NAMED: Final = frozenset({"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"})
"""Keywords whose value is an object of schemas."""
TYPES: Final = ("array", "boolean", "integer", "null", "number", "object", "string")


def parts(keyword: str, value: Json, at: str) -> Iterator[tuple[Json, str]]:
    """The schemas inside a keyword, with their paths."""
    if keyword in NAMED and isinstance(value, dict):
        yield from ((part, member(at, name)) for name, part in value.items())
    elif keyword in SCHEMAS and isinstance(value, list):
        yield from ((part, element(at, index)) for index, part in enumerate(value))
    elif keyword in SCHEMA:
        yield value, at


def _is_number(value: Json) -> bool:
    return type(value) in (int, float)


def _count(value: Json) -> str:
    good = _is_number(value) and value >= 0 and value == int(value)
    return "" if good else "a whole number, 0 or more"


def _names(value: Json) -> str:
    good = isinstance(value, list) and all(isinstance(name, str) for name in value) and len({*value}) == len(value)
    return "" if good else "a list of different texts"


def _type(value: Json) -> str:
    names = value if isinstance(value, list) else [value]
    good = (
        bool(names) and all(isinstance(name, str) and name in TYPES for name in names) and len({*names}) == len(names)
    )
    return "" if good else f"one or several of {', '.join(TYPES)}"


def _dependent(value: Json) -> str:
    good = isinstance(value, dict) and not any(_names(names) for names in value.values())
    return "" if good else "an object of lists of texts"


def _of(kind: type, expected: str) -> Check:
    return lambda value: "" if isinstance(value, kind) else expected


_NUMBER: Final[Check] = lambda value: "" if _is_number(value) else "a number"  # noqa: E731  # one line of the table
_TEXT: Final = _of(str, "a text")
_FLAG: Final = _of(bool, "true or false")

CHECKS: Final[Mapping[str, Check]] = {
    "type": _type,
    "enum": _of(list, "a list"),
    "required": _names,
    "dependentRequired": _dependent,
    "multipleOf": lambda value: "" if _is_number(value) and value > 0 else "a number above 0",
    "uniqueItems": _FLAG,
    "deprecated": _FLAG,
    "readOnly": _FLAG,
    "writeOnly": _FLAG,
    "examples": _of(list, "a list"),
    **dict.fromkeys(("maximum", "minimum", "exclusiveMaximum", "exclusiveMinimum"), _NUMBER),
    **dict.fromkeys(("maxLength", "minLength", "maxItems", "minItems", "maxContains", "minContains"), _count),
    **dict.fromkeys(("maxProperties", "minProperties"), _count),
    **dict.fromkeys(("pattern", "title", "description", "$comment", "format", "$ref", "$schema"), _TEXT),
    **dict.fromkeys(("contentEncoding", "contentMediaType"), _TEXT),
    **dict.fromkeys(NAMED, _of(dict, "an object of schemas")),
    **dict.fromkeys(SCHEMAS, lambda value: "" if isinstance(value, list) and value else "a list of schemas, not empty"),
}
"""What the value of each keyword must be, as far as the keyword alone can say."""
