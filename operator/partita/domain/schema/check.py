"""Checks schemas themselves, so that a definition with a bad one is refused and no run ever meets it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from jsonschema import Draft202012Validator

from partita.domain.errors import Problem
from partita.domain.patterns import compile_pattern
from partita.domain.payload import Json
from partita.domain.schema.validate import ENDLESS, MOST_PROBLEMS, describe, joined, violations

_DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"
_REFUSED: Final = {
    "unevaluatedProperties": "is not supported; use additionalProperties",
    "unevaluatedItems": "is not supported; use items: false",
    "$dynamicRef": "is not supported; use $ref",
    "$id": "is not supported; refer to parts of the schema as #/$defs/name",
    "$vocabulary": "is not supported",
}
_SUBSCHEMA: Final = frozenset(
    {"items", "contains", "additionalProperties", "propertyNames", "not", "if", "then", "else", "contentSchema"}
)
_SUBSCHEMAS: Final = frozenset({"allOf", "anyOf", "oneOf", "prefixItems"})
_NAMED: Final = frozenset({"properties", "patternProperties", "$defs", "dependentSchemas"})


def schema_problems(schema: Json, path: str) -> tuple[Problem, ...]:
    """What is wrong with a schema; every problem with its path below ``path``."""
    if not isinstance(schema, dict):
        return (Problem(path, "must be an object, a JSON Schema"),)
    try:
        found = [*_meta_problems(schema, path), *_own_problems(schema, schema, path)]
        if not found:
            found = list(_endless(schema, path))
    except RecursionError:
        found = [Problem(path, "is nested too deeply")]
    return tuple(found[:MOST_PROBLEMS])


def _meta_problems(schema: Mapping[str, Json], path: str) -> Iterator[Problem]:
    validator = Draft202012Validator(Draft202012Validator.META_SCHEMA)
    for error in validator.iter_errors(schema):
        yield Problem(joined(path, error.absolute_path), f"is not JSON Schema 2020-12: {describe(error)}")


def _own_problems(schema: Json, root: Mapping[str, Json], path: str) -> Iterator[Problem]:
    if isinstance(schema, dict):
        for keyword, value in schema.items():
            at = f"{path}.{keyword}"
            yield from _keyword_problems(keyword, value, root, at)
            for part, part_path in _parts(keyword, value, at):
                yield from _own_problems(part, root, part_path)


def _keyword_problems(keyword: str, value: Json, root: Mapping[str, Json], at: str) -> Iterator[Problem]:
    if keyword in _REFUSED:
        yield Problem(at, _REFUSED[keyword])
    elif keyword == "$schema" and str(value).rstrip("#") != _DIALECT:
        yield Problem(at, f"expected {_DIALECT} or nothing")
    elif keyword == "$ref":
        yield from _reference_problems(value, root, at)
    elif keyword == "pattern":
        yield from _pattern_problems(value, at)
    elif keyword == "patternProperties" and isinstance(value, dict):
        for pattern in value:
            yield from _pattern_problems(pattern, f"{at}.{pattern}")


def _parts(keyword: str, value: Json, at: str) -> Iterator[tuple[Json, str]]:
    """The schemas inside a keyword, with their paths."""
    if keyword in _NAMED and isinstance(value, dict):
        yield from ((part, f"{at}.{name}") for name, part in value.items())
    elif keyword in _SUBSCHEMAS and isinstance(value, list):
        yield from ((part, f"{at}[{index}]") for index, part in enumerate(value))
    elif keyword in _SUBSCHEMA:
        yield value, at


def _reference_problems(value: Json, root: Mapping[str, Json], at: str) -> Iterator[Problem]:
    if not isinstance(value, str):
        return
    if not value.startswith("#"):
        yield Problem(at, f"{value!r} lies outside the schema; expected a reference within it, such as #/$defs/name")
    elif value != "#" and (not value.startswith("#/") or not _resolves(root, value)):
        yield Problem(at, f"{value!r} names no part of the schema; expected such as #/$defs/name")


def _resolves(root: Json, reference: str) -> bool:
    value = root
    for part in reference[2:].split("/"):
        key = part.replace("~1", "/").replace("~0", "~")
        if isinstance(value, dict) and key in value:
            value = value[key]
        elif isinstance(value, list) and key.isascii() and key.isdigit() and int(key) < len(value):
            value = value[int(key)]
        else:
            return False
    return isinstance(value, dict | bool)


def _pattern_problems(pattern: Json, at: str) -> Iterator[Problem]:
    if isinstance(pattern, str):
        try:
            compile_pattern(pattern)
        except ValueError as error:
            yield Problem(at, str(error))


def _endless(schema: Mapping[str, Json], path: str) -> Iterator[Problem]:
    """A schema that refers to itself without going down into the document would never end."""
    probes: tuple[Json, ...] = (None, {}, [])
    for probe in probes:
        for problem in violations(schema, probe):
            if problem.message == ENDLESS:
                yield Problem(path, problem.message)
                return
