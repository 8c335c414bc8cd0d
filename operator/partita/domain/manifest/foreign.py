"""Finds expressions that are written as in other languages.

Invariant: only what can hardly be meant literally is noted, and only for new definitions: a name of the language has to
follow the sign.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from partita.domain.errors import Problem
from partita.domain.payload import Json
from partita.domain.places import element, member, shortened

_NAMES: Final = r"(?:input|inputs|nodes|config|run|item|from|output|steps|tasks|workflow)"
_FOREIGN: Final = re.compile(
    rf"(?<!\$)(?:\{{\{{-? {{0,9}}[.$]?{_NAMES}[.\[]|\$\({_NAMES}[.\[]|\${_NAMES}[.\[])[A-Za-z0-9_.]{{0,40}}"
)


def foreign_problems(value: Json, path: str) -> Iterator[Problem]:
    """Problems of the texts in a value; its depth is bounded by the manifest's."""
    if isinstance(value, str):
        found = _FOREIGN.search(value) if "$" in value or "{{" in value else None
        if found is not None:
            message = f"{shortened(found[0])!r} is a plain text here; expressions are written as ${{input.x}}"
            yield Problem(path, message, lint=True)
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from foreign_problems(item, member(path, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from foreign_problems(item, element(path, index))
