"""Reading a tree of dataclasses from environment variables.

Purpose: the mechanics behind ``settings``: names, parsing, bounds, spelling. Invariant: every bad variable is reported,
not only the first, and a misspelt one is never ignored. Trade-off: types are limited to the four that settings need.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import fields
from difflib import get_close_matches
from typing import Any, Final, get_type_hints

from partita.domain.errors import Problem

PREFIX: Final = "PARTITA_"
_SERVICE_LINK: Final = re.compile(r"_(SERVICE_HOST|SERVICE_PORT(_\w+)?|PORT|PORT_\d+_(TCP|UDP|SCTP)(_\w+)?)$")
"""Variables that Kubernetes sets for the Services of a namespace; they may look like settings and are none."""


def variable(section: str, name: str) -> str:
    """Name of the environment variable that holds a field."""
    return f"{PREFIX}{section}_{name}".upper()


def read(
    environ: Mapping[str, str], tree: type, *, fixed: Mapping[str, tuple[str, str]]
) -> tuple[dict[str, Any], list[Problem]]:
    """Sections of a tree by name, with what is wrong; the values in error keep their defaults.

    ``fixed`` maps variables outside the scheme to (section, field).
    """
    problems: list[Problem] = []
    kinds: dict[str, type] = get_type_hints(tree)
    names = {
        variable(section, item.name): (section, item.name) for section, kind in kinds.items() for item in fields(kind)
    }
    aliases = {place: name for name, place in fixed.items()}
    found = {section: kind(**_section(section, kind, environ, aliases, problems)) for section, kind in kinds.items()}
    return found, problems + _unknown(environ, set(names) | set(fixed), tuple(kinds))


def _section(
    section: str,
    kind: type,
    environ: Mapping[str, str],
    aliases: Mapping[tuple[str, str], str],
    problems: list[Problem],
) -> dict[str, object]:
    values: dict[str, object] = {}
    hints = get_type_hints(kind)
    for item in fields(kind):
        name = aliases.get((section, item.name)) or variable(section, item.name)
        text = environ.get(name, "").strip()
        if not text:
            continue
        problem = item.metadata["check"](text) if "check" in item.metadata else ""
        if problem:
            problems.append(Problem(name, problem))
            continue
        try:
            values[item.name] = _parse(text, hints[item.name], item.metadata)
        except ValueError as error:
            problems.append(Problem(name, f"is {text!r}; expected {error}"))
    return values


def _parse(text: str, kind: object, bounds: Mapping[str, Any]) -> object:
    """Value of a variable; a ValueError's text says what was expected."""
    if kind is bool:
        return _boolean(text)
    if kind is int:
        return _number(text, bounds)
    if kind is str:
        if "pattern" in bounds and not re.fullmatch(bounds["pattern"], text):
            raise ValueError(bounds["expected"])
        return text
    return tuple(part.strip() for part in text.split(",") if part.strip())


def _boolean(text: str) -> bool:
    words = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}
    if text.lower() not in words:
        raise ValueError("true or false")
    return words[text.lower()]


def _number(text: str, bounds: Mapping[str, Any]) -> int:
    expected = f"a whole number from {bounds['low']} to {bounds['high']}"
    try:
        value = int(text)
    except ValueError:
        raise ValueError(expected) from None
    if not bounds["low"] <= value <= bounds["high"]:
        raise ValueError(expected)
    return value


def _unknown(environ: Mapping[str, str], known: set[str], sections: tuple[str, ...]) -> list[Problem]:
    """Variables that look like settings and are none: most likely misspelt."""
    prefixes = tuple(f"{PREFIX}{section}_".upper() for section in sections)
    problems = []
    for name in sorted(environ):
        if name in known or not name.startswith(prefixes) or _SERVICE_LINK.search(name):
            continue
        close = get_close_matches(name, known, n=1)
        problems.append(Problem(name, "is no setting" + (f"; did you mean {close[0]}?" if close else "")))
    return problems
