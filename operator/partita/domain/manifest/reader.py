"""Reads the fields of a manifest and collects what is wrong.

Invariant: reading never stops at a problem. A field that is wrong reads as absent, so that one mistake gives one
problem and everything else is still checked. Null and absent are the same.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from partita.domain.durations import parse_duration
from partita.domain.errors import Problem
from partita.domain.expressions.parser import RESERVED
from partita.domain.manifest import limits
from partita.domain.manifest.refusals import LATER, REFUSED, says_nothing
from partita.domain.manifest.shapes import Shape
from partita.domain.manifest.shorthands import as_list, as_object, kind_for_text
from partita.domain.names import ANY_TEXT, NAME
from partita.domain.nearest import did_you_mean
from partita.domain.payload import Json, kind_of
from partita.domain.places import element, member, shortened

Meant = Callable[[str], str]


def _nothing_else(_: str) -> str:
    return ""


class Fields:
    """One object of a manifest. Every reader returns None (or its default) where the field is absent or wrong."""

    def __init__(self, value: Mapping[str, Any], path: str, shape: Shape, problems: list[Problem]) -> None:
        self.path = path
        self.problems = problems
        self._value = value
        self._check_names(shape)

    def _check_names(self, shape: Shape) -> None:
        names = shape.names
        for key, value in self._value.items():
            if key in names or value is None or len(self.problems) >= limits.PROBLEMS:
                continue
            if (shape, key) in LATER:
                if not says_nothing(shape, key, value):
                    self.problem(key, f"{shortened(key)} is not supported by this version; {LATER[shape, key]}")
            elif (shape, key) in REFUSED:
                self.problem(key, f"{key} does not exist here; {REFUSED[shape, key]}")
            else:
                known = ", ".join(sorted(names))
                self.problem(key, f"unknown field{did_you_mean(key, names)}; expected one of {known}")

    def at(self, name: str) -> str:
        """The path of a field."""
        return member(self.path, name)

    def problem(self, name: str, message: str, *, lint: bool = False) -> None:
        """Note a problem with a field; an empty name means the object itself."""
        self.problems.append(Problem(self.at(name) if name else self.path, message, lint))

    def has(self, name: str) -> bool:
        """Whether the field is there and not null."""
        return self._value.get(name) is not None

    def raw(self, name: str) -> Json:
        """The field as it is."""
        return self._value.get(name)

    def _typed(self, name: str, wanted: type, expected: str) -> Any:
        value = self._value.get(name)
        if value is None or type(value) is wanted:
            return value
        found = kind_for_text(value) if wanted is str and "${" not in expected else kind_of(value)
        self.problem(name, f"is {found}; expected {expected}")
        return None

    def text(
        self,
        name: str,
        expected: str,
        *,
        longest: int,
        shortest: int = 1,
        pattern: re.Pattern[str] = ANY_TEXT,
        meant: Meant = _nothing_else,
    ) -> str | None:
        """A string of so many characters that matches a pattern as a whole."""
        value: str | None = self._typed(name, str, expected)
        if value is None:
            return None
        if len(value) > longest:
            self.problem(name, f"has {len(value):,} characters; expected at most {longest:,}")
        elif len(value) < shortest:
            self.problem(name, f"is empty; expected {expected}")
        elif not pattern.match(value):
            hint = "; expressions are not evaluated here" if "${" in value else ""
            self.problem(name, f"{value[:80]!r} does not fit{meant(value)}; expected {expected}{hint}")
        else:
            return value
        return None

    def identifier(self, name: str) -> str | None:
        """A name of a node."""
        value = self.text(name, _NAME_EXPECTED, longest=63, pattern=NAME)
        if value in RESERVED:
            self.problem(name, f"{value!r} is a word of the expression language; expected another name")
            return None
        return value

    def names(self, name: str, most: int = 64) -> tuple[str, ...] | None:
        """A list of names of nodes. Names of the wrong form are left out; doubles are left to the caller."""
        return self.texts(name, most, _NAME_EXPECTED, NAME, longest=63)

    def texts(
        self,
        name: str,
        most: int,
        expected: str,
        pattern: re.Pattern[str],
        longest: int,
        meant: Meant = _nothing_else,
        *,
        lint: bool = False,
    ) -> tuple[str, ...] | None:
        """A list of strings; ``meant`` says what was probably meant by one that does not fit. With ``lint`` its form is
        no more than good manners: it is noted, and kept."""
        written = as_list(name, self.raw(name))
        values = self._list(name, most, f"a list{written}" if written else f"a list, each {expected}")
        if values is None:
            return None
        good: list[str] = []
        for index, value in enumerate(values):
            if isinstance(value, str) and len(value) <= longest and pattern.match(value):
                good.append(value)
            else:
                shown = f"{value[:80]!r}" if isinstance(value, str) else kind_for_text(value)
                hint = meant(value) if isinstance(value, str) else ""
                kept = lint and isinstance(value, str)
                self.problem(f"{name}[{index}]", f"{shown} does not fit{hint}; expected {expected}", lint=kept)
                good += [value] if kept else []
        return tuple(good)

    def check_doubles(self, name: str, good: tuple[str, ...]) -> None:
        """Note each of the good values of a list that was there before."""
        known, seen = {*good}, set[str]()
        for index, value in enumerate(self._value[name] if good else ()):
            if not isinstance(value, str) or value not in known:
                continue
            if value in seen:
                self.problem(f"{name}[{index}]", f"names {value!r} twice", lint=True)
            seen.add(value)

    def _list(self, name: str, most: int, expected: str, least: int = 0) -> list[Json] | None:
        values: list[Json] | None = self._typed(name, list, expected)
        if values is None:
            return None
        if not least <= len(values) <= most:
            self.problem(
                name,
                f"has {len(values):,} entries; expected {f'{least} to {most:,}' if least else f'at most {most:,}'}",
            )
            return values[:most]
        return values

    def flag(self, name: str) -> bool | None:
        """A boolean."""
        value: bool | None = self._typed(name, bool, "true or false")
        return value

    def integer(self, name: str, low: int, high: int) -> int | None:
        """A whole number within bounds; 3.0 counts as 3, as it does for the API server."""
        value = self._value.get(name)
        if type(value) is float and value.is_integer():
            value = int(value)
        found: int | None = self._bounded(name, value, (int,), low, high, "a whole number")
        return found

    def number(self, name: str, low: float, high: float) -> float | None:
        """A number within bounds."""
        value: float | None = self._bounded(name, self._value.get(name), (int, float), low, high, "a number")
        return None if value is None else float(value)

    def _bounded(self, name: str, value: Json, types: tuple[type, ...], low: float, high: float, word: str) -> Any:
        if value is None:
            return None
        if type(value) in types and low <= value <= high:
            return value
        shown = value if type(value) in (int, float) else kind_of(value)
        self.problem(name, f"is {shown}; expected {word} from {low:,} to {high:,}")
        return None

    def choice(self, name: str, *options: str) -> str | None:
        """One of a few words."""
        value: str | None = self._typed(name, str, f"one of {', '.join(options)}")
        if value is None or value in options:
            return value
        self.problem(
            name, f"{value[:80]!r} does not fit{did_you_mean(value, options)}; expected one of {', '.join(options)}"
        )
        return None

    def duration(self, name: str) -> int | None:
        """A fixed duration, in milliseconds."""
        value: str | None = self._typed(name, str, "a duration such as 30s, as a text")
        if value is None:
            return None
        try:
            return parse_duration(value)
        except ValueError as error:
            hint = "; expressions are not evaluated here" if "${" in value else ""
            self.problem(name, f"{error}{hint}")
            return None

    def object(self, name: str) -> dict[str, Json] | None:
        """An object of any content."""
        value: dict[str, Json] | None = self._typed(name, dict, "an object")
        return value

    def fields(self, name: str, shape: Shape) -> Fields | None:
        """An object of known fields."""
        value = self._typed(name, dict, f"an object{as_object(name, shape, self.raw(name))}")
        return None if value is None else Fields(value, self.at(name), shape, self.problems)

    def each(self, name: str, shape: Shape, most: int, least: int = 0) -> Iterator[Fields]:
        """The objects of a list."""
        for index, value in enumerate(self._objects(name, most, least)):
            if isinstance(value, dict):
                yield Fields(value, element(self.at(name), index), shape, self.problems)
            else:
                self.problem(f"{name}[{index}]", f"is {kind_of(value)}; expected an object")

    def _objects(self, name: str, most: int, least: int) -> list[Json]:
        value = self.raw(name)
        written = as_list(name, value) if isinstance(value, dict) and name not in ("nodes", "subflows") else ""
        return self._list(name, most, f"a list of objects{written}", least) or []

    def exactly_one(self, first: str, second: str) -> None:
        """Note a problem unless one of two fields is there and the other is not."""
        if self.has(first) == self.has(second):
            found = "has both" if self.has(first) else "has none"
            self.problem("", f"{found} of {first} and {second}; expected exactly one")

    def need(self, name: str, expected: str) -> bool:
        """Note a problem if the field is absent."""
        if self.has(name):
            return True
        self.problem(name, f"is missing; expected {expected}")
        return False


_NAME_EXPECTED: Final = "letters, digits and underscores, first a small letter, at most 63, such as chargeCard"
