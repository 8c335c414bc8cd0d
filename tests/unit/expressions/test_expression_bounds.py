"""Hostile expressions end soon, in an ExpressionError, whatever they try."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from partita.domain.errors import InvalidError
from partita.domain.expressions import ExpressionError, compile_condition, compile_template, limits
from partita.domain.expressions.errors import ExpressionSyntaxError
from partita.domain.expressions.frame import Frame
from partita.domain.expressions.program import compile_program
from partita.domain.expressions.values import CONTAINER_COST
from partita.domain.payload import Json

LIST = [*range(200)]
SCOPE: dict[str, Json] = {"input": {"l": LIST, "large": [*range(10_000)], "text": "x" * 500_000, "one": 1}}


def fails(source: str) -> str:
    with pytest.raises((ExpressionError, ExpressionSyntaxError)) as caught:
        compile_program(source, None).json(Frame(SCOPE))
    return str(caught.value)


STEPS = "needs more than 150,000 steps for this much data; expected a smaller list or a task that does the work"


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (
            "input.l.map(a, input.l.map(b, input.l.map(c, a * b * c)))",
            "nests more than 2 of map, filter, all, exists; split it with a compute node",
        ),
        ("input.large.map(a, input.large.map(b, a * b))", STEPS),
        ("input.large.map(a, input.large)", STEPS),
        ("input.l.exists(a, -1 in input.large)", STEPS),
        ("input.l.map(a, sort(input.large))", STEPS),
        ("input.large.map(a, distinct([[a], [a + 1]] + input.l.map(b, [b])))", STEPS),
        ("input.l.all(a, input.large + [a] == input.large + [a])", STEPS),
        ("range(10000).map(x, range(10000))", STEPS),
        (
            "replace(input.text, 'x', input.text)",
            "makes a string of 250,000,000,000 characters; expected at most 1,048,576",
        ),
        ("join(range(4).map(x, input.text))", "makes a string of 2,000,000 characters; expected at most 1,048,576"),
        ("input.text + input.text + input.text", "makes a string of 1,500,000 characters; expected at most 1,048,576"),
        (
            "format('%s%s%s', [input.text, input.text, input.text])",
            "makes a string of 1,500,000 characters; expected at most 1,048,576",
        ),
        ("input.l.map(a, input.text + 'y').size() > 0", STEPS),
        ("input.l.map(a, input.text)", STEPS),
        ("input.l.map(a, upper(input.text)).size()", STEPS),
        (r"input.text.matches('\\w{90}z')", STEPS),
        ("split(input.text, '')", "makes a list of 500,000 items; expected at most 10,000"),
        ("flatten(range(2).map(x, input.large))", "makes a list of 20,000 items; expected at most 10,000"),
        ("input.l.map(a, input.text.matches('(x+)+y')).size()", STEPS),
        (
            "json.encode(range(3).map(x, input.text))",
            "makes a string of 1,500,010 characters; expected at most 1,048,576",
        ),
        ("(" * 30 + "1" + ")" * 30, "nests more than 24 parentheses; split it with a compute node"),
        ("+".join(["input.one"] * 200), "is nested more than 100 levels deep; split it with a compute node"),
        ("input" + "['a'][0]" * 60, "is nested more than 100 levels deep; split it with a compute node"),
        ("-" * 300 + "input.one", "is nested more than 100 levels deep; split it with a compute node"),
        ("input." + "a" * 4100, "has 4,106 characters; expected at most 4,096"),
    ],
)
def test_hostile_expressions_are_refused(source: str, message: str) -> None:
    assert fails(source) == message


def test_ordinary_work_on_large_data_is_done() -> None:
    program = compile_program("input.large.filter(x, x % 2 == 0).map(x, x * 2).size()", None)
    assert program.json(Frame(SCOPE)) == 5_000


def test_long_chains_of_conditions_cost_no_depth() -> None:
    condition = compile_condition("${" + " || ".join(f"input.one == {n}" for n in range(200)) + "}")
    assert condition.test(SCOPE)


@pytest.mark.parametrize(
    ("source", "visits"),
    [
        ("input.l.map(a, a + 1)", 200 * 3),
        ("input.l.map(a, a > 5, a + 1)", 200 * 6),
        ("input.l.exists(a, a == 0)", 200 * 3),
        ("input.l.map(a, [1, 2].map(b, b))", 200 * (5 + 4) + 200 * 2),
        ("1 in input.l", 200),
        ("input.l == input.l", 4 + 200 * 3),
        ("input.l + input.l", 400),
        ("size(input.l)", 204),
        ("range(50)", 54),
        ("input.text + 'x'", 500_001 >> 6),
        ("lower(input.text)", 4 + (500_000 >> 6)),
        ("input.text == input.text + 'x'", 500_001 >> 6),
        ("input.text == input.text", 500_000 >> 10),
        ("input.text < input.text + 'x'", (500_001 >> 6) + (500_000 >> 10)),
        ("distinct([[1], [2]])", 3 * 4 + 4 + 2 + 2 * (8 + 4)),
        ("timestamp('2024-01-01T00:00:00Z') < timestamp(1)", 2 * 24),
        ("format('%s%s', [1, 2])", 4 + 4 + 2 + 2 * 12),
        ("[1, 2].exists(x, x.y == 1) || true", 4 + 2 * (4 + 24) + 24),
        ("input.one", 0),
        ("input.text.matches('(x+)+y')", 8 + (500_000 >> 6) + (4 * 500_000 >> 5)),
        ("input.one + 1 > 2 && true", 0),
    ],
)
def test_what_work_costs(source: str, visits: int) -> None:
    frame = Frame(SCOPE)
    compile_program(f"[{source}, input.one]", None).value(frame)
    assert limits.VISITS - frame.left - CONTAINER_COST == visits  # that of the list around it


def test_the_budget_is_shared_by_all_expressions_of_a_field() -> None:
    one = "${input.large.map(x, x).size()}"
    assert compile_template({"a": one}).render(SCOPE) == {"a": 10_000}
    with pytest.raises(ExpressionError, match="steps"):
        compile_template({str(n): one for n in range(60)}).render(SCOPE)


def test_a_large_value_named_often_is_refused_before_it_is_stored() -> None:
    assert compile_template(["${input.text}"] * 8).render(SCOPE) == [SCOPE["input"]["text"]] * 8
    with pytest.raises(ExpressionError, match=r"make more than 4,194,304 characters"):
        compile_template(["${input.text}"] * 9).render(SCOPE)
    with pytest.raises(ExpressionError, match=r"make more than 4,194,304 characters"):
        compile_template(["${input}"] * 9).render(SCOPE)


def test_deep_data_is_an_expression_error() -> None:
    deep: Any = 1
    for _ in range(5_000):
        deep = [deep]
    for source in ("${json.encode(input.deep)}", "${input.deep == [input.deep]}", "${[input.deep]}"):
        with pytest.raises(ExpressionError, match="nested too deeply"):
            compile_template(source).render({"input": {"deep": deep}})


def test_deep_templates_are_refused() -> None:
    deep: Any = "${input.one}"
    for _ in range(limits.TEMPLATE_DEPTH + 1):
        deep = [deep]
    with pytest.raises(InvalidError, match="is nested more than 64 levels deep"):
        compile_template(deep, "input")


def test_a_costly_constant_is_not_evaluated_when_it_is_compiled() -> None:
    cheap = compile_template("${range(100).map(x, x).size()}")
    costly = compile_template("${range(5000).map(x, x).size()}")
    assert cheap.constant
    assert not costly.constant
    assert costly.render({}) == 5_000


@given(st.text(alphabet="input.lone[]()'\"+-*/%<>=!&|?:,{}0123456789 xmapsize\\", max_size=60))
def test_arbitrary_text_compiles_and_evaluates_or_says_why(source: str) -> None:
    with suppress(ExpressionError, ExpressionSyntaxError):
        compile_program(source, None).json(Frame(SCOPE))
