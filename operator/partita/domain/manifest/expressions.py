"""Reads the fields that hold expressions, and remembers which nodes they name.

Invariant: what a node's expressions name becomes its edges, so every expression of a node goes through here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from partita.domain.errors import InvalidError, Problem
from partita.domain.expressions import (
    Condition,
    DurationTemplate,
    References,
    Template,
    compile_condition,
    compile_duration,
    compile_template,
    merged,
)
from partita.domain.manifest import limits
from partita.domain.manifest.reader import Fields
from partita.domain.payload import Json

T = TypeVar("T")
COMMON: frozenset[str] = frozenset({"input", "config", "run", "now"})
"""Variables that exist in every expression, besides ``nodes``."""
IN_NODE = COMMON | {"from"}


class Expressions:
    """The expressions of one node (or of the run's output)."""

    def __init__(self, variables: frozenset[str], problems: list[Problem]) -> None:
        self._variables = variables
        self._problems = problems
        self.places: list[tuple[str, References]] = []
        """Every expression's path and references, in the order in which edges are made from them."""

    @property
    def refs(self) -> References:
        """All that the expressions read."""
        return merged(refs for _, refs in self.places)

    def template(self, fields: Fields, name: str, value: Json, *, limit: int = limits.CONDITION) -> Template | None:
        """Compile a value that stands in a field."""
        path = fields.at(name)
        return self._collect(
            lambda: compile_template(value, path, variables=self._variables, limit=limit, places=self.places)
        )

    def object(self, fields: Fields, name: str) -> Template | None:
        """An object of expressions."""
        value = fields.object(name)
        return None if value is None else self.template(fields, name, value)

    def text(self, fields: Fields, name: str, expected: str, longest: int) -> Template | None:
        """A text with expressions."""
        value = fields.text(name, expected, longest=longest)
        return None if value is None else self.template(fields, name, value, limit=longest)

    def condition(self, fields: Fields, name: str, *more: str) -> Condition | None:
        """A condition; ``more`` are variables that exist in this field only."""
        value = fields.text(name, "one ${…} that gives a boolean", longest=limits.CONDITION)
        if value is None:
            return None
        path = fields.at(name)
        found = self._collect(lambda: compile_condition(value, path, variables=self._variables | {*more}))
        if found is not None:
            self.places.append((path, found.refs))
        return found

    def duration(self, fields: Fields, name: str) -> DurationTemplate | None:
        """A duration, fixed or as an expression."""
        value = fields.text(name, "a duration such as 30s, or ${…}", longest=limits.SHORT)
        if value is None:
            return None
        path = fields.at(name)
        found = self._collect(lambda: compile_duration(value, path, variables=self._variables))
        if found is not None:
            self.places.append((path, found.refs))
        return found

    def _collect(self, compile_: Callable[[], T]) -> T | None:
        try:
            return compile_()
        except InvalidError as error:
            self._problems.extend(error.problems)
            return None
