"""Makes what is reported of a manifest: in the order of the document, and with the names of the nodes.

Invariant: the path of a problem stays as it is, for programs; people find a node by its name, which stands once before
the message. The cost is linear in the manifest and its problems.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, Final

from partita.domain.errors import Problem
from partita.domain.manifest import limits
from partita.domain.names import NAME
from partita.domain.payload import Json

_STEP: Final = re.compile(r"\[([0-9]+)\]|\.?([^.\[]+)")
_NODE: Final = re.compile(r"spec(?:\.subflows\[[0-9]+\])?(?:\.finally)?\.nodes\[[0-9]+\]")
_ABSENT: Final = -1
"""The place of a field that is missing: before those that are there."""


def reported(problems: Iterable[Problem], manifest: Mapping[str, Any]) -> tuple[Problem, ...]:
    """The problems to show, at most as many as a person reads."""
    places = _Places(dict(manifest))
    ordered = sorted(problems, key=lambda problem: places.of(problem.path))
    return tuple(_named(problem, places) for problem in ordered[: limits.PROBLEMS])


class _Places:
    """Where the values of a document stand in it."""

    def __init__(self, document: Json) -> None:
        self._document = document
        self._keys: dict[int, dict[str, int]] = {}
        """Positions of the keys of each object that was looked at, by its identity."""

    def of(self, path: str) -> tuple[int, ...]:
        """The positions that lead to a value; a path that cannot be followed ends where it leaves the document."""
        value, found = self._document, list[int]()
        for step in _STEP.finditer(path):
            position, value = self._step(value, step)
            found.append(position)
            if position == _ABSENT:
                break
        return tuple(found)

    def _step(self, value: Json, step: re.Match[str]) -> tuple[int, Json]:
        index, name = step.groups()
        if isinstance(value, list) and index is not None and int(index) < len(value):
            return int(index), value[int(index)]
        if isinstance(value, dict) and name in value:
            keys = self._keys.setdefault(id(value), {})
            if not keys:
                keys |= {key: position for position, key in enumerate(value)}
            return keys[name], value[name]
        return _ABSENT, None

    def at(self, path: str) -> Json:
        """The value at a path, or None."""
        value = self._document
        for step in _STEP.finditer(path):
            value = self._step(value, step)[1]
        return value


def _named(problem: Problem, places: _Places) -> Problem:
    """The problem with the name of the node that it is in, unless its message begins with that."""
    found = _NODE.match(problem.path)
    name = places.at(f"{found[0]}.name") if found else None
    if not isinstance(name, str) or not NAME.match(name) or len(name) > limits.NAME:
        return problem
    if problem.message.startswith(f"node {name} "):
        return problem
    return replace(problem, message=f"node {name}: {problem.message}")
