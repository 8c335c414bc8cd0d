"""Checks documents against schemas that have no problems (``schema_problems``)."""

from __future__ import annotations

from typing import Final

from partita.domain.errors import Problem
from partita.domain.payload import Json
from partita.domain.schema.assertions import Check
from partita.domain.schema.compiler import Compiler
from partita.domain.schema.walk import ENDLESS, Budget, EnoughError, TooMuchError, Walk

REMEMBERED: Final = 1024
"""Compiled schemas kept; the oldest is forgotten first."""
_compiled: dict[int, tuple[Json, Check]] = {}


def violations(schema: Json, value: Json, path: str = "", *, budget: Budget | None = None) -> tuple[Problem, ...]:
    """Where a document breaks a schema; all at once, at most fifty, with paths below ``path``.

    ``budget``: what it may cost; None is a whole one.
    """
    walk = Walk(path, budget or Budget())
    try:
        _check(schema)(value, None, walk)
    except EnoughError:
        pass
    except TooMuchError as error:
        return (Problem(path, str(error)),)
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
