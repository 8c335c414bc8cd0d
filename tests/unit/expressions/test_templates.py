"""Templates: what is rendered, what keeps its type, what is an error."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from partita.domain.errors import InvalidError, Problem
from partita.domain.expressions import (
    ExpressionError,
    References,
    compile_condition,
    compile_duration,
    compile_template,
)
from partita.domain.expressions.analysis import RUN_FIELDS
from partita.domain.payload import Json

SCOPE: dict[str, Json] = {
    "input": {"a": 1, "s": "x", "n": None, "l": [1], "m": {"k": "v"}, "f": 2.0, "t": True, "ms": "1500ms"},
    "nodes": {"x": {"output": {"y": "z"}, "error": None, "state": "Completed", "attempt": 1, "event": None}},
    "run": {"id": "r", "startedAt": datetime(2024, 1, 1, tzinfo=UTC)},
    "now": datetime(2024, 1, 1, tzinfo=UTC),
}

MIX = "write double(left side) + …, since int and double do not mix"


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        ("${input.a}", 1),
        ("${input.n}", None),
        ("${input.l}", [1]),
        ("${input.m}", {"k": "v"}),
        ("${input.f}", 2.0),
        ("a=${input.a}", "a=1"),
        ("${input.a}${input.s}", "1x"),
        ("${input.f}/${input.t}/${now}", "2/true/2024-01-01T00:00:00Z"),
        ("$${input.a}", "${input.a}"),
        ({"a": "${nodes.x.output.y}", "b": 1}, {"a": "z", "b": 1}),
        ({"a": [{"b": ["${input.s}", None, True, 1.5]}]}, {"a": [{"b": ["x", None, True, 1.5]}]}),
        ({}, {}),
        (7, 7),
        ("${now}", "2024-01-01T00:00:00Z"),
        ("${run}", {"id": "r", "startedAt": "2024-01-01T00:00:00Z"}),
        ("${run.startedAt}", "2024-01-01T00:00:00Z"),
        ("${1 + 1}", 2),
        ("${'a'}b", "ab"),
    ],
)
def test_render(template: Json, expected: Json) -> None:
    found = compile_template(template).render(SCOPE)
    assert found == expected
    assert type(found) is type(expected)


@pytest.mark.parametrize(
    ("template", "message"),
    [
        ("a ${input.n}", "${input.n}: is null inside a text; use json.encode() or get() with a default"),
        ("a ${input.l}", "${input.l}: is a list inside a text; use json.encode() or get() with a default"),
        ("a ${input.m}", "${input.m}: is a map inside a text; use json.encode() or get() with a default"),
        ("${input.zz}", "${input.zz}: input has no field 'zz'; use get() if it may be absent"),
        ({"a": "${input.a + 1.5}"}, f"${{input.a + 1.5}}: int + double is not defined; {MIX}"),
    ],
)
def test_render_errors(template: Json, message: str) -> None:
    with pytest.raises(ExpressionError) as caught:
        compile_template(template).render(SCOPE)
    assert str(caught.value) == message
    assert caught.value.type == "expression"


def test_every_problem_of_a_template_is_reported_with_its_path() -> None:
    with pytest.raises(InvalidError) as caught:
        compile_template({"b": ["${1 +}", "ok"], "a": "${nodes.x.outptu}", "c${x}": 1, "d": "${ok"}, "spec.input")
    assert caught.value.problems == (
        Problem("spec.input.c${x}", "expressions are not evaluated in names of fields"),
        Problem(
            "spec.input.a",
            "expression 'nodes.x.outptu': nodes.x has no field 'outptu' (did you mean 'output'?); "
            "expected one of output, error, state, attempt, event",
        ),
        Problem("spec.input.b[0]", "expression '1 +': column 4: expected a value, found the end"),
        Problem("spec.input.d", "${ok is not closed; write a literal ${ as $${"),
    )


def test_unknown_variables_are_named() -> None:
    with pytest.raises(InvalidError) as caught:
        compile_template("${inputs.a}", "x", variables=frozenset({"input", "config"}))
    assert caught.value.problems == (
        Problem("x", "expression 'inputs.a': unknown variable 'inputs' (did you mean 'input'?); "
                "expected one of config, input"),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("template", "nodes", "names"),
    [
        ("${nodes.x.output.y}", ("x",), ()),
        ("${nodes['x'].output}", ("x",), ()),
        ("${has(nodes.x.output.y)}", ("x",), ()),
        ("${get(nodes, 'x.output.y', input.a)}", ("x",), ("input",)),
        ("${nodes.get('x.output', 1)}", ("x",), ()),
        ("${get(nodes.b, 'output.y')} ${nodes.a.state}", ("b", "a"), ()),
        ("${from[0].output.a + string(now)}", (), ("from", "now")),
        ("${input.l.map(config, config + run.id)}", (), ("input", "run")),
        ("${[1].map(nodes, nodes)}", (), ()),
        ({"b": "${nodes.b.output}", "a": "${nodes.a.output}"}, ("a", "b"), ()),
        ("${json.parse(input.s)}", (), ("input",)),
        ("${type(input.a) == int}", (), ("input",)),
    ],
)
def test_references(template: Json, nodes: tuple[str, ...], names: tuple[str, ...]) -> None:
    expected = References(frozenset(nodes), frozenset(names), nodes)
    assert compile_template(template).refs == expected


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("${nodes}", "nodes needs the name of a node, such as nodes.pay.output"),
        ("${nodes[input.a]}", "nodes[…] needs a literal name, such as nodes.pay.output"),
        ("${nodes.map(n, n)}", "nodes needs the name of a node, such as nodes.pay.output"),
        ("${get(nodes, input.a)}", "get(nodes, …) needs a literal path, such as get(nodes, 'pay.output.id')"),
        (
            "${run.stauts}",
            f"run has no field 'stauts' (did you mean 'status'?); expected one of {', '.join(RUN_FIELDS)}",
        ),
    ],
)
def test_what_is_read_must_be_known_beforehand(source: str, message: str) -> None:
    with pytest.raises(InvalidError) as caught:
        compile_template(source)
    assert [problem.message for problem in caught.value.problems] == [f"expression {source[2:-1]!r}: {message}"]


def test_constants_are_evaluated_once() -> None:
    template = compile_template({"a": "${sha256('x')}", "b": "$${c}"})
    assert template.constant
    assert template.render({}) is template.render({})


def test_a_constant_that_fails_does_not_compile() -> None:
    with pytest.raises(InvalidError, match="divides by zero"):
        compile_template("${1 / 0}")


def test_rendering_leaves_template_and_scope_as_they_are() -> None:
    template = compile_template({"a": ["${input.l}"], "b": {"c": 1}})
    before = repr(SCOPE)
    template.render(SCOPE)["a"].append(2)
    assert repr(SCOPE) == before
    assert template.render(SCOPE) == {"a": [[1]], "b": {"c": 1}}


def test_a_condition_is_one_token_and_boolean() -> None:
    assert compile_condition("${input.a == 1}").test(SCOPE)
    assert compile_condition(" ${input.t}\n").test(SCOPE)
    with pytest.raises(ExpressionError) as caught:
        compile_condition("${input.a}").test(SCOPE)
    assert str(caught.value) == (
        "${input.a}: a condition must be true or false, found int; compare it, such as … == 'x'"
    )


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("true", "a condition must be exactly one ${…}, found 'true'"),
        ("${true} && ${true}", "a condition must be exactly one ${…}, found '${true} && ${true}'"),
        ("${1}", "expression '1': a condition must be true or false, found int; compare it, such as … == 'x'"),
        ("${tru e}", "expression 'tru e': column 5: expected the end of the expression, found 'e'"),
    ],
)
def test_conditions_that_do_not_compile(source: str, message: str) -> None:
    with pytest.raises(InvalidError) as caught:
        compile_condition(source, "when")
    assert caught.value.problems == (Problem("when", message),)


def test_durations() -> None:
    assert compile_duration("1h30m").constant == 5_400_000
    assert compile_duration("1h30m").millis({}) == 5_400_000
    assert compile_duration("${'2s'}").constant == 2_000
    assert compile_duration("${input.ms}").millis(SCOPE) == 1_500
    assert compile_duration("${input.a}m").millis(SCOPE) == 60_000
    assert compile_duration("${duration('90s')}").millis({}) == 90_000


def test_durations_that_are_none() -> None:
    with pytest.raises(ExpressionError) as caught:
        compile_duration("${input.a}").millis(SCOPE)
    assert str(caught.value) == "${input.a}: expected a duration such as 10m, found int"
    with pytest.raises(InvalidError) as refused:
        compile_duration("ten", "wait.duration")
    assert refused.value.problems == (
        Problem("wait.duration", "'ten' is not a duration; expected numbers with ms, s, m, h or d, such as 1h30m"),
    )


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@given(json_values)
def test_a_value_without_tokens_renders_to_itself(value: Json) -> None:
    def escaped(part: Json) -> Json:
        if isinstance(part, str):
            return part.replace("${", "$${")
        if isinstance(part, list):
            return [escaped(item) for item in part]
        if isinstance(part, dict):
            return {key.replace("${", ""): escaped(item) for key, item in part.items()}
        return part

    def expected(part: Json) -> Json:
        if isinstance(part, list):
            return [expected(item) for item in part]
        if isinstance(part, dict):
            return {key.replace("${", ""): expected(item) for key, item in part.items()}
        return part

    assert compile_template(escaped(value)).render({}) == expected(value)


@given(json_values)
def test_a_value_passes_through_a_token_unchanged(value: Json) -> None:
    assert compile_template("${input.v}").render({"input": {"v": value}}) == value
