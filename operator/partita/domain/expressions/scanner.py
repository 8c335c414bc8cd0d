"""Finds the expressions in a string.

Invariant: a token ends where the expression in it ends, read by CEL's own lexer, so that braces and quotes inside need
no escaping; ``$${`` stands for a literal ``${``. Any text gives parts or one clear error.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from partita.domain.expressions import limits
from partita.domain.expressions.errors import ExpressionSyntaxError
from partita.domain.expressions.lexer import next_token

_PATH = re.compile(r"[ ]*[A-Za-z_][A-Za-z0-9_.]*[ ]*\}")
"""Most tokens are plain paths: no need for the lexer."""


@dataclass(frozen=True, slots=True)
class Token:
    """The source of one ``${…}``."""

    source: str


Part = str | Token


def scan(text: str) -> tuple[Part, ...]:
    """Literal texts and tokens, in order; neighbouring literals are joined. Raises ExpressionSyntaxError."""
    parts: list[Part] = []
    literal: list[str] = []
    at = 0
    while (found := text.find("${", at)) >= 0:
        if found > at and text[found - 1] == "$":
            literal.append(text[at : found - 1] + "${")
            at = found + 2
            continue
        literal.append(text[at:found])
        if any(literal):
            parts.append("".join(literal))
        literal = []
        end = _end(text, found + 2)
        parts.append(Token(text[found + 2 : end].strip()))
        at = end + 1
    literal.append(text[at:])
    if any(literal):
        parts.append("".join(literal))
    return tuple(parts)


def _end(text: str, at: int) -> int:
    """Offset of the brace that closes the token whose expression begins at ``at``."""
    path = _PATH.match(text, at)
    if path is not None:
        return path.end() - 1
    start, depth = at, 0
    while True:
        try:
            token, at = next_token(text, at)
        except ExpressionSyntaxError as error:
            raise ExpressionSyntaxError(f"in ${{{text[start : start + 40]}: {error.message}") from error
        if token.kind == "end":
            raise ExpressionSyntaxError(f"${{{text[start : start + 40]} is not closed; write a literal ${{ as $${{")
        if at - start > limits.SOURCE_LENGTH + 1:
            raise ExpressionSyntaxError(
                f"${{{text[start : start + 40]}… has more than {limits.SOURCE_LENGTH:,} characters"
            )
        if token.kind == "op" and token.value in ("{", "}"):
            depth += 1 if token.value == "{" else -1
            if depth < 0:
                return token.at
