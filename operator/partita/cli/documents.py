"""Reading what people type: manifest files, JSON values and ``name=value`` pairs.

Invariant: everything is read and checked before anything is applied, and an error names the file and the place.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import orjson

from partita.domain.durations import parse_duration
from partita.domain.errors import InvalidError, Problem
from partita.domain.payload import Json
from partita.domain.places import shortened


def read_documents(path: Path) -> list[Mapping[str, Json]]:
    """The documents of a manifest file; ``-`` is standard input. Raises InvalidError."""
    from partita.domain.manifest import load_documents  # noqa: PLC0415  # slow to import, and options come before files

    try:
        text = sys.stdin.read() if str(path) == "-" else path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidError(str(path), (Problem("", f"cannot be read: {error}"),)) from error
    documents = load_documents(text)
    if not documents:
        raise InvalidError(str(path), (Problem("", "holds no document; expected a WorkflowDefinition or WorkflowRun"),))
    return list(documents)


def json_value(text: str, option: str) -> Json:
    """A JSON value from the command line, or from a file with ``@file.json``; raises InvalidError."""
    try:
        raw = Path(text[1:]).read_bytes() if text.startswith("@") else text.encode()
        return orjson.loads(raw)
    except (OSError, ValueError) as error:
        hint = f"""{option} '{{"key": "value"}}'"""
        raise InvalidError(option, (Problem("", f"{shortened(text)!r} is not JSON: {error}"),), hint=hint) from error


def pairs(values: Sequence[str], option: str) -> list[tuple[str, Json]]:
    """``name=JSON`` pairs of a repeatable option, in order; raises InvalidError."""
    result = []
    for value in values:
        name, separator, text = value.partition("=")
        if not separator or not name:
            raise InvalidError(option, (Problem("", f"{shortened(value)!r} is no pair; expected name=JSON"),))
        result.append((name, json_value(text, f"{option} {name}=")))
    return result


def texts(values: Sequence[str], option: str) -> dict[str, str]:
    """``name=text`` pairs of a repeatable option; raises InvalidError."""
    result = {}
    for value in values:
        name, separator, text = value.partition("=")
        if not separator or not name:
            raise InvalidError(option, (Problem("", f"{shortened(value)!r} is no pair; expected NAME=VALUE"),))
        result[name] = text
    return result


def moment(text: str, option: str) -> datetime | None:
    """A time, or a duration before now; None where none was said. Raises InvalidError."""
    if not text:
        return None
    try:
        return datetime.now(UTC) - timedelta(milliseconds=parse_duration(text))
    except ValueError:
        pass
    try:
        found = datetime.fromisoformat(text)
    except ValueError as error:
        words = f"{shortened(text)!r} is no time; expected such as 2026-05-01T08:00:00Z, or a duration such as 2h"
        raise InvalidError(option, (Problem("", words),)) from error
    return found if found.tzinfo is not None else found.astimezone()
