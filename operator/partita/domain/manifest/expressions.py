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
from partita.domain.expressions.scanner import Token, scan
from partita.domain.manifest import limits
from partita.domain.manifest.reader import Fields
from partita.domain.payload import Json, kind_of
from partita.domain.places import shortened

T = TypeVar("T")
NO_MORE: frozenset[str] = frozenset()


class Expressions:
    """The expressions of one node (or of the run's output).

    ``more``, wherever it stands, are variables that exist in that field only.
    """

    def __init__(self, variables: frozenset[str], problems: list[Problem]) -> None:
        self._variables = variables
        self._problems = problems
        self.places: list[tuple[str, References]] = []
        """Every expression's path and references, in the order in which edges are made from them."""

    @property
    def refs(self) -> References:
        """All that the expressions read."""
        return merged(refs for _, refs in self.places)

    def template(
        self,
        fields: Fields,
        name: str,
        value: Json,
        more: frozenset[str] = NO_MORE,
        *,
        limit: int = limits.CONDITION,
    ) -> Template | None:
        """Compile a value that stands in a field."""
        path, known = fields.at(name), self._variables | more
        return self._collect(lambda: compile_template(value, path, variables=known, limit=limit, places=self.places))

    def object(self, fields: Fields, name: str, more: frozenset[str] = NO_MORE) -> Template | None:
        """An object of expressions."""
        value = fields.object(name)
        return None if value is None else self.template(fields, name, value, more)

    def text(self, fields: Fields, name: str, expected: str, longest: int, shortest: int = 1) -> Template | None:
        """A text with expressions."""
        value = fields.text(name, expected, longest=longest, shortest=shortest)
        return None if value is None else self.template(fields, name, value, limit=min(longest, limits.CONDITION))

    def single(
        self,
        fields: Fields,
        name: str,
        expected: str,
        kinds: tuple[type, ...] = (),
        more: frozenset[str] = NO_MORE,
    ) -> Template | None:
        """Exactly one ``${…}``; ``kinds`` are those of its value, which is looked at if it is known already."""
        value = fields.text(name, expected, longest=limits.CONDITION)
        if value is None:
            return None
        path, problems = fields.at(name), len(self._problems)
        found = self.template(fields, name, value.strip(), more)
        if found is not None and not _is_single(value):
            self._problems.append(Problem(path, f"is {shortened(repr(value))}; expected {expected}"))
        elif found is not None and kinds and found.constant and not isinstance(found.render({}), kinds):
            self._problems.append(Problem(path, f"gives {kind_of(found.render({}))}; expected {expected}"))
        return found if len(self._problems) == problems else None

    def condition(self, fields: Fields, name: str, *more: str) -> Condition | None:
        """A condition."""
        value = fields.text(name, "one ${…} that gives a boolean", longest=limits.CONDITION)
        if value is None:
            return None
        path = fields.at(name)
        found = self._collect(lambda: compile_condition(value, path, variables=self._variables | {*more}))
        if found is not None:
            self.places.append((path, found.refs))
        return found

    def duration(self, fields: Fields, name: str, more: frozenset[str] = NO_MORE) -> DurationTemplate | None:
        """A duration, fixed or as an expression."""
        value = fields.text(name, "a duration such as 30s, or ${…}", longest=limits.SHORT)
        if value is None:
            return None
        path = fields.at(name)
        found = self._collect(lambda: compile_duration(value, path, variables=self._variables | more))
        if found is not None:
            self.places.append((path, found.refs))
        return found

    def _collect(self, compile_: Callable[[], T]) -> T | None:
        try:
            return compile_()
        except InvalidError as error:
            self._problems.extend(error.problems)
            return None


def _is_single(value: str) -> bool:
    parts = scan(value.strip())
    return len(parts) == 1 and isinstance(parts[0], Token)
