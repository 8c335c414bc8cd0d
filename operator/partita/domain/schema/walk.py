"""What one check of a document carries along.

Invariant: every keyword that is applied is paid for, in sub-checks too, so that a schema whose work doubles at each
level stops. A path costs nothing until a problem needs it.
"""

from __future__ import annotations

from typing import Any, Final

from partita.domain.errors import Problem
from partita.domain.payload import Json
from partita.domain.places import element, member

STEPS: Final = 500_000
"""Keywords applied to one document; about half a second at most."""
MOST_PROBLEMS: Final = 50
"""Problems reported of one document."""
ENDLESS: Final = "the schema refers to itself, or the document is nested too deeply"

Place = tuple[Any, str | int] | None
"""A value's place: its parent's place and the key or index; None for the whole document."""


class TooMuchError(Exception):
    """Schema and document together are more work than one check, or filling in the defaults, may be."""


class EnoughError(Exception):
    """As many problems as are reported have been found."""


class Budget:
    """Steps that are left, shared by a check and its sub-checks."""

    __slots__ = ("left",)

    def __init__(self, steps: int = STEPS) -> None:
        self.left = steps

    def spend(self, steps: int) -> None:
        """Pay for work about to be done."""
        self.left -= steps
        if self.left < 0:
            raise TooMuchError(f"takes more than {STEPS:,} steps to check; expected a smaller document")


class Walk:
    """A check in progress."""

    __slots__ = ("base", "budget", "problems", "silent")

    def __init__(self, base: str, budget: Budget, *, silent: bool = False) -> None:
        self.base = base
        self.budget = budget
        self.silent = silent
        """Only whether there is a problem matters: the first one ends the walk and is not described."""
        self.problems: list[Problem] = []

    def problem(self, place: Place, message: str) -> None:
        """Note a violation."""
        if self.silent:
            raise EnoughError
        self.problems.append(Problem(self._path(place), message))
        if len(self.problems) >= MOST_PROBLEMS:
            raise EnoughError

    def _path(self, place: Place) -> str:
        parts: list[str | int] = []
        while place is not None:
            place, key = place
            parts.append(key)
        path = self.base
        for key in reversed(parts):
            path = element(path, key) if isinstance(key, int) else member(path, key)
        return path


def brief(value: Json) -> str:
    """A value in one bounded line; large ones are not written out only to be cut."""
    if isinstance(value, list):
        return f"a list of {len(value)} items" if len(value) > 8 else _cut(value)
    if isinstance(value, dict):
        return f"an object of {len(value)} fields" if len(value) > 8 else _cut(value)
    return repr(value[:80]) if isinstance(value, str) else repr(value)


def _cut(value: Json) -> str:
    parts = value.values() if isinstance(value, dict) else value
    if any(isinstance(part, list | dict) or (isinstance(part, str) and len(part) > 80) for part in parts):
        return f"{'an object' if isinstance(value, dict) else 'a list'} of {len(value)}"
    text = repr(value)
    return text if len(text) <= 120 else f"{text[:117]}..."


def frozen(value: Json, budget: Budget) -> object:
    """A hashable stand-in that is equal for equal JSON values: 1 and 1.0 are, 1 and true are not."""
    if isinstance(value, dict):
        budget.spend(len(value))
        return frozenset([(key, frozen(item, budget)) for key, item in value.items()])
    if isinstance(value, list):
        budget.spend(len(value))
        return tuple([frozen(item, budget) for item in value])
    return (type(value) is bool, value)
