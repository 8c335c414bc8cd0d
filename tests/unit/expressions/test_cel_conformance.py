"""The evaluator agrees with an independent implementation of CEL.

Random expressions over a fixed document are evaluated by both; both give the same value of the same type, or both fail.
Left out is what the language defines otherwise (sizes of non-ASCII text, the order of maps, has() on null) and what the
other one gets wrong (it negates booleans and adds the keys of a map to a list).
"""

from __future__ import annotations

import cel
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from partita.domain.expressions.errors import ExpressionError, ExpressionSyntaxError
from partita.domain.expressions.frame import Frame
from partita.domain.expressions.program import compile_program
from partita.domain.payload import Json

SCOPE: dict[str, Json] = {
    "input": {"i": 3, "j": -2, "f": 1.5, "s": "abc", "t": True, "n": None, "l": [1, 2, 3], "w": ["a", "b"],
              "m": {"a": 1, "b": {"c": "x"}}},
    "nodes": {"x": {"output": {"y": 1, "z": [{"q": 2}]}, "error": None}},
}  # fmt: skip

names = st.sampled_from(["i", "j", "f", "s", "t", "n", "l", "w", "m", "a", "b", "c", "y", "z", "q"])
paths = st.builds(
    lambda root, fields: ".".join([root, *fields]),
    st.sampled_from(["input", "nodes.x.output"]),
    st.lists(names, max_size=4),
)
literals = st.one_of(
    st.integers(-5, 5).map(str),
    st.sampled_from(["9223372036854775807", "true", "false", "null", "1.5", "0.0", "2e3", "'a'", "'abc'", '"b"', "[]"]),
)


def _combined(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    binary = st.sampled_from(["+", "-", "*", "/", "%", "==", "!=", "<", "<=", ">", ">=", "&&", "||", "in"])
    macro = st.sampled_from(["map", "filter", "all", "exists", "exists_one"])
    method = st.sampled_from(["contains", "startsWith", "endsWith"])
    lists = st.sampled_from(["input.l", "input.w", "[1, 2]", "nodes.x.output.z"])
    return st.one_of(
        st.builds(lambda a, op, b: f"({a}) {op} ({b})", inner, binary, inner),
        st.builds(lambda a, op, b: f"{a} {op} {b}", inner, binary, inner),
        st.builds(lambda a, b, c: f"({a}) ? ({b}) : ({c})", inner, inner, inner),
        st.builds(lambda a: f"!({a})", inner),
        st.builds(lambda a: f"-({a})", st.sampled_from(["input.i", "input.f", "input.s", "3", "input.l", "input.n"])),
        st.builds(lambda a, b: f"[{a}, {b}]", inner, inner),
        st.builds(lambda a, b: f"{{'k': {a}, 'l': {b}}}", inner, inner),
        st.builds(lambda a, b: f"({a})[{b}]", inner, inner),
        st.builds(lambda name, target, body: f"{target}.{name}(v, {body})", macro, lists, inner | st.just("v")),
        st.builds(lambda a, name, b: f"({a}).{name}({b})", inner, method, inner),
        st.builds(lambda a: f"size({a})", inner),
        st.builds(lambda a: f"type({a}) == type(1)", inner),
    )


expressions = st.recursive(paths | literals, _combined, max_leaves=8)


def _ours(source: str) -> tuple[str, Json]:
    try:
        return "value", compile_program(source, None).value(Frame(SCOPE))
    except (ExpressionError, ExpressionSyntaxError) as error:
        return "error", str(error)


def _theirs(source: str) -> tuple[str, Json]:
    try:
        return "value", cel.evaluate(source, SCOPE)
    except (ValueError, TypeError, RuntimeError, LookupError, ArithmeticError) as error:
        return "error", f"{type(error).__name__}: {error}"


def _same(left: Json, right: Json) -> bool:
    if type(left) is not type(right):
        return False
    if isinstance(left, list):
        return len(left) == len(right) and all(map(_same, left, right))
    if isinstance(left, dict):
        return left.keys() == right.keys() and all(_same(left[key], right[key]) for key in left)
    return bool(left == right) or (left != left and right != right)  # noqa: PLR0124  # NaN


@settings(max_examples=300, deadline=None)
@given(expressions)
def test_expressions_mean_what_cel_says(source: str) -> None:
    ours, theirs = _ours(source), _theirs(source)
    assume("list + map" not in str(ours[1]))
    assert ours[0] == theirs[0], (source, ours, theirs)
    if ours[0] == "value":
        assert _same(ours[1], theirs[1]), (source, ours, theirs)


@settings(max_examples=200, deadline=None)
@given(paths)
def test_plain_paths_mean_what_cel_says(source: str) -> None:
    ours, theirs = _ours(source), _theirs(source)
    assert ours[0] == theirs[0], (source, ours, theirs)
    if ours[0] == "value":
        assert _same(ours[1], theirs[1])


@settings(max_examples=200, deadline=None)
@given(paths)
def test_a_path_means_the_same_whether_it_is_recognised_or_not(source: str) -> None:
    fast, slow = _ours(source), _ours(f"true ? ({source}) : ({source})")
    assert fast == slow
