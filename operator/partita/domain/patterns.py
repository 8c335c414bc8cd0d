"""Regular expressions that cannot run away.

Purpose: the ``pattern`` of a JSON Schema and ``matches`` of an expression are written by users and run inside the
engine. Invariant: matching is linear in the text (a finite automaton; look-around and back-references do not exist),
and compiling is bounded by the size that counted repetitions expand to. Trade-off: a few patterns that Python's ``re``
takes are refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from pydantic_core import SchemaError, SchemaValidator, core_schema

LONGEST: Final = 1024
"""Characters of a pattern."""
LARGEST: Final = 1_000
"""Size after expanding ``{n,m}``; a class such as ``\\w`` counts ten."""
LARGEST_TOGETHER: Final = 20_000
"""Size of all patterns of one definition; about two seconds to compile in the worst case."""
_left: ContextVar[list[int] | None] = ContextVar("_left", default=None)
_ATOM = re.compile(r"\\[pP]\{[^}]*\}|\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|\{[0-9]+(?:,[0-9]*)?\}|.", re.DOTALL)
_WIDE = re.compile(r"\\[wWdDsSpP]|\[\^|\.\Z|\[.*(?:\\[wWdDsSpP]|[^\x00-\x7f])", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Pattern:
    """A compiled pattern."""

    size: int
    """Upper bound of what it expands to."""
    occurs_in: Callable[[str], bool]
    """Whether it occurs in a text."""

    def work(self, text: str) -> int:
        """What looking for it in a text costs at most, in units of 12 ns (measured with Unicode classes)."""
        return self.size * len(text)


@contextmanager
def pattern_budget(size: int = LARGEST_TOGETHER) -> Iterator[None]:
    """Bound what all patterns compiled inside expand to: a definition may hold thousands."""
    token = _left.set([size])
    try:
        yield
    finally:
        _left.reset(token)


def compile_pattern(pattern: str) -> Pattern:
    """Compile a pattern. Raises ValueError that says what is wrong with it."""
    if len(pattern) > LONGEST:
        raise ValueError(f"has {len(pattern):,} characters; expected at most {LONGEST:,}")
    left = _left.get()
    if left is not None:
        left[0] -= expanded_size(pattern)
        if left[0] < 0:
            raise ValueError("makes the patterns of this definition too large together; expected fewer or shorter ones")
    return _compiled(pattern)


@lru_cache(maxsize=1024)
def _compiled(pattern: str) -> Pattern:
    size = expanded_size(pattern)
    if size > LARGEST:
        raise ValueError("repeats too much; expected smaller numbers in {…}")
    try:
        schema = core_schema.str_schema(pattern=pattern, strict=True, regex_engine="rust-regex")
        return Pattern(size, SchemaValidator(schema).isinstance_python)
    except SchemaError as error:
        raise ValueError(_reason(str(error))) from error


def _reason(message: str) -> str:
    found = re.search(r"^\s*error: (.*)$", message, re.MULTILINE)
    if found is None:
        return "is not a regular expression that can be used here"
    return f"is not a regular expression that can be used here: {found[1]}"


def expanded_size(pattern: str) -> int:
    """An upper bound of how large the pattern gets when its counted repetitions are written out."""
    groups = [0]
    last = 0
    for match in _ATOM.finditer(pattern):
        atom = match[0]
        if atom == "(":
            groups.append(0)
            last = 0
        elif atom == ")" and len(groups) > 1:
            last = groups.pop()
            groups[-1] += last
        elif atom[0] == "{" and len(atom) > 1:
            times = max(int(number[:7]) for number in re.findall("[0-9]+", atom))
            groups[-1] += last * (max(times, 1) - 1)
            last *= max(times, 1)
        else:
            last = 10 if _WIDE.match(atom) else 1
            groups[-1] += last
    return sum(groups)
