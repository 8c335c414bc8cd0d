"""Every added function: one line each, and the bounds of what they make."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from partita.domain.expressions.errors import ExpressionError, ExpressionSyntaxError
from partita.domain.expressions.frame import Frame
from partita.domain.expressions.functions import FUNCTIONS
from partita.domain.expressions.program import compile_program
from partita.domain.payload import Json

SCOPE: dict[str, Json] = {
    "input": {
        "s": " Héllo ", "list": ["b", "a", "b"], "deep": {"a": [{"b": None, "c": 5}]}, "long": "x" * 1_000_000,
        "numbers": [3, 1, 2.5], "n": None, "mixed": [1, True, 1.0, "1", None, [1], [1], {"a": 1}, {"a": 1}],
    },
    "now": datetime(2024, 2, 4, 3, 4, 5, 678_900, tzinfo=UTC),
}  # fmt: skip


def value(source: str) -> Json:
    return compile_program(source, None).json(Frame(SCOPE))


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("get(input, 'deep.a.0.c')", 5),
        ("get(input, 'deep.a.0.b', 'none')", "none"),
        ("get(input, 'deep.a.7.b', 'none')", "none"),
        ("get(input, 'deep.x.y', 'none')", "none"),
        ("get(input.n, 'x', 1)", 1),
        ("get(input, 'nope')", None),
        ("get(input, 's.x', 1)", 1),
        ("input.get('deep.a.0.c', 0)", 5),
        ("split('a,b,c', ',')", ["a", "b", "c"]),
        ("split('a,b,c', ',', 2)", ["a", "b,c"]),
        ("split('a,b,c', ',', 0)", []),
        ("'abc'.split('')", ["a", "b", "c"]),
        ("'abc'.split('', 2)", ["a", "bc"]),
        ("join(input.list, '-')", "b-a-b"),
        ("join(input.list)", "bab"),
        ("join([], ',')", ""),
        ("trim(input.s)", "Héllo"),
        ("lower(input.s)", " héllo "),
        ("upper(input.s)", " HÉLLO "),
        ("replace('aXbX', 'X', '--')", "a--b--"),
        ("substring('héllo', 1)", "éllo"),
        ("substring('héllo', 1, 3)", "él"),
        ("substring('abc', 3)", ""),
        (
            "format('%s is %d, %05d, %.2f, %x, %%, %s', ['a', 5, 42, 1.5, 255, true])",
            "a is 5, 00042, 1.50, ff, %, true",
        ),
        ("format('%5s|', ['ab'])", "   ab|"),
        ("range(3)", [0, 1, 2]),
        ("range(1, 4)", [1, 2, 3]),
        ("range(0, 10, 4)", [0, 4, 8]),
        ("range(3, 0, -1)", [3, 2, 1]),
        ("range(3, 0)", []),
        ("flatten([[1], 2, [[3]]])", [1, 2, [3]]),
        ("range(2).map(x, range(2).map(y, [x, y])).flatten()", [[0, 0], [0, 1], [1, 0], [1, 1]]),
        ("sum([1, 2, 3])", 6),
        ("sum([1.5, 2.5])", 4.0),
        ("sum([])", 0),
        ("distinct(input.list)", ["b", "a"]),
        ("distinct(input.mixed)", [1, True, "1", None, [1], {"a": 1}]),
        ("sort(input.list)", ["a", "b", "b"]),
        ("sort(input.numbers)", [1, 2.5, 3]),
        ("merge({'a': 1, 'b': 2}, {'b': 3})", {"a": 1, "b": 3}),
        ("json.parse('{\"a\": [1, 2.5, null]}')", {"a": [1, 2.5, None]}),
        ("json.parse('[1]')[0]", 1),
        ("json.encode({'a': [1, null, 'x']})", '{"a":[1,null,"x"]}'),
        ("base64('héllo')", "aMOpbGxv"),
        ("sha256('abc')", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
        ("'abc'.contains('b') && 'abc'.startsWith('a') && 'abc'.endsWith('c')", True),
        ("'ab-12'.matches('^[a-z]+-[0-9]{2}$')", True),
        ("'abc'.matches('b')", True),
        ("int('42')", 42),
        ("int(1.9)", 1),
        ("int(-1.9)", -1),
        ("int(timestamp('1970-01-01T00:01:00Z'))", 60),
        ("double('1.5')", 1.5),
        ("double(3)", 3.0),
        ("string(1.0) + string(2.5) + string(7) + string(true)", "12.57true"),
        ("string(timestamp('2024-01-01T02:00:00.5+02:00'))", "2024-01-01T00:00:00.5Z"),
        ("string(duration('90m')) + string(duration('1500ms')) + string(duration('-1s'))", "5400s1.5s-1s"),
        ("bool('true')", True),
        ("timestamp(60) == timestamp('1970-01-01T00:01:00Z')", True),
        ("timestamp('2024-01-01T00:00:00.123456789Z').getMilliseconds()", 123),
        ("duration('1d') == duration('24h')", True),
        ("now.getFullYear()", 2024),
        ("now.getMonth()", 1),
        ("now.getDate()", 4),
        ("now.getDayOfMonth()", 3),
        ("now.getDayOfWeek()", 0),
        ("now.getDayOfYear()", 34),
        ("now.getHours()", 3),
        ("now.getHours('+05:30')", 8),
        ("now.getHours('-04:00')", 23),
        ("now.getMinutes()", 4),
        ("now.getSeconds()", 5),
        ("now.getMilliseconds()", 678),
        ("duration('90m').getHours()", 1),
        ("duration('90m').getMinutes()", 90),
        ("dyn(1)", 1),
        ("now", "2024-02-04T03:04:05.6789Z"),
        ("[now, duration('1s')]", ["2024-02-04T03:04:05.6789Z", "1s"]),
    ],
)
def test_functions(source: str, expected: Json) -> None:
    found = value(source)
    assert found == expected
    assert type(found) is type(expected)


NOT_A_PATTERN = "is not a regular expression that can be used here"
LOOK_AROUND = "look-around, including look-ahead and look-behind, is not supported"


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("split(1, ',')", "split: expected string, found int"),
        ("join([1])", "join: every item: expected string, found int"),
        ("substring('abc', 2, 1)", "substring: 2 to 1 does not lie within 0 to 3"),
        ("substring('abc', 4)", "substring: 4 to 3 does not lie within 0 to 3"),
        ("format('%s', [])", "format: more verbs than items in the list"),
        ("format('x', [1])", "format: more items in the list than verbs"),
        ("format('%q', [1])", "format: an unknown verb; expected %s, %d, %f, %e, %x, %X, %o, %b or %%"),
        ("format('%d', ['a'])", "format: %d: expected int, found string"),
        ("format('%s', [[1]])", "format: %s cannot show list; use json.encode"),
        ("range(0, 1, 0)", "range: the step must not be 0"),
        ("range(10001)", "makes a list of 10,001 items; expected at most 10,000"),
        ("range(-9223372036854775807, 9223372036854775807)",
         "makes a list of 18,446,744,073,709,551,614 items; expected at most 10,000"),
        ("sum(['a'])", "sum: expected numbers, found string"),
        ("sum([1, 1.5])", "int + double is not defined; write double(left side) + …, since int and double do not mix"),
        ("sort([1, 'a'])", "sort: cannot order string and int"),
        ("merge({}, 1)", "merge: expected map, found int"),
        ("int('x')", "int: 'x' is not an integer"),
        ("int('1_0')", "int: '1_0' is not an integer"),
        ("int(1e30)", "int: the double is outside 64 bits"),
        ("double('1_0')", "double: '1_0' is not a number"),
        ("string(null)", "string(null) is not defined; use json.encode"),
        ("bool(1)", "bool: expected true or false, found int"),
        ("timestamp('2024-01-01')", "timestamp: '2024-01-01' is not RFC 3339, such as 2024-05-01T08:00:00Z"),
        ("timestamp('2024-13-01T00:00:00Z')", "timestamp: '2024-13-01T00:00:00Z': month must be in 1..12"),
        ("timestamp(9223372036854775807)", "timestamp: outside the years 1 to 9999"),
        ("duration('1x')", "duration: '1x' is not a duration; expected such as 1h30m, 45s, 1d"),
        ("'a'.matches(input.s)", "matches needs a literal pattern, such as matches(input.sku, '^[A-Z]+$')"),
        ("'a'.matches('(?=a)')", f"matches: '(?=a)' {NOT_A_PATTERN}: {LOOK_AROUND}"),
        ("'a'.matches('(a{100}){100}')", "matches: '(a{100}){100}' repeats too much; expected smaller numbers in {…}"),
        ("double('NaN')", "results in nan, which is not a JSON number"),
        ("[1.0 / 0.0]", "results in inf, which is not a JSON number"),
        ("type(1)", "results in the type int; expected a value"),
        ("size(1)", "size(int) is not defined; expected a text, list or map"),
        ("'a'.getHours()", "expected a timestamp, found string; use timestamp(…)"),
    ],
)  # fmt: skip
def test_errors(source: str, message: str) -> None:
    with pytest.raises((ExpressionError, ExpressionSyntaxError)) as caught:
        value(source)
    assert str(caught.value) == message


def test_json_parse_refuses_what_is_not_json() -> None:
    with pytest.raises(ExpressionSyntaxError, match=r"json\.parse: unexpected"):
        value("json.parse('{')")


def test_every_function_has_a_summary_and_parameters() -> None:
    for name, function in FUNCTIONS.items():
        assert function.summary, name
        assert function.parameters, name
        assert function.least <= function.most, name


def test_a_span_is_exact() -> None:
    program = compile_program("duration('2h45m30.5s')", None)
    assert program.value(Frame({})) == timedelta(hours=2, minutes=45, seconds=30, milliseconds=500)
