"""Functions that turn values into text and back."""

from __future__ import annotations

import base64 as _base64
import hashlib

import orjson

from partita.domain.expressions.errors import ExpressionError
from partita.domain.expressions.frame import Frame
from partita.domain.expressions.functions.registry import expect, function
from partita.domain.expressions.values import Value, plain


@function("text", "the value that a JSON text describes", name="json.parse", cost=8)
def json_parse(_: Frame, value: Value) -> Value:
    try:
        return orjson.loads(expect(value, str, "json.parse"))
    except ValueError as error:
        raise ExpressionError(f"json.parse: {error}") from error


@function("value", "the value as compact JSON text", name="json.encode", cost=8)
def json_encode(frame: Frame, value: Value) -> str:
    try:
        encoded = orjson.dumps(plain(frame, value)).decode()
    except (TypeError, ValueError) as error:
        raise ExpressionError(f"json.encode: {error}") from error
    frame.text(len(encoded))
    return encoded


def _utf8(value: Value, role: str) -> bytes:
    try:
        return str(expect(value, str, role)).encode()
    except UnicodeEncodeError as error:
        raise ExpressionError(f"{role}: the text holds half a character") from error


@function("text", "its UTF-8 bytes in Base64", cost=10)
def base64(frame: Frame, value: Value) -> str:
    data = _utf8(value, "base64")
    frame.text(len(data) * 4 // 3)
    return _base64.b64encode(data).decode()


@function("text", "hexadecimal SHA-256 of its UTF-8 bytes", cost=14)
def sha256(_: Frame, value: Value) -> str:
    return hashlib.sha256(_utf8(value, "sha256")).hexdigest()
