"""JSON documents that are stored and read far more often than they are looked into.

Invariant: text and value of one payload always say the same. A payload read from the database keeps its text and is
parsed only when an expression asks for it; one made by a worker keeps its value and is encoded once. The trade-off is
one small object around each document, against a parse and an encode of everything that merely passes through.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import fields, is_dataclass
from enum import Enum
from math import isfinite
from typing import Any, Final

import orjson

from partita.domain.errors import InvalidError, Problem

Json = Any
"""A JSON value: None, bool, int, float, str, list or dict with string keys."""

_UNSET: Final = object()
_NUL = re.compile(r"(?<!\\)(?:\\\\)*\\u0000")


class Payload:
    """One immutable JSON document, as text, as value, or both."""

    __slots__ = ("_text", "_value")

    def __init__(self, text: str | None, value: Json = _UNSET) -> None:
        self._text = text
        self._value = value

    @classmethod
    def of(cls, value: Json) -> Payload:
        """Wrap a JSON value; it must not be changed afterwards."""
        return cls(None, value)

    @classmethod
    def parse(cls, text: str) -> Payload:
        """Wrap JSON text that is known to be valid, such as a column of the database."""
        return cls(text)

    @classmethod
    def joined(cls, parts: Iterable[Payload | None]) -> Payload:
        """A list of documents, null for None, made of their texts without parsing them."""
        return cls(f"[{','.join([_text_of(part) for part in parts])}]")

    @classmethod
    def keyed(cls, keys: Iterable[str], parts: Iterable[Payload | None]) -> Payload:
        """An object of documents, made in the same way; keys are those of a stored object."""
        members = [f"{orjson.dumps(key).decode()}:{_text_of(part)}" for key, part in zip(keys, parts, strict=True)]
        return cls(f"{{{','.join(members)}}}")

    @property
    def value(self) -> Json:
        """The parsed document."""
        if self._value is _UNSET:
            self._value = orjson.loads(self._text or "null")
        return self._value

    @property
    def text(self) -> str:
        """The document as JSON text; raises InvalidError for what JSON or PostgreSQL cannot hold."""
        if self._text is None:
            self._text = encode(self._value)
        return self._text

    def size(self) -> int:
        """Bytes of the document as UTF-8 JSON."""
        text = self.text
        return len(text) if text.isascii() else len(text.encode())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Payload) and bool(self.value == other.value)

    def __hash__(self) -> int:
        return hash(self.text)

    def __repr__(self) -> str:
        return f"Payload({self.text})"


def _text_of(part: Payload | None) -> str:
    return "null" if part is None else part.text


def kind_of(value: Json) -> str:
    """The JSON type of a value, in words."""
    names = {bool: "a boolean", int: "a number", float: "a number", str: "a text", list: "a list", dict: "an object"}
    return names.get(type(value), "null" if value is None else f"a {type(value).__name__}")


def encode(value: Json, subject: str = "value") -> str:
    """JSON text of a value.

    Raises InvalidError for NUL characters and lone surrogates (PostgreSQL cannot store them), integers beyond 64 bits,
    NaN and infinities, and types that JSON does not have.
    """
    try:
        text = orjson.dumps(value).decode()
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidError(subject, (Problem("", f"cannot be stored as JSON: {error}"),)) from error
    if "\\u0000" in text and _NUL.search(text):
        raise InvalidError(subject, (Problem("", "contains a NUL character, which PostgreSQL cannot store"),))
    if "null" in text and _has_no_number(value):  # the encoder writes null for what is no number, and says nothing
        raise InvalidError(subject, (Problem("", "contains NaN or an infinity, which JSON does not have"),))
    return text


def _has_no_number(value: object) -> bool:
    """Whether a float that JSON does not have is somewhere in a value that could be encoded."""
    todo = [value]
    while todo:
        one = todo.pop()
        if isinstance(one, float):
            if not isfinite(one):
                return True
        elif isinstance(one, dict):
            todo += one.values()
        elif isinstance(one, list | tuple):
            todo += one
        elif isinstance(one, Enum):
            todo.append(one.value)
        elif is_dataclass(one):
            todo += [getattr(one, item.name) for item in fields(one)]
    return False


NULL: Final = Payload("null", None)
"""The document ``null``."""
