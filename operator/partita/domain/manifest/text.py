"""What JSON and PostgreSQL cannot hold, found before anything else is looked at."""

from __future__ import annotations

import orjson

from partita.domain.errors import Problem
from partita.domain.payload import Json
from partita.domain.places import element, member

_DEEPEST = 200


def text_problems(value: Json, path: str, most_bytes: int) -> list[Problem]:
    """Problems of a whole document: too large, NUL characters, half characters, nested too deeply."""
    return storable_text(value, path, most_bytes)[1]


def storable_text(value: Json, path: str, most_bytes: int) -> tuple[str, list[Problem]]:
    """A document as JSON text, and its problems; the text is of use only without them."""
    try:
        text = orjson.dumps(value)
    except (TypeError, ValueError, RecursionError):
        return "", _bad_places(value, path) or [Problem(path, "cannot be stored as JSON")]
    if len(text) > most_bytes:
        return "", [Problem(path, f"has {len(text):,} bytes as JSON; expected at most {most_bytes:,}")]
    return text.decode(), _bad_places(value, path) if b"\\u0000" in text else []


def _bad_places(value: Json, path: str) -> list[Problem]:
    found: list[Problem] = []
    pending: list[tuple[str, Json, int]] = [(path, value, 0)]
    while pending and len(found) < 50:
        at, item, depth = pending.pop()
        if depth > _DEEPEST:
            found.append(Problem(at, "is nested too deeply"))
        elif isinstance(item, str):
            found.extend(_bad_text(at, item))
        elif isinstance(item, dict):
            for key in item:
                found.extend(
                    _bad_text(at, key)
                    if isinstance(key, str)
                    else [Problem(at, f"has the key {key!r}; expected texts as keys")]
                )
            pending.extend((member(at, str(key)), part, depth + 1) for key, part in reversed(item.items()))
        elif isinstance(item, list):
            pending.extend((element(at, index), part, depth + 1) for index, part in reversed([*enumerate(item)]))
        elif type(item) is int and not -(2**63) <= item < 2**64:
            found.append(Problem(at, "is larger than a 64-bit integer"))
        elif item is not None and type(item) not in (bool, int, float):
            found.append(Problem(at, f"is a {type(item).__name__}, which JSON does not have"))
    return found


def _bad_text(path: str, text: str) -> list[Problem]:
    if "\0" in text:
        return [Problem(path.replace("\0", "␀"), "contains a NUL character, which PostgreSQL cannot store")]
    if any("\ud800" <= character <= "\udfff" for character in text):
        return [Problem(path.encode("utf-8", "replace").decode(), "contains half a character (a lone surrogate)")]
    return []
