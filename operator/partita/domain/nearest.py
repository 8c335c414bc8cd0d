"""Suggests the name that was probably meant.

Invariant: a suggestion is a courtesy, so looking for one is bounded: comparing two names takes a third of a millisecond
when they are long, and a manifest can hold as many mistakes as it has characters.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

LONGEST: Final = 64
"""Characters of a name that are looked at."""
ALONE: Final = 150_000
"""Characters compared for one suggestion at most; about half a second when all names are long."""
TOGETHER: Final = 250_000
"""Characters compared for all suggestions about one manifest."""
_left: ContextVar[list[int] | None] = ContextVar("_left", default=None)


@contextmanager
def hint_budget(characters: int = TOGETHER) -> Iterator[None]:
    """Bound what all suggestions made inside look at; problems found later come without one."""
    token = _left.set([characters])
    try:
        yield
    finally:
        _left.reset(token)


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The known name most like the word, or None if none is like it or looking for it would cost too much."""
    word = word[:LONGEST].lower()
    left = _left.get() or [ALONE]
    candidates: dict[str, str] = {}
    for name in known:
        left[0] -= len(word) + min(len(name), LONGEST)
        if left[0] < 0:
            return None
        candidates[name[: LONGEST + 1].lower()] = name
    found = difflib.get_close_matches(word, candidates, n=1, cutoff=0.6)
    return candidates[found[0]] if found else None


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """`` (did you mean 'x'?)``, or nothing."""
    name = nearest(word, known)
    return f" (did you mean {name!r}?)" if name is not None else ""
