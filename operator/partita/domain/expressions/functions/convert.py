"""Conversions between types; what they refuse, they refuse as CEL does."""

from __future__ import annotations

import math
import re
from datetime import datetime, timedelta

from partita.domain.expressions.errors import ExpressionError
from partita.domain.expressions.frame import Frame
from partita.domain.expressions.functions.registry import expect, function
from partita.domain.expressions.functions.times import SPAN_COST, TIME_COST, parse_span, parse_time
from partita.domain.expressions.operators import INT_MAX, INT_MIN, checked
from partita.domain.expressions.values import TYPE_NAMES, TypeName, Value, kind, text

_INT = re.compile(r"[+-]?[0-9]{1,19}\Z")
_DOUBLE = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,4})?\Z")


def _impossible(name: str, value: Value) -> ExpressionError:
    return ExpressionError(f"{name}({kind(value)}) is not defined")


@function(
    "value", "an integer from a double (towards zero), a text, or a time (seconds since 1970)", name="int", cost=8
)
def int_(_: Frame, value: Value) -> int:
    match value:
        case bool():
            raise _impossible("int", value)
        case int():
            return checked(value)
        case float():
            if not math.isfinite(value) or not INT_MIN < value < INT_MAX:
                raise ExpressionError("int: the double is outside 64 bits")
            return int(value)
        case str() if _INT.match(value):
            return checked(int(value))
        case str():
            raise ExpressionError(f"int: {value[:40]!r} is not an integer")
        case datetime():
            return math.floor(value.timestamp())
        case _:
            raise _impossible("int", value)


@function("value", "a double from an integer or a text", cost=8)
def double(_: Frame, value: Value) -> float:
    match value:
        case bool():
            raise _impossible("double", value)
        case int() | float():
            return float(value)
        case str() if _DOUBLE.match(value) or value in ("NaN", "Infinity", "-Infinity"):
            return float(value)
        case str():
            raise ExpressionError(f"double: {value[:40]!r} is not a number")
        case _:
            raise _impossible("double", value)


@function("value", "a number, boolean, time or duration as text", cost=10)
def string(_: Frame, value: Value) -> str:
    shown = text(value)
    if shown is None:
        raise ExpressionError(f"string({kind(value)}) is not defined; use json.encode")
    return shown


@function("value", "a boolean from true or false as text", name="bool")
def bool_(_: Frame, value: Value) -> bool:
    if type(value) is bool:
        return value
    if value in ("true", "false"):
        return bool(value == "true")
    raise ExpressionError(f"bool: expected true or false, found {kind(value)}")


@function("value", "the value itself")
def dyn(_: Frame, value: Value) -> Value:
    return value


@function("value", "the name of its type, to compare with int, double, string, bool, list, map", name="type", cost=8)
def type_(_: Frame, value: Value) -> TypeName:
    return TypeName(TYPE_NAMES.get(type(value), "dyn"))


@function("value", "a time from RFC 3339 text or from seconds since 1970", cost=TIME_COST)
def timestamp(_: Frame, value: Value) -> datetime:
    return value if type(value) is datetime else parse_time(value)


@function("text", "a span of time such as 1h30m, 45s, 1d", cost=SPAN_COST)
def duration(_: Frame, value: Value) -> timedelta:
    return value if type(value) is timedelta else parse_span(expect(value, str, "duration"))
