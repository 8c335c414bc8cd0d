"""The table of functions: what may be called, with what, and what for.

Invariant: one table serves evaluation, validation and the manual, so that a function cannot exist in one of them only.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from partita.domain.expressions.errors import ExpressionError
from partita.domain.expressions.frame import Frame
from partita.domain.expressions.values import Value, kind

Body = Callable[..., Value]
"""``(frame, *arguments) -> value``."""


@dataclass(frozen=True, slots=True)
class Function:
    """One function; a method call passes its receiver as the first argument."""

    name: str
    parameters: str
    """As shown to people, such as ``text, old, new``."""
    least: int
    most: int
    summary: str
    body: Body
    cost: int
    """Visits of one call on small arguments."""


USUAL_COST: Final = 4

FUNCTIONS: Final[dict[str, Function]] = {}
"""Every function, by name."""


def function(
    parameters: str, summary: str, *, name: str = "", optional: int = 0, cost: int = USUAL_COST
) -> Callable[[Body], Body]:
    """Register a function under its own (or the given) name; the last ``optional`` parameters may be left out."""

    def register(body: Body) -> Body:
        count = parameters.count(",") + 1
        least, most = (1, 64) if parameters.endswith("…") else (count - optional, count)
        label = name or body.__name__.rstrip("_")
        FUNCTIONS[label] = Function(label, parameters, least, most, summary, body, cost)
        return body

    return register


def expect(value: Value, wanted: type, role: str) -> Value:
    """The value, if it has the wanted type; otherwise an error that names both."""
    if type(value) is wanted:
        return value
    raise ExpressionError(f"{role}: expected {kind(wanted())}, found {kind(value)}")


def charge(frame: Frame, args: list[Value], cost: int) -> None:
    """Pay for a call and for its arguments, which a function may have to read in full."""
    for value in args:
        if type(value) is str:
            cost += len(value) >> 6
        elif type(value) is list or type(value) is dict:
            cost += len(value)
    frame.spend(cost)
