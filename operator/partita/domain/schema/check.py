"""Checks schemas themselves, so that a definition with a bad one is refused and no run ever meets it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Final

from partita.domain.errors import Problem
from partita.domain.patterns import compile_pattern
from partita.domain.payload import Json
from partita.domain.places import member, shortened
from partita.domain.schema.inplace import inplace_problem
from partita.domain.schema.keywords import CHECKS, parts
from partita.domain.schema.references import resolves
from partita.domain.schema.walk import MOST_PROBLEMS

_DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"
_REFUSED: Final = {
    "unevaluatedProperties": "is not supported; use additionalProperties",
    "unevaluatedItems": "is not supported; use items: false",
    "$dynamicRef": "is not supported; use $ref",
    "$dynamicAnchor": "is not supported; use $defs",
    "$anchor": "is not supported; refer to parts of the schema as #/$defs/name",
    "$id": "is not supported; refer to parts of the schema as #/$defs/name",
    "$vocabulary": "is not supported",
    "dependencies": "is not supported; use dependentRequired or dependentSchemas",
    "$recursiveRef": "is not supported; use $ref",
    "$recursiveAnchor": "is not supported; use $defs",
}
_DEEPEST: Final = 64


def schema_problems(schema: Json, path: str) -> tuple[Problem, ...]:
    """What is wrong with a schema; every problem with its path below ``path``, at most fifty."""
    if not isinstance(schema, dict):
        return (Problem(path, "must be an object, a JSON Schema"),)
    found = tuple(islice(_problems(schema, schema, path, 0), MOST_PROBLEMS))
    if found:
        return found
    reason = inplace_problem(schema)
    return (Problem(path, reason),) if reason else ()


def _problems(schema: Json, root: Mapping[str, Json], path: str, depth: int) -> Iterator[Problem]:
    if depth > _DEEPEST:
        yield Problem(path, "is nested too deeply")
    elif isinstance(schema, dict):
        for keyword, value in schema.items():
            at = member(path, keyword)
            yield from _keyword_problems(keyword, value, root, at)
            for part, part_path in parts(keyword, value, at):
                yield from _problems(part, root, part_path, depth + 1)
    elif not isinstance(schema, bool):
        yield Problem(path, "must be a schema: an object, true or false")


def _keyword_problems(keyword: str, value: Json, root: Mapping[str, Json], at: str) -> Iterator[Problem]:
    check = CHECKS.get(keyword)
    expected = check(value) if check is not None else ""
    if keyword in _REFUSED:
        yield Problem(at, _REFUSED[keyword])
    elif expected:
        yield Problem(at, f"does not fit JSON Schema 2020-12; expected {expected}")
    elif keyword == "$schema" and value.rstrip("#") != _DIALECT:
        yield Problem(at, f"expected {_DIALECT} or nothing")
    elif keyword == "$ref":
        yield from _reference_problems(value, root, at)
    elif keyword == "pattern":
        yield from _pattern_problems(value, at)
    elif keyword == "patternProperties":
        for pattern in value:
            yield from _pattern_problems(pattern, member(at, pattern))


def _reference_problems(value: str, root: Mapping[str, Json], at: str) -> Iterator[Problem]:
    if not value.startswith("#"):
        yield Problem(
            at, f"{shortened(value)!r} lies outside the schema; expected a reference within it, such as #/$defs/name"
        )
    elif value != "#" and (not value.startswith("#/") or not resolves(root, value)):
        yield Problem(at, f"{shortened(value)!r} names no part of the schema; expected such as #/$defs/name")


def _pattern_problems(pattern: str, at: str) -> Iterator[Problem]:
    try:
        compile_pattern(pattern)
    except ValueError as error:
        yield Problem(at, str(error))
