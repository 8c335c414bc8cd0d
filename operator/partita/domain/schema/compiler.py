"""Compiles a schema into nested functions.

Invariant: the same verdict as the published standard on every schema that ``schema_problems`` accepts (a test compares
it with an independent implementation). Compiled, because an input is checked at every start of a run: interpreting even
a small schema takes longer than the whole transaction that starts it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from partita.domain.patterns import Pattern, compile_pattern
from partita.domain.payload import Json
from partita.domain.places import shortened
from partita.domain.schema.assertions import ASSERTIONS, Check, listed
from partita.domain.schema.references import target
from partita.domain.schema.walk import EnoughError, Place, Walk


class Compiler:
    """Compiles the parts of one schema, each once; a part that refers to itself is found by its identity."""

    def __init__(self, root: Json) -> None:
        self._root = root
        self._done: dict[int, Check] = {}

    def compile(self, schema: Json) -> Check:
        """The check of a schema."""
        if isinstance(schema, bool):
            return _anything if schema else _nothing
        known = self._done.get(id(schema))
        if known is not None:
            return known
        checks: list[Check] = []

        def all_of(value: Json, place: Place, walk: Walk) -> None:
            walk.budget.spend(len(checks))
            for check in checks:
                check(value, place, walk)

        self._done[id(schema)] = all_of
        checks.extend(self._checks(schema))
        return all_of

    def _checks(self, schema: Mapping[str, Any]) -> list[Check]:
        checks = [make(schema[name]) for name, make in ASSERTIONS.items() if name in schema]
        if "$ref" in schema:
            checks.append(self._reference(target(self._root, schema["$ref"])))
        checks.extend(self.compile(part) for part in schema.get("allOf", ()))
        if "anyOf" in schema:
            checks.append(_any_of([self.compile(part) for part in schema["anyOf"]]))
        if "oneOf" in schema:
            checks.append(_one_of([self.compile(part) for part in schema["oneOf"]]))
        if "not" in schema:
            checks.append(_not(self.compile(schema["not"])))
        if "if" in schema:
            checks.append(_if(*(self.compile(schema.get(name, True)) for name in ("if", "then", "else"))))
        return checks + self._of_objects(schema) + self._of_lists(schema)

    def _reference(self, part: Json) -> Check:
        """Compiled when a document first gets there: a chain of references may be longer than the stack."""

        def check(value: Json, place: Place, walk: Walk) -> None:
            self.compile(part)(value, place, walk)

        return check

    def _of_objects(self, schema: Mapping[str, Any]) -> list[Check]:
        checks: list[Check] = []
        if not {"properties", "patternProperties", "additionalProperties"}.isdisjoint(schema):
            named = {name: self.compile(part) for name, part in schema.get("properties", {}).items()}
            patterns = [
                (compile_pattern(pattern), self.compile(part))
                for pattern, part in schema.get("patternProperties", {}).items()
            ]
            others = schema.get("additionalProperties", True)
            checks.append(_members(named, patterns, None if others is False else self.compile(others)))
        if "propertyNames" in schema:
            checks.append(_names(self.compile(schema["propertyNames"])))
        if "dependentSchemas" in schema:
            parts = {name: self.compile(part) for name, part in schema["dependentSchemas"].items()}
            checks.append(_dependent(parts))
        return checks

    def _of_lists(self, schema: Mapping[str, Any]) -> list[Check]:
        checks: list[Check] = []
        if "items" in schema or "prefixItems" in schema:
            first = [self.compile(part) for part in schema.get("prefixItems", ())]
            checks.append(_items(first, self.compile(schema.get("items", True))))
        if "contains" in schema:
            least, most = schema.get("minContains", 1), schema.get("maxContains")
            checks.append(_contains(self.compile(schema["contains"]), least, most))
        return checks


def _anything(value: Json, place: Place, walk: Walk) -> None:
    """The schema ``true``."""


def _nothing(_: Json, place: Place, walk: Walk) -> None:
    walk.problem(place, "is not allowed")


def _holds(check: Check, value: Json, walk: Walk) -> bool:
    """Whether a check finds nothing; what it finds is not reported."""
    walk.budget.spend(1)
    try:
        check(value, None, Walk("", walk.budget, silent=True))
    except EnoughError:
        return False
    return True


def _any_of(checks: Sequence[Check]) -> Check:
    def check(value: Json, place: Place, walk: Walk) -> None:
        if not any(_holds(one, value, walk) for one in checks):
            walk.problem(place, f"fits none of the {len(checks)} schemas of anyOf")

    return check


def _one_of(checks: Sequence[Check]) -> Check:
    def check(value: Json, place: Place, walk: Walk) -> None:
        count = sum(_holds(one, value, walk) for one in checks)
        if count != 1:
            walk.problem(place, f"fits {count} of the {len(checks)} schemas of oneOf; expected exactly one")

    return check


def _not(inner: Check) -> Check:
    def check(value: Json, place: Place, walk: Walk) -> None:
        if _holds(inner, value, walk):
            walk.problem(place, "fits the schema of not; expected that it does not")

    return check


def _if(test: Check, then: Check, otherwise: Check) -> Check:
    def check(value: Json, place: Place, walk: Walk) -> None:
        (then if _holds(test, value, walk) else otherwise)(value, place, walk)

    return check


def _members(named: Mapping[str, Check], patterns: Sequence[tuple[Pattern, Check]], others: Check | None) -> Check:
    expected = listed(sorted(named)) or "none"

    def check(value: Json, place: Place, walk: Walk) -> None:
        if type(value) is not dict:
            return
        walk.budget.spend(len(value) * (1 + len(patterns)))
        for key, member in value.items():
            found = named.get(key)
            if found is not None:
                found(member, (place, key), walk)
            for pattern, one in patterns:
                walk.budget.spend(pattern.work(key) >> 6)
                if pattern.occurs_in(key):
                    found = one
                    one(member, (place, key), walk)
            if found is None and others is None:
                walk.problem(place, f"unknown field {shortened(key)!r}; expected one of {expected}")
            elif found is None and others is not None:
                others(member, (place, key), walk)

    return check


def _names(inner: Check) -> Check:
    def check(value: Json, place: Place, walk: Walk) -> None:
        if type(value) is dict:
            for key in value:
                if not _holds(inner, key, walk):
                    walk.problem(place, f"the name {shortened(key)!r} does not fit propertyNames")

    return check


def _dependent(parts: Mapping[str, Check]) -> Check:
    def check(value: Json, place: Place, walk: Walk) -> None:
        if type(value) is dict:
            walk.budget.spend(len(parts))
            for name, inner in parts.items():
                if name in value:
                    inner(value, place, walk)

    return check


def _items(first: Sequence[Check], rest: Check) -> Check:
    def check(value: Json, place: Place, walk: Walk) -> None:
        if type(value) is not list:
            return
        walk.budget.spend(len(value))
        for index, item in enumerate(value):
            (first[index] if index < len(first) else rest)(item, (place, index), walk)

    return check


def _contains(inner: Check, least: float, most: float | None) -> Check:
    def check(value: Json, place: Place, walk: Walk) -> None:
        if type(value) is not list:
            return
        count = sum(_holds(inner, item, walk) for item in value)
        if count < least or (most is not None and count > most):
            wanted = f"at least {least}" if most is None else f"{least} to {most}"
            walk.problem(place, f"contains {count} items that fit; expected {wanted}")

    return check
