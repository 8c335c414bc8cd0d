"""Expressions made to be slow: each does as much as it can for every step that it pays.

Invariant: a case grows with the list that it is given, so that for each there is a largest list with which the step
budget of a field still lets it end; that is the worst which somebody can do with it. Found by trying every function
and operator on the data on which it takes longest, and kept where the time a step is among the highest.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from partita.domain.expressions import ExpressionError, limits
from partita.domain.expressions.template import Template, compile_template

Scope = Mapping[str, Any]
LONGEST: Final = 200_000
"""Items of the longest list that is tried; the input's own limit of 1 MiB allows about as many."""
_TEXT: Final = "x" * 250_000
_NOW: Final = datetime(2026, 1, 1, tzinfo=UTC)


def _numbers(count: int) -> list[Any]:
    return [*range(count)]


def _pairs(count: int) -> list[Any]:
    return [{"a": number, "b": str(number)} for number in range(count)]


def _texts(count: int) -> list[Any]:
    return [f"{number:012d}" for number in range(count)]


@dataclass(frozen=True, slots=True)
class Hostile:
    """One case: a field's value, and the list that its expressions read as ``input.l``."""

    name: str
    value: Any
    items: Callable[[int], list[Any]] = _numbers

    def template(self) -> Template:
        """The field, compiled."""
        return compile_template(self.value)

    def scope(self, count: int) -> Scope:
        """What it reads, with a list of this length (``m`` is the same, equal and not identical)."""
        return {
            "input": {"l": self.items(count), "m": self.items(count), "a": _TEXT + "a", "b": _TEXT + "b", "one": 1},
            "now": _NOW,
        }


def fits(template: Template, scope: Scope) -> bool:
    """Whether the budget lets it end; every other error is an end too."""
    try:
        template.render(scope)
    except ExpressionError as error:
        return "steps" not in error.message
    return True


def largest(case: Hostile, parts: int = 100) -> int:
    """Length of the longest list that the budget allows, within one of so many parts."""
    template = case.template()
    low, high = 1, LONGEST
    if fits(template, case.scope(high)):
        return high
    while high - low > max(1, high // parts):
        middle = (low + high) // 2
        low, high = (middle, high) if fits(template, case.scope(middle)) else (low, middle)
    return low


def _each(body: str) -> str:
    return "${input.l.map(x, " + body + ")}"


def _deep(leaf: Any, depth: int) -> Any:
    for level in range(depth):
        leaf = [leaf] if level % 2 else {"k": leaf}
    return leaf


CASES: Final[tuple[Hostile, ...]] = (
    Hostile("nested_maps", "${input.l.map(x, range(200).map(y, x * y))}"),
    Hostile("nested_filters", "${input.l.filter(x, range(100).exists(y, x - y == -1)).size()}"),
    Hostile("arithmetic", _each("x + x * 2 - x % 7 + x / 3")),
    Hostile("conditionals", _each("x > 5 ? (x > 9 ? x : x + 1) : (x < 2 ? 1 : 2)")),
    Hostile("logic", "${input.l.all(x, x >= 0 && (x < 0 || x != -1) && !(x == -2))}"),
    Hostile("maps_made", _each("{'a': x, 'b': [x], 'c': {'d': x}}")),
    Hostile("lists_made", _each("[x, [x], [[x]]]")),
    Hostile("maps_compared", "${input.l == input.m}", _pairs),
    Hostile("texts_compared", "${input.l.filter(x, input.a + 'a' == input.b + 'a').size()}"),
    Hostile("long_texts_ordered", "${input.l.filter(x, input.a < input.b).size()}"),
    Hostile("sort_numbers", "${sort(input.l)}", lambda count: [*range(count, 0, -1)]),
    Hostile("sort_texts", "${sort(input.l)}", lambda count: _texts(count)[::-1]),
    Hostile("sort_small", _each("sort([3, x, 1, 2])")),
    Hostile("distinct_maps", "${distinct(input.l)}", _pairs),
    Hostile("distinct_small", _each("distinct([1, x, x])")),
    Hostile("flatten", "${flatten(input.l).size()}", lambda count: [[number] for number in range(count)]),
    Hostile("flatten_small", _each("flatten([[1], [x]])")),
    Hostile("merge", _each("merge({'a': 1, 'b': x}, {'a': x})")),
    Hostile("membership", "${input.l.map(x, string(x) in input.l)}", _numbers),
    Hostile("strings_built", _each("'a' + string(x) + 'b' + string(x)")),
    Hostile("doubles_shown", _each("string(double(x) / 3.0)")),
    Hostile("format", _each("format('%s %05d %.2f %x', ['a', x, 1.5, x])")),
    Hostile("format_wide", _each("format('%99d%99d%99d', [x, x, x])")),
    Hostile("regex", _each("'some text'.matches('^(s|o|m|e| |t|x)+$')")),
    Hostile("regex_long", "${input.l.filter(x, input.a.matches('(x+)+y')).size()}"),
    Hostile("replace", _each("replace('a,b,c', ',', ';')")),
    Hostile("replace_long", "${input.l.map(x, replace(input.a, 'x', 'yy').size())}"),
    Hostile("split_join", _each("join(split('a,b,c', ','), ';')")),
    Hostile("characters", "${input.l.map(x, split(substring(input.a, 0, 5000), '').size())}"),
    Hostile("contains_long", "${input.l.map(x, input.a.contains('xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxy'))}"),
    Hostile("json_round_trip", _each("json.parse(json.encode([x, 'a']))")),
    Hostile("digests", _each("sha256(base64(string(x)))")),
    Hostile("times", _each("timestamp(x).getHours('+02:00')")),
    Hostile("spans", _each("now + duration('1h2m3s4ms5us6ns7d8h')")),
    Hostile("get_paths", _each("get(input, 'one.two.three.four.five', x)")),
    Hostile("errors_swallowed", "${input.l.exists(x, x.missing == 1)}"),
    Hostile("types", _each("type(x) == int")),
    Hostile("many_tokens", ["${now}"] * 12_400),
    Hostile("many_texts", ["at ${now} by ${input.one}"] * 6_200),
    Hostile("deep_template", [_deep("${input.one}", limits.TEMPLATE_DEPTH - 1)] * 700),
    Hostile("until_over_events", "${input.l.filter(e, e.a > 2 && e.b != 'no').map(e, e.b).size() > 100000}", _pairs),
)
