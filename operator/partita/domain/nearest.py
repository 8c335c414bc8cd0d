"""Suggests the name that was probably meant."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The known name most like the word, or None if none is like it."""
    candidates = {name.lower(): name for name in known}
    found = difflib.get_close_matches(word.lower()[:64], candidates, n=1, cutoff=0.6)
    return candidates[found[0]] if found else None


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """`` (did you mean 'x'?)``, or nothing."""
    name = nearest(word, known)
    return f" (did you mean {name!r}?)" if name is not None else ""
