"""Arithmetic and ordering.

Invariant: no coercion. Integers are 64 bits wide and overflow is an error; integers beyond that can pass through a
workflow untouched, but not be computed with.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Final

from partita.domain.expressions.errors import ExpressionError
from partita.domain.expressions.frame import Frame
from partita.domain.expressions.values import NUMBERS, Value, comparable, equal, kind

INT_MIN: Final = -(2**63)
INT_MAX: Final = 2**63 - 1

Operation = Callable[[Frame, Value, Value], Value]


def checked(value: int) -> int:
    """The integer, if it has 64 bits."""
    if INT_MIN <= value <= INT_MAX:
        return value
    raise ExpressionError("overflows a 64-bit integer; use double()")


def _mismatch(sign: str, left: Value, right: Value) -> ExpressionError:
    first, second = kind(left), kind(right)
    message = f"{first} {sign} {second} is not defined"
    if type(left) in NUMBERS and type(right) in NUMBERS and first != second:
        message += (
            f"; write double({'left' if first == 'int' else 'right'} side) {sign} …, since int and double do not mix"
        )
    elif sign == "+" and str in (type(left), type(right)):
        message += "; use string() or ${…} inside a text"
    return ExpressionError(message)


def add(frame: Frame, left: Value, right: Value) -> Value:
    """Sum, concatenation of strings or lists, or a shifted time."""
    first, second = type(left), type(right)
    if first is second:
        if first is int:
            return checked(left + right)
        if first is str:
            frame.text(len(left) + len(right))
            return left + right
        if first is list:
            frame.spend(len(left) + len(right))
            return left + right
        if first in (float, timedelta):
            return left + right
    if {first, second} == {datetime, timedelta}:
        return left + right
    raise _mismatch("+", left, right)


def subtract(_: Frame, left: Value, right: Value) -> Value:
    """Difference of numbers, times or spans."""
    first, second = type(left), type(right)
    if first is second:
        if first is int:
            return checked(left - right)
        if first in (float, datetime, timedelta):
            return left - right
    if first is datetime and second is timedelta:
        return left - right
    raise _mismatch("-", left, right)


def multiply(_: Frame, left: Value, right: Value) -> Value:
    """Product of two ints or two doubles."""
    first = type(left)
    if first is type(right):
        if first is int:
            return checked(left * right)
        if first is float:
            return left * right
    raise _mismatch("*", left, right)


def divide(_: Frame, left: Value, right: Value) -> Value:
    """Quotient; of ints rounded towards zero, of doubles as IEEE 754 has it."""
    first = type(left)
    if first is type(right):
        if first is int:
            if right == 0:
                raise ExpressionError("divides by zero")
            quotient = abs(left) // abs(right)
            return checked(quotient if (left < 0) == (right < 0) else -quotient)
        if first is float:
            return left / right if right else _by_zero(left, right)
    raise _mismatch("/", left, right)


def _by_zero(left: float, right: float) -> float:
    if left == 0 or math.isnan(left):
        return math.nan
    return math.copysign(math.inf, left) * math.copysign(1, right)


def remainder(_: Frame, left: Value, right: Value) -> Value:
    """Remainder of two ints, with the sign of the dividend."""
    if type(left) is int and type(right) is int:
        if right == 0:
            raise ExpressionError("divides by zero")
        rest = abs(left) % abs(right)
        return rest if left >= 0 else -rest
    raise _mismatch("%", left, right)


def contained(frame: Frame, left: Value, right: Value) -> bool:
    """``left in right``: an element of a list or a key of a map."""
    if type(right) is list:
        frame.spend(len(right))
        return any(equal(frame, left, item) for item in right)
    if type(right) is dict and type(left) in (str, int, bool):
        return type(left) is str and left in right
    raise ExpressionError(f"{kind(left)} in {kind(right)} is not defined; expected a list or a map on the right")


def _ordering(sign: str, compare: Callable[[Value, Value], bool]) -> Operation:
    def apply(frame: Frame, left: Value, right: Value) -> bool:
        if type(left) is type(right) and type(left) in NUMBERS:
            return compare(left, right)
        if not comparable(frame, left, right):
            raise ExpressionError(f"{kind(left)} {sign} {kind(right)} is not defined; expected two values of one kind")
        return compare(left, right)

    return apply


def _unequal(frame: Frame, left: Value, right: Value) -> bool:
    return not equal(frame, left, right)


OPERATIONS: Final[dict[str, Operation]] = {
    "+": add,
    "-": subtract,
    "*": multiply,
    "/": divide,
    "%": remainder,
    "in": contained,
    "==": equal,
    "!=": _unequal,
    "<": _ordering("<", operator.lt),
    "<=": _ordering("<=", operator.le),
    ">": _ordering(">", operator.gt),
    ">=": _ordering(">=", operator.ge),
}


def negate(value: Value) -> Value:
    """``-value``."""
    if type(value) is int:
        return checked(-value)
    if type(value) is float or type(value) is timedelta:
        return -value
    raise ExpressionError(f"-{kind(value)} is not defined")
