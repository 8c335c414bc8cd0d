"""The loops of the language: all, exists, exists_one, map and filter.

Invariant: the caller has paid for every item before a loop begins; the loop variable lives in the frame's slot of its
level. In all and exists an item that decides wins over items that fail, as in CEL.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from partita.domain.expressions.errors import BudgetError, ExpressionError
from partita.domain.expressions.frame import Frame
from partita.domain.expressions.values import Value, kind

Evaluate = Callable[[Frame], Value]
Loop = Callable[[Frame, list[Value]], Value]
ERROR_COST: Final = 24
"""Visits that making an error takes."""


def _boolean(value: Value, macro: str) -> bool:
    if type(value) is bool:
        return value
    raise ExpressionError(f"{macro} needs a boolean for each item, found {kind(value)}")


def swallowed(frame: Frame, first: ExpressionError | None, error: ExpressionError) -> ExpressionError:
    """Pay for an error beside which another value may still decide, and keep the first one."""
    if isinstance(error, BudgetError):
        raise error
    frame.spend(ERROR_COST)
    return first or error


def _quantifier(macro: str, *, decides: bool) -> Callable[[Evaluate, Evaluate | None, int], Loop]:
    def make(body: Evaluate, _: Evaluate | None, slot: int) -> Loop:
        def loop(frame: Frame, items: list[Value]) -> bool:
            failure: ExpressionError | None = None
            for item in items:
                frame.locals[slot] = item
                try:
                    if _boolean(body(frame), macro) is decides:
                        return decides
                except ExpressionError as error:  # another item may still decide
                    failure = swallowed(frame, failure, error)
            if failure is not None:
                raise failure
            return not decides

        return loop

    return make


def _exists_one(body: Evaluate, _: Evaluate | None, slot: int) -> Loop:
    def loop(frame: Frame, items: list[Value]) -> bool:
        found = 0
        for item in items:
            frame.locals[slot] = item
            found += _boolean(body(frame), "exists_one")
        return found == 1

    return loop


def _map(body: Evaluate, guard: Evaluate | None, slot: int) -> Loop:
    def loop(frame: Frame, items: list[Value]) -> list[Value]:
        result: list[Value] = []
        for item in items:
            frame.locals[slot] = item
            if guard is None or _boolean(guard(frame), "map"):
                result.append(body(frame))
        return result

    return loop


def _filter(body: Evaluate, _: Evaluate | None, slot: int) -> Loop:
    def loop(frame: Frame, items: list[Value]) -> list[Value]:
        result: list[Value] = []
        for item in items:
            frame.locals[slot] = item
            if _boolean(body(frame), "filter"):
                result.append(item)
        return result

    return loop


MACROS: Final[dict[str, Callable[[Evaluate, Evaluate | None, int], Loop]]] = {
    "all": _quantifier("all", decides=False),
    "exists": _quantifier("exists", decides=True),
    "exists_one": _exists_one,
    "map": _map,
    "filter": _filter,
}
"""Makes the loop of a macro from its body, its guard and its level."""
