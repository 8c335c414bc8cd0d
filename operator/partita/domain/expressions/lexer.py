"""CEL's tokens.

Invariant: linear in the text, because no alternative of the pattern nests a repetition. Byte strings and unsigned
integers are recognised only to be refused by name: JSON has neither.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from partita.domain.expressions.errors import ExpressionSyntaxError

_TOKEN = re.compile(
    r"""
    (?P<space>[ \t\r\n\f]+|//[^\n]*)
  | (?P<float>[0-9]*\.[0-9]+(?:[eE][+-]?[0-9]+)?|[0-9]+[eE][+-]?[0-9]+)
  | (?P<int>0[xX][0-9a-fA-F]+|[0-9]+)
  | (?P<raw>[rR](?:\"{3}.*?\"{3}|'{3}.*?'{3}|"[^"\n\r]*"|'[^'\n\r]*'))
  | (?P<string>\"{3}(?:[^\\]|\\.)*?\"{3}|'{3}(?:[^\\]|\\.)*?'{3}|"(?:[^"\\\n\r]|\\.)*"|'(?:[^'\\\n\r]|\\.)*')
  | (?P<ident>[A-Za-z_][A-Za-z0-9_]*)
  | (?P<op>&&|\|\||==|!=|<=|>=|[-+*/%!?:.,()\[\]{}<>])
    """,
    re.VERBOSE | re.DOTALL,
)
_ESCAPE = re.compile(
    r"\\(?:x([0-9a-fA-F]{2})|X([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([0-3][0-7]{2})|(.))", re.DOTALL
)
_SIMPLE: Final = dict(zip("abfnrtv\\?\"'`", "\a\b\f\n\r\t\v\\?\"'`", strict=True))


class Token(NamedTuple):
    """``kind`` is int, float, string, ident, op or end; ``value`` is the literal's value or the text."""

    kind: str
    value: int | float | str
    at: int
    """Offset in the text."""


def next_token(text: str, at: int) -> tuple[Token, int]:
    """The token at or after an offset, and the offset behind it. Raises ExpressionSyntaxError for text that is none."""
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise ExpressionSyntaxError(_unknown(text, at))
        kind = match.lastgroup or ""
        if kind == "space":
            at = match.end()
            continue
        _check_neighbour(text, match, kind)
        return Token(*_literal(kind, match.group(), at), at), match.end()
    return Token("end", "", at), at


def _literal(kind: str, text: str, at: int) -> tuple[str, int | float | str]:
    if kind == "int":
        return "int", int(text, 16 if text[:2] in ("0x", "0X") else 10)
    if kind == "float":
        return "float", float(text)
    if kind in ("string", "raw"):
        body = text[1:] if kind == "raw" else text
        quotes = 3 if body[:3] in ('"""', "'''") else 1
        body = body[quotes:-quotes]
        return "string", body if kind == "raw" else _unescape(body, at)
    return kind, text


def _check_neighbour(text: str, match: re.Match[str], kind: str) -> None:
    following = text[match.end() : match.end() + 1]
    if kind == "int" and following in ("u", "U"):
        raise ExpressionSyntaxError(
            f"column {match.start() + 1}: unsigned integers do not exist here; write {match.group()}"
        )
    if kind == "ident" and following in ("'", '"') and match.group().lower() in ("b", "br", "rb"):
        raise ExpressionSyntaxError(f"column {match.start() + 1}: byte strings do not exist here; use a string")


def _unknown(text: str, at: int) -> str:
    if text[at] in "\"'":
        return f"column {at + 1}: this string is not closed"
    return f"column {at + 1}: unexpected character {text[at]!r}"


def _unescape(body: str, at: int) -> str:
    if "\\" not in body:
        return body

    def one(match: re.Match[str]) -> str:
        hexadecimal = match[1] or match[2] or match[3] or match[4]
        code = int(hexadecimal, 16) if hexadecimal else int(match[5], 8) if match[5] else -1
        if code > 0x10FFFF or 0xD800 <= code <= 0xDFFF:
            raise ExpressionSyntaxError(f"column {at + 1}: {match[0]} is not a character")
        if code >= 0:
            return chr(code)
        if match[6] not in _SIMPLE:
            raise ExpressionSyntaxError(f"column {at + 1}: unknown escape {match[0]!r}; write a backslash as \\\\")
        return _SIMPLE[match[6]]

    return _ESCAPE.sub(one, body)
