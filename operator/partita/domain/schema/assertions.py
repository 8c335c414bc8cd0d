"""Keywords that look at one value: its type, its size, its members' names.

Each function makes a check from the keyword's value; a check notes what is wrong and returns nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from operator import ge, gt, le, lt
from typing import Any, Final

from partita.domain.patterns import compile_pattern
from partita.domain.payload import Json
from partita.domain.places import shortened
from partita.domain.schema.walk import Budget, Place, Walk, brief, frozen

Check = Callable[[Json, Place, Walk], None]
Maker = Callable[[Any], Check]

_CLASSES: Final[dict[str, frozenset[type]]] = {
    "array": frozenset({list}),
    "boolean": frozenset({bool}),
    "integer": frozenset({int}),
    "null": frozenset({type(None)}),
    "number": frozenset({int, float}),
    "object": frozenset({dict}),
    "string": frozenset({str}),
}
_FRACTION: Final = 16
"""Steps that exact arithmetic with numbers of hundreds of digits is worth."""
_LISTED: Final = 20
"""Names or values that a message lists."""


def _type(names: Json) -> Check:
    wanted = [names] if isinstance(names, str) else names
    classes = frozenset[type]().union(*(_CLASSES[name] for name in wanted))
    integer = "integer" in wanted
    shown = " or ".join(wanted)

    def check(value: Json, place: Place, walk: Walk) -> None:
        if type(value) not in classes and not (integer and type(value) is float and value.is_integer()):
            walk.problem(place, f"{brief(value)} is not of type {shown}")

    return check


def listed(names: Sequence[str], *, more: bool = False) -> str:
    """The first names of a list; a list is as long as its schema, and each failure would copy it."""
    shown = [shortened(name) for name in names[:_LISTED]]
    return ", ".join([*shown, "…"] if more or len(names) > _LISTED else shown)


def _enum(values: Json) -> Check:
    known = {frozen(value, Budget()) for value in values}
    shown = listed([brief(value) for value in values[:_LISTED]], more=len(values) > _LISTED)

    def check(value: Json, place: Place, walk: Walk) -> None:
        if frozen(value, walk.budget) not in known:
            walk.problem(place, f"{brief(value)} is not one of {shown}")

    return check


def _const(wanted: Json) -> Check:
    known = frozen(wanted, Budget())

    def check(value: Json, place: Place, walk: Walk) -> None:
        if frozen(value, walk.budget) != known:
            walk.problem(place, f"{brief(value)} is not {brief(wanted)}")

    return check


def _is_number(value: Json) -> bool:
    return type(value) is int or type(value) is float


def _bound(holds: Callable[[Any, Any], bool], words: str) -> Maker:
    def make(limit: Any) -> Check:
        def check(value: Json, place: Place, walk: Walk) -> None:
            if _is_number(value) and not holds(value, limit):
                walk.problem(place, f"{value} is not {words} {limit}")

        return check

    return make


def _multiple_of(step: Any) -> Check:
    exact = Fraction(repr(step))

    def check(value: Json, place: Place, walk: Walk) -> None:
        if _is_number(value):
            walk.budget.spend(_FRACTION)
            if Fraction(repr(value)) % exact:
                walk.problem(place, f"{value} is not a multiple of {step}")

    return check


def _sized(kind: type, holds: Callable[[int, Any], bool], words: str, unit: str) -> Maker:
    def make(limit: Any) -> Check:
        def check(value: Json, place: Place, walk: Walk) -> None:
            if isinstance(value, str | list | dict) and type(value) is kind and not holds(len(value), limit):
                walk.problem(place, f"has {len(value)} {unit}; expected {words} {limit}")

        return check

    return make


def _pattern(pattern: str) -> Check:
    compiled = compile_pattern(pattern)

    def check(value: Json, place: Place, walk: Walk) -> None:
        if isinstance(value, str):
            walk.budget.spend(compiled.work(value) >> 6)
            if not compiled.occurs_in(value):
                walk.problem(place, f"{brief(value)} does not match {pattern!r}")

    return check


def _unique(wanted: bool) -> Check:
    def check(value: Json, place: Place, walk: Walk) -> None:
        if wanted and type(value) is list:
            different = {frozen(item, walk.budget) for item in value}
            if len(different) < len(value):
                walk.problem(place, "the items are not unique")

    return check


def _required(names: list[str]) -> Check:
    shown = listed(names)

    def check(value: Json, place: Place, walk: Walk) -> None:
        if type(value) is dict:
            walk.budget.spend(len(names))
            for name in names:
                if name not in value:
                    walk.problem(place, f"field {shortened(name)!r} is missing; expected {shown}")

    return check


def _dependent_required(needs: dict[str, list[str]]) -> Check:
    cost = len(needs) + sum(map(len, needs.values()))

    def check(value: Json, place: Place, walk: Walk) -> None:
        if type(value) is dict:
            walk.budget.spend(cost)
            for name, others in needs.items():
                for other in others:
                    if name in value and other not in value:
                        walk.problem(
                            place, f"field {shortened(other)!r} is missing; expected it beside {shortened(name)!r}"
                        )

    return check


ASSERTIONS: Final[dict[str, Maker]] = {
    "type": _type,
    "enum": _enum,
    "const": _const,
    "maximum": _bound(le, "at most"),
    "minimum": _bound(ge, "at least"),
    "exclusiveMaximum": _bound(lt, "less than"),
    "exclusiveMinimum": _bound(gt, "more than"),
    "multipleOf": _multiple_of,
    "maxLength": _sized(str, le, "at most", "characters"),
    "minLength": _sized(str, ge, "at least", "characters"),
    "maxItems": _sized(list, le, "at most", "items"),
    "minItems": _sized(list, ge, "at least", "items"),
    "maxProperties": _sized(dict, le, "at most", "fields"),
    "minProperties": _sized(dict, ge, "at least", "fields"),
    "pattern": _pattern,
    "uniqueItems": _unique,
    "required": _required,
    "dependentRequired": _dependent_required,
}
"""How each keyword is checked."""
