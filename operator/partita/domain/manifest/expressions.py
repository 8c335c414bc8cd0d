"""Reads the fields that hold expressions, and remembers which nodes they name.

Invariant: what a node's expressions name becomes its edges, so every expression of a node goes through here.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from typing import Final, TypeVar

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
from partita.domain.manifest.foreign import foreign_problems
from partita.domain.manifest.reader import Fields
from partita.domain.nearest import did_you_mean
from partita.domain.payload import Json, kind_of
from partita.domain.places import member, shortened

T = TypeVar("T")
_SHOWN: Final = 20
"""Constants that are listed at most."""
NO_MORE: frozenset[str] = frozenset()


class Expressions:
    """The expressions of one node (or of the run's output).

    ``more``, wherever it stands, are variables that exist in that field only.
    """

    def __init__(self, variables: frozenset[str], problems: list[Problem], config: Json = None) -> None:
        self._variables = variables
        self._problems = problems
        self._config = config
        """``spec.config``; None: what is read of it is not checked."""
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
        before = len(self.places)
        found = self._collect(lambda: compile_template(value, path, variables=known, limit=limit, places=self.places))
        self._lint(before)
        self._problems.extend(islice(foreign_problems(value, path), limits.PROBLEMS))
        return found

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
            self._place(path, found.refs)
        return found

    def duration(self, fields: Fields, name: str, more: frozenset[str] = NO_MORE) -> DurationTemplate | None:
        """A duration, fixed or as an expression."""
        value = fields.text(name, "a duration such as 30s, or ${…}", longest=limits.SHORT)
        if value is None:
            return None
        path = fields.at(name)
        found = self._collect(lambda: compile_duration(value, path, variables=self._variables | more))
        if found is not None:
            self._place(path, found.refs)
        return found

    def _place(self, path: str, refs: References) -> None:
        self.places.append((path, refs))
        self._lint(len(self.places) - 1)

    def _lint(self, since: int) -> None:
        """Note constants that do not exist; whether they do is known, since they never change."""
        if self._config is None:
            return
        for path, refs in self.places[since:]:
            for keys in sorted(refs.constants):
                if len(self._problems) < limits.PROBLEMS and (message := _missing(self._config, keys)):
                    self._problems.append(Problem(path, message, lint=True))

    def _collect(self, compile_: Callable[[], T]) -> T | None:
        try:
            return compile_()
        except InvalidError as error:
            self._problems.extend(error.problems)
            return None


def _missing(config: Json, keys: tuple[str, ...]) -> str:
    """What is wrong with a path below ``config``, or nothing."""
    at, value = "config", config
    for key in keys:
        if not isinstance(value, dict):
            return f"reads {shortened(key)} of {at}, which is {kind_of(value)}; expected an object there"
        if key not in value:
            known = f"; expected one of {', '.join(sorted(value))}" if 0 < len(value) <= _SHOWN else ""
            return f"{at} has no field {shortened(repr(key))}{did_you_mean(key, value)}{known}"
        at, value = member(at, key), value[key]
    return ""


def _is_single(value: str) -> bool:
    parts = scan(value.strip())
    return len(parts) == 1 and isinstance(parts[0], Token)
