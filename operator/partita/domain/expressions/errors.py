"""The one error that evaluating an expression can end with.

Invariant: nothing else leaves ``render``, ``test`` and ``millis``, whatever the expression and its data are, so that
the state machine can make it an error of the node.
"""

from __future__ import annotations

from typing import ClassVar

from partita.domain.errors import PartitaError


class ExpressionError(PartitaError):
    """An expression could not be evaluated on this data; becomes a node error of type ``expression``."""

    reason = "ExpressionError"
    type: ClassVar[str] = "expression"


class BudgetError(ExpressionError):
    """The evaluation would take more steps than a field may."""


class ExpressionSyntaxError(Exception):
    """An expression that cannot be compiled; callers turn it into a ``Problem`` with the field's path."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message
