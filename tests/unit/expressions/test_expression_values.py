"""What expressions mean: one line each."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from partita.domain.expressions.errors import ExpressionError, ExpressionSyntaxError
from partita.domain.expressions.frame import Frame
from partita.domain.expressions.program import compile_program
from partita.domain.payload import Json

NOW = datetime(2024, 1, 2, 3, 4, 5, 678_000, tzinfo=UTC)
SCOPE: dict[str, Json] = {
    "now": NOW,
    "input": {
        "n": None, "i": 7, "f": 1.5, "s": "héllo", "t": True, "big": 2**64 - 1, "list": [1, 2, 3],
        "map": {"b": 2, "a": 1}, "lines": [{"sku": "x", "n": 2}, {"sku": "y", "n": 3}],
    },
}  # fmt: skip


def value(source: str) -> Json:
    return compile_program(source, None).value(Frame(SCOPE))


def error(source: str) -> str:
    with pytest.raises((ExpressionError, ExpressionSyntaxError)) as caught:
        value(source)
    return str(caught.value)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("input.i", 7),
        ("input['i']", 7),
        ("input.list[1]", 2),
        ("input.map['a']", 1),
        ("input.n == null", True),
        ("1 + 2 * 3 - 4", 3),
        ("-7 / 2", -3),
        ("-7 % 2", -1),
        ("7.0 / 2.0", 3.5),
        ("0x1F", 31),
        ("1e3", 1000.0),
        ("-9223372036854775808", -(2**63)),
        ("1 == 1.0", True),
        ("1 == true", False),
        ("0 == false", False),
        ("[1, 2] == [1.0, 2.0]", True),
        ("[true] == [1]", False),
        ("{'a': 1} == {'a': 1.0}", True),
        ("1 < 1.5", True),
        ("'a' < 'b'", True),
        ("'a' == 1", False),
        ("'a' + 'b'", "ab"),
        ("[1] + [2]", [1, 2]),
        ("2 in input.list", True),
        ("2.0 in input.list", True),
        ("true in [1]", False),
        ("'a' in input.map", True),
        ("'z' in input.map", False),
        ("true ? 1 : input.missing", 1),
        ("true ? 1 : false ? 2 : 3", 1),
        ("!true", False),
        ("!!true", True),
        ("--1", 1),
        ("true || input.missing", True),
        ("input.missing || true", True),
        ("false && input.missing", False),
        ("input.missing && false", False),
        ("has(input.i)", True),
        ("has(input.missing)", False),
        ("has(input.n)", True),
        ("has(input.n.x)", False),
        ("size('héllo')", 5),
        ("input.s.size()", 5),
        ("input.list.size()", 3),
        ("size(input.map)", 2),
        ("input.list.map(x, x * 2)", [2, 4, 6]),
        ("input.list.map(x, x > 1, x * 2)", [4, 6]),
        ("input.list.filter(x, x > 1)", [2, 3]),
        ("input.list.all(x, x > 0)", True),
        ("input.list.exists(x, x == 9)", False),
        ("input.list.exists_one(x, x > 2)", True),
        ("input.list.exists(x, x / 0 > 1 || x == 2)", True),
        ("[0, 1].exists(x, 1 / x == 1)", True),
        ("[0, 2].all(x, 4 / x == 1)", False),
        ("input.map.map(k, k)", ["a", "b"]),
        ("input.map.exists(k, input.map[k] == 2)", True),
        ("input.lines.map(l, input.list.map(n, n * l.n))", [[2, 4, 6], [3, 6, 9]]),
        ("input.list.map(input, input + 1)", [2, 3, 4]),
        ("input.list.map(x, x).map(x, x).map(x, x)", [1, 2, 3]),
        ("type(1) == int && type(1.0) == double && type('') == string && type(null) == null_type", True),
        ("type(input.map) == map && type([]) == list && type(true) == bool && type(int) == type", True),
        ("now - timestamp('2024-01-02T00:00:00Z')", timedelta(hours=3, minutes=4, seconds=5, milliseconds=678)),
        ("now + duration('1h') > now", True),
        ("duration('1h') + duration('30m') == duration('90m')", True),
        ("-duration('1h') < duration('0s')", True),
        ("r'\\n'", "\\n"),
        ("'\\u00e9\\x41\\101\\n'", "éAA\n"),
        ("'''a\n'b\"'''", "a\n'b\""),
        ("1 // a comment", 1),
        ("[1, 2,]", [1, 2]),
        ("{'a': 1,}", {"a": 1}),
        ("input.big", 2**64 - 1),
        ("1.0 / 0.0", float("inf")),
    ],
)
def test_values(source: str, expected: Json) -> None:
    found = value(source)
    assert found == expected
    assert type(found) is type(expected)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("input.missing", "input has no field 'missing'; use get() if it may be absent"),
        ("input.map.aa", "input.map has no field 'aa' (did you mean 'a'?); use get() if it may be absent"),
        ("input.n.x", "input.n is null and has no field 'x'; write get(input, 'n.x', default) if it may be absent"),
        ("input.s.x", "input.s is a string and has no field 'x'"),
        ("input.i.x", "input.i is an int and has no field 'x'"),
        ("input.list[3]", "input.list[3]: the list has 3 items"),
        ("input.list[-1]", "input.list[-1]: the list has 3 items"),
        ("input.list[1.0]", "input.list[double]: input.list is a list; expected a list and an integer"),
        ("input.s[0]", "input.s[int]: input.s is a string; expected a list and an integer"),
        ("1 + 1.5", "int + double is not defined; write double(left side) + …, since int and double do not mix"),
        ("1.5 * input.i", "double * int is not defined; write double(right side) * …, since int and double do not mix"),
        ("'a' + 1", "string + int is not defined; use string() or ${…} inside a text"),
        ("1 - 'a'", "int - string is not defined"),
        ("9223372036854775807 + 1", "overflows a 64-bit integer; use double()"),
        ("input.big + 1", "overflows a 64-bit integer; use double()"),
        ("-9223372036854775808 / -1", "overflows a 64-bit integer; use double()"),
        ("9223372036854775808", "column 1: 9223372036854775808 is larger than a 64-bit integer"),
        ("1 / 0", "divides by zero"),
        ("1 % 0", "divides by zero"),
        ("1 < 'a'", "int < string is not defined; expected two values of one kind"),
        ("null < 1", "null < int is not defined; expected two values of one kind"),
        ("1 in 2", "int in int is not defined; expected a list or a map on the right"),
        ("1 ? 2 : 3", "a ? b : c needs a boolean before the question mark, found int"),
        ("1 && true", "&& needs booleans, found int"),
        ("input.missing && true", "input has no field 'missing'; use get() if it may be absent"),
        ("!1", "! needs a boolean, found int"),
        ("-'a'", "-string is not defined"),
        ("{1: 2}", "a map's key must be a string, found int"),
        ("{'a': 1, 'a': 2}", "a map has the key 'a' twice"),
        ("input.i.map(x, x)", "map needs a list or a map, found int"),
        ("input.list.filter(x, x)", "filter needs a boolean for each item, found int"),
        ("has(input.s.x)", "has(input.s.x): input.s is a string, not a map"),
        ("has(input)", "column 1: has() takes one field, such as has(input.customer)"),
        ("unknown.x", "variable 'unknown' does not exist here"),
        ("nope(1)", "column 1: unknown function 'nope'"),
        ("input.s.uper()", "column 9: unknown function 'uper' (did you mean 'upper'?)"),
        ("upper()", "column 1: upper takes (text), found 0"),
        ("input.list.map(1, 2)", "column 12: the first argument of map must be a plain variable name"),
        ("1u", "column 1: unsigned integers do not exist here; write 1"),
        ("b'a'", "column 1: byte strings do not exist here; use a string"),
        ("namespace", "column 1: 'namespace' is a word of the expression language"),
        ("len([1])", "column 1: unknown function 'len' (did you mean 'size'?)"),
        ("[1].filter(x)", "column 5: filter is a macro that takes two arguments; expected list.filter(x, condition)"),
        ("map([1], x, x)", "column 1: map is a macro that takes two arguments; expected list.map(x, value)"),
        ("1 +", "column 4: expected a value, found the end"),
        ("1 2", "column 3: expected the end of the expression, found '2'"),
        ("f(1,)", "column 5: expected a value, found ')'"),
        ("", "is empty; expected a value, such as ${input.customer}"),
        ("'\\q'", "column 1: unknown escape '\\\\q'; write a backslash as \\\\"),
        ("'\\ud800'", "column 1: \\ud800 is not a character"),
        ("now.getHours('Europe/Berlin')", "time zone 'Europe/Berlin': expected UTC or a fixed offset such as +02:00"),
        ("now + duration('36500d') + duration('2900000d')", "cannot be evaluated: date value out of range"),
    ],
)
def test_errors(source: str, message: str) -> None:
    assert error(source) == message
