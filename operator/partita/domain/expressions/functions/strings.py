"""Functions on text. Positions and sizes count code points."""

from __future__ import annotations

import re

from partita.domain.expressions.errors import ExpressionError
from partita.domain.expressions.frame import Frame
from partita.domain.expressions.functions.registry import expect, function
from partita.domain.expressions.values import Value, kind, text
from partita.domain.patterns import compile_pattern

_VERB = re.compile(r"%(?:%|(0?[0-9]{0,2})(?:\.([0-9]{1,2}))?([sdfexXob]))")
_VERB_COST = 12
"""Visits that filling in one verb takes."""


@function("text, part", "whether the text contains the part")
def contains(frame: Frame, value: Value, part: Value) -> bool:
    frame.text(len(expect(value, str, "contains")))
    return expect(part, str, "contains") in expect(value, str, "contains")


@function("text, prefix", "whether the text begins so", name="startsWith")
def starts_with(_: Frame, value: Value, prefix: Value) -> bool:
    return bool(expect(value, str, "startsWith").startswith(expect(prefix, str, "startsWith")))


@function("text, suffix", "whether the text ends so", name="endsWith")
def ends_with(_: Frame, value: Value, suffix: Value) -> bool:
    return bool(expect(value, str, "endsWith").endswith(expect(suffix, str, "endsWith")))


@function("text, pattern", "whether the regular expression (RE2 syntax, written out) occurs in the text", cost=8)
def matches(frame: Frame, value: Value, pattern: Value) -> bool:
    compiled = compile_pattern(pattern)
    frame.spend(compiled.work(expect(value, str, "matches")) >> 5)
    return compiled.occurs_in(value)


@function(
    "text, separator, limit",
    "the parts between separators; an empty separator gives the characters",
    optional=1,
    cost=8,
)
def split(frame: Frame, value: Value, separator: Value, limit: Value = -1) -> list[str]:
    expect(value, str, "split")
    expect(separator, str, "split")
    most = expect(limit, int, "split")
    if most == 0:
        return []
    parts = (value.count(separator) + 1) if separator else len(value)
    frame.items(min(parts, most) if most > 0 else parts)
    if not separator:
        return [*value] if most < 0 or most >= len(value) else [*value[: most - 1], value[most - 1 :]]
    return [*value.split(separator, most - 1 if most > 0 else -1)]


@function("list, separator", "the texts of a list in one", optional=1, cost=8)
def join(frame: Frame, items: Value, separator: Value = "") -> str:
    expect(separator, str, "join")
    for item in expect(items, list, "join"):
        expect(item, str, "join: every item")
    frame.text(sum(map(len, items)) + len(separator) * max(0, len(items) - 1))
    return str(separator.join(items))


@function("text", "without white space at both ends")
def trim(_: Frame, value: Value) -> str:
    return str(expect(value, str, "trim").strip())


@function("text", "in lower case")
def lower(_: Frame, value: Value) -> str:
    return str(expect(value, str, "lower").lower())


@function("text", "in upper case")
def upper(_: Frame, value: Value) -> str:
    return str(expect(value, str, "upper").upper())


@function("text, old, new", "every occurrence of old replaced", cost=10)
def replace(frame: Frame, value: Value, old: Value, new: Value) -> str:
    for part in (value, old, new):
        expect(part, str, "replace")
    frame.text(len(value) + value.count(old) * max(0, len(new) - len(old)))
    return str(value.replace(old, new))


@function("text, from, to", "the characters from one position up to (without) another", optional=1)
def substring(_: Frame, value: Value, start: Value, end: Value = None) -> str:
    size = len(expect(value, str, "substring"))
    stop = size if end is None else expect(end, int, "substring")
    if not 0 <= expect(start, int, "substring") <= stop <= size:
        raise ExpressionError(f"substring: {start} to {stop} does not lie within 0 to {size}")
    return str(value[start:stop])


@function("pattern, list", "fills %s, %d, %5d, %05d, %.2f, %e, %x, %X, %o, %b from a list; %% is a percent sign")
def format_(frame: Frame, pattern: Value, args: Value) -> str:
    left = [*reversed(expect(args, list, "format"))]

    def one(match: re.Match[str]) -> str:
        if match[0] == "%%":
            return "%"
        frame.spend(_VERB_COST)
        if not left:
            raise ExpressionError("format: more verbs than items in the list")
        return _verb(left.pop(), match[1] or "", match[2], match[3])

    parts: list[str] = []
    at = length = 0
    for match in _VERB.finditer(expect(pattern, str, "format")):
        parts += (pattern[at : match.start()], one(match))
        length += len(parts[-1]) + len(parts[-2])
        frame.text(length)
        at = match.end()
    parts.append(pattern[at:])
    if any("%" in part for part in parts[::2]):
        raise ExpressionError("format: an unknown verb; expected %s, %d, %f, %e, %x, %X, %o, %b or %%")
    if left:
        raise ExpressionError("format: more items in the list than verbs")
    result = "".join(parts)
    frame.text(len(result))
    return result


def _verb(value: Value, width: str, precision: str | None, verb: str) -> str:
    if verb == "s":
        shown = text(value)
        if shown is None:
            raise ExpressionError(f"format: %s cannot show {kind(value)}; use json.encode")
        return shown.rjust(int(width)) if width else shown
    if verb in "fe":
        if type(value) not in (int, float):
            raise ExpressionError(f"format: %{verb} expects a number, found {kind(value)}")
        return f"{float(value):{width}.{precision or 6}{verb}}"
    return f"{expect(value, int, f'format: %{verb}'):{width}{verb}}"
