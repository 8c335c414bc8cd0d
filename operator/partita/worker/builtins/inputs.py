"""Reading the input of a built-in task: every problem of it is found before anything is done.

Invariant: ``done`` either lets the task begin or raises one error that names every wrong field. It is
``invalid_input``, the same as for a function whose parameters do not fit: a retry gets the same input, and the same
answer.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from partita.domain.durations import parse_duration
from partita.domain.nearest import nearest
from partita.domain.payload import Json, kind_of
from partita.worker.binding import InvalidTaskInputError

_MOST: Final = 50
"""Problems that are listed."""


class Fields:
    """An input that is being read."""

    def __init__(self, value: Json, known: tuple[str, ...]) -> None:
        self.problems: list[tuple[str, str]] = []
        self._values: Mapping[str, Json] = {}
        self._is_object = isinstance(value, dict)
        if not isinstance(value, dict):
            self.problem("", f"is {kind_of(value)}; expected an object with {', '.join(known)}")
            return
        self._values = value
        for name in sorted(value.keys() - set(known))[:_MOST]:
            self.problem(name[:80], f"is no field; expected one of {', '.join(known)}" + _meant(name, known))

    def problem(self, path: str, message: str) -> None:
        """Something is wrong."""
        self.problems.append((path, message))

    def done(self) -> None:
        """Raise InvalidTaskInputError when there is any problem."""
        if not self.problems:
            return
        shown = self.problems[:_MOST]
        text = "; ".join(f"{path}: {message}" if path else message for path, message in shown)
        problems = [{"path": path, "message": message} for path, message in shown]
        raise InvalidTaskInputError(f"input: {text}", details={"problems": problems})

    def has(self, name: str) -> bool:
        """Whether a field is given; null is the same as absent, since ``get(…, null)`` makes it."""
        return self._values.get(name) is not None

    def value(self, name: str) -> Json:
        """A field of any kind; None when absent."""
        return self._values.get(name)

    def text(
        self,
        name: str,
        expected: str,
        *,
        default: str | None = None,
        longest: int = 1024,
        pattern: re.Pattern[str] | None = None,
    ) -> str:
        """A text field; needed when it has no default."""
        if not self.has(name):
            if default is None and self._is_object:
                self._missing(name, expected)
            return default or ""
        value = self.value(name)
        if not isinstance(value, str):
            self.problem(name, f"is {kind_of(value)}; expected {expected}")
        elif len(value) > longest:
            self.problem(name, f"has {len(value):,} characters; expected at most {longest:,}")
        elif pattern is not None and not pattern.match(value):
            self.problem(name, f"{value[:80]!r} does not fit; expected {expected}")
        else:
            return value
        return default or ""

    def choice(self, name: str, choices: tuple[str, ...], default: str) -> str:
        """A text field with few values."""
        value = self.text(name, f"one of {', '.join(choices)}", default=default)
        if value not in choices:
            self.problem(name, f"is {value[:80]!r}; expected one of {', '.join(choices)}")
            return default
        return value

    def object(self, name: str, expected: str) -> Mapping[str, Json]:
        """A field that is an object; empty when absent."""
        value = self.value(name)
        if value is None:
            return {}
        if not isinstance(value, dict):
            self.problem(name, f"is {kind_of(value)}; expected {expected}")
            return {}
        return value

    def milliseconds(self, name: str) -> int | None:
        """A field that is a duration; None when absent."""
        if not self.has(name):
            return None
        try:
            found = parse_duration(self.text(name, "a duration such as 10s"))
        except ValueError as error:
            if isinstance(self.value(name), str):
                self.problem(name, str(error))
            return None
        if found == 0:
            self.problem(name, "is 0; expected a duration such as 10s")
        return found

    def _missing(self, name: str, expected: str) -> None:
        self.problem(name, f"is missing; expected {expected}")


def _meant(name: str, known: tuple[str, ...]) -> str:
    close = nearest(name, known)
    return f"; did you mean {close}?" if close else ""
