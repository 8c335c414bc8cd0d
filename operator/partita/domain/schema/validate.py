"""Checks documents against schemas that have no problems (``schema_problems``)."""

from __future__ import annotations

from typing import Final

from partita.domain.errors import Problem
from partita.domain.payload import Json
from partita.domain.schema.assertions import Check
from partita.domain.schema.compiler import Compiler
from partita.domain.schema.walk import STEPS, Budget, EnoughError, TooMuchError, Walk

ENDLESS: Final = "the schema refers to itself, or the document is nested too deeply"
REMEMBERED: Final = 1024
"""Compiled schemas kept; the oldest is forgotten first."""
_compiled: dict[int, tuple[Json, Check]] = {}


def violations(schema: Json, value: Json, path: str = "") -> tuple[Problem, ...]:
    """Where a document breaks a schema; all at once, at most fifty, with paths below ``path``."""
    walk = Walk(path, Budget())
    try:
        _check(schema)(value, None, walk)
    except EnoughError:
        pass
    except TooMuchError:
        return (Problem(path, f"takes more than {STEPS:,} steps to check; expected a smaller document"),)
    except RecursionError:
        return (Problem(path, ENDLESS),)
    return tuple(walk.problems)


def _check(schema: Json) -> Check:
    """The compiled schema, remembered by identity; the schema is kept beside it so that its identity stays its own."""
    known = _compiled.get(id(schema))
    if known is not None and known[0] is schema:
        return known[1]
    check = Compiler(schema).compile(schema)
    while len(_compiled) >= REMEMBERED:
        _compiled.pop(next(iter(_compiled)), None)
    _compiled[id(schema)] = (schema, check)
    return check
