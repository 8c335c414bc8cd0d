"""How values of the expression language are compared, named and turned into JSON and text.

A value is None, bool, int, float, str, list, dict with string keys, an aware datetime, a timedelta or a TypeName.
Invariant: bool is never taken for a number, and every walk over a value pays for what it visits.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from partita.domain.expressions.errors import ExpressionError
from partita.domain.expressions.frame import Frame

Value = Any
"""A value as described above."""
Key = tuple[type | None, Value]
"""A hashable stand-in for a value."""


@dataclass(frozen=True, slots=True)
class TypeName:
    """What ``type(x)`` answers; equal to the identifier of that name."""

    name: str


TYPE_NAMES: Final[dict[type, str]] = {
    type(None): "null_type",
    bool: "bool",
    int: "int",
    float: "double",
    str: "string",
    list: "list",
    dict: "map",
    datetime: "timestamp",
    timedelta: "duration",
    TypeName: "type",
}
NUMBERS: Final = frozenset({int, float})
_ORDERED: Final = frozenset({bool, datetime, timedelta})
CONTAINER_COST: Final = 4
"""Visits that making or walking a list or map takes, besides its elements."""
_SHORT_TEXT: Final = 1024
"""Characters below which comparing texts costs nothing beside finding them."""
_SCALARS: Final = frozenset({type(None), bool, int, float, str, datetime, timedelta, TypeName})


def kind(value: Value) -> str:
    """The language's name of a value's type, as errors show it."""
    return "null" if value is None else TYPE_NAMES.get(type(value), type(value).__name__)


def a_kind(value: Value) -> str:
    """The same with its article."""
    name = kind(value)
    return name if value is None else f"{'an' if name == 'int' else 'a'} {name}"


def equal(frame: Frame, left: Value, right: Value) -> bool:
    """Deep equality; numbers compare across int and double, other types are simply different."""
    first, second = type(left), type(right)
    if first is not second:
        return first in NUMBERS and second in NUMBERS and bool(left == right)
    if first is str:
        return len(left) == len(right) and _texts_compared(frame, left, right) and bool(left == right)
    if first in _SCALARS:
        return bool(left == right)
    if len(left) != len(right):
        return False
    frame.spend(CONTAINER_COST + 3 * len(left))
    if first is dict:
        return all(key in right and equal(frame, value, right[key]) for key, value in left.items())
    return all(equal(frame, a, b) for a, b in zip(left, right, strict=True))


def key_of(frame: Frame, value: Value) -> Key:
    """What equal values have in common, to look them up by: two keys are the same exactly if the values are equal."""
    first = type(value)
    if first is list:
        frame.spend(2 * CONTAINER_COST + 4 * len(value))
        return (list, tuple([key_of(frame, item) for item in value]))
    if first is dict:
        frame.spend(2 * CONTAINER_COST + 8 * len(value))
        return (dict, frozenset([(name, key_of(frame, item)) for name, item in value.items()]))
    if first is str:
        frame.text(len(value))
    return (None if first in NUMBERS else first, value)


def comparable(frame: Frame, left: Value, right: Value) -> bool:
    """Whether ``<`` is defined between the two; pays for the comparison."""
    first, second = type(left), type(right)
    if first is second is str:
        return _texts_compared(frame, left, right)
    return (first in NUMBERS and second in NUMBERS) or (first is second and first in _ORDERED)


def _texts_compared(frame: Frame, left: str, right: str) -> bool:
    """Pay for comparing two texts; always true."""
    if (length := min(len(left), len(right))) >= _SHORT_TEXT:
        frame.spend(length >> 10)
    return True


def rfc3339(moment: datetime) -> str:
    """A time as text, in UTC, with as many decimals as it needs."""
    text = moment.astimezone(UTC).isoformat().replace("+00:00", "")
    return (text.rstrip("0") if "." in text else text) + "Z"


def seconds(span: timedelta) -> str:
    """A span of time as text, in seconds: ``5400s``."""
    microseconds = span // timedelta(microseconds=1)
    whole, rest = divmod(abs(microseconds), 1_000_000)
    decimals = f".{rest:06}".rstrip("0") if rest else ""
    return f"{'-' if microseconds < 0 else ''}{whole}{decimals}s"


def number(value: float) -> str:
    """A double as text; integral ones without decimals."""
    return str(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)


def text(value: Value) -> str | None:
    """A scalar as it appears in an interpolated string; None for null, lists, maps and type names."""
    if type(value) is str:
        return value
    shower = _TEXTS.get(type(value))
    return shower(value) if shower is not None else None


_TEXTS: Final[dict[type, Callable[[Value], str]]] = {
    bool: lambda value: "true" if value else "false",
    int: str,
    float: number,
    datetime: rfc3339,
    timedelta: seconds,
}


def plain(frame: Frame, value: Value) -> Value:
    """The value as JSON: times and spans become text. Raises ExpressionError for NaN, infinities and type names."""
    first = type(value)
    if first is list:
        frame.spend(CONTAINER_COST + 2 * len(value))
        return [plain(frame, item) for item in value]
    if first is dict:
        frame.spend(CONTAINER_COST + 2 * len(value))
        return {key: plain(frame, item) for key, item in value.items()}
    if first is str:
        frame.text(len(value))
        return value
    if first is float and not math.isfinite(value):
        raise ExpressionError(f"results in {value}, which is not a JSON number")
    if first is datetime or first is timedelta:
        return text(value)
    if first is TypeName:
        raise ExpressionError(f"results in the type {value.name}; expected a value")
    return value
