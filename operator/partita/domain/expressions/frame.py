"""What one evaluation carries along: its variables and what it may still spend.

Invariant: every loop, copy and search pays before it runs, so that exceeding the budget costs no more than the budget.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from partita.domain.expressions import limits
from partita.domain.expressions.errors import BudgetError, ExpressionError
from partita.domain.payload import Json


class Meter(Protocol):
    """Counts what several evaluations have spent."""

    visits: int


class Frame:
    """State of the evaluation of one field."""

    __slots__ = ("given", "hints", "left", "locals", "scope", "size", "tokens")

    def __init__(self, scope: Mapping[str, Json], visits: int = limits.VISITS) -> None:
        self.scope = scope
        self.given = visits
        self.left = visits
        """Visits that are left; shared by all expressions of the field."""
        self.locals: list[Json] = [None] * limits.COMPREHENSIONS
        """Loop variables, by level."""
        self.tokens = 0
        """Expressions of the field that have given a text, list or map so far."""
        self.size = 0
        """Characters that they add up to."""
        self.hints = 1
        """Suggestions of a similar name that may still be looked for: a loop can miss a field thousands of times."""

    def read(self, meter: Meter) -> None:
        """Add what was spent so far to a meter."""
        meter.visits += self.given - self.left

    def spend(self, visits: int) -> None:
        """Pay for work about to be done."""
        self.left -= visits
        if self.left < 0:
            raise BudgetError(
                f"needs more than {limits.VISITS:,} steps for this much data; expected a smaller list or a task that "
                "does the work"
            )

    def text(self, length: int) -> None:
        """Pay for a string about to be made or searched."""
        if length > limits.STRING_LENGTH:
            raise ExpressionError(f"makes a string of {length:,} characters; expected at most {limits.STRING_LENGTH:,}")
        if length >= 64:
            self.spend(length >> 6)

    def items(self, length: int) -> None:
        """Pay for a list about to be made by a function."""
        if length > limits.LIST_LENGTH:
            raise ExpressionError(f"makes a list of {length:,} items; expected at most {limits.LIST_LENGTH:,}")
        self.spend(length)
