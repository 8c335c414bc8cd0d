"""JSON Schema within bounds."""

from __future__ import annotations

from typing import Any

import pytest

from partita.domain.patterns import compile_pattern, expanded_size
from partita.domain.payload import Json
from partita.domain.schema import Budget, schema_problems, violations, with_defaults
from tests.unit.manifest.build import cases


def filled(schema: Json, value: Json) -> Json:
    """The value with the defaults of a schema, within the usual bounds."""
    return with_defaults(schema, value, budget=Budget(), most_bytes=1_000_000)


@pytest.mark.parametrize(("schema", "expected"), cases("schemas", "schema"))
def test_schemas(schema: Any, expected: list[str]) -> None:
    assert [str(problem) for problem in schema_problems(schema, "s")] == expected


def test_a_recursive_schema_that_goes_down_is_good() -> None:
    schema = {"type": "object", "properties": {"next": {"$ref": "#"}}}
    assert schema_problems(schema, "s") == ()
    assert violations(schema, {"next": {"next": {}}}) == ()
    assert [str(problem) for problem in violations(schema, {"next": {"next": 1}}, "x")] == [
        "x.next.next: 1 is not of type object"
    ]


def test_work_that_doubles_at_each_level_is_stopped() -> None:
    definitions: dict[str, Any] = {"n0": {"type": "object"}}
    for level in range(1, 40):
        definitions[f"n{level}"] = {"allOf": [{"$ref": f"#/$defs/n{level - 1}"}, {"$ref": f"#/$defs/n{level - 1}"}]}
    schema = {"$ref": "#/$defs/n39", "$defs": definitions}
    assert [str(problem) for problem in violations(schema, {}, "x")] == [
        "x: takes more than 500,000 steps to check; expected a smaller document"
    ]


def test_patterns_that_run_away_elsewhere_are_linear_here() -> None:
    schema = {"type": "string", "pattern": "^(a+)+$"}
    assert schema_problems(schema, "s") == ()
    assert len(violations(schema, "a" * 100_000 + "b")) == 1


def test_a_costly_pattern_on_a_long_text_is_stopped() -> None:
    schema = {"type": "string", "pattern": r"\w{90}z"}
    assert violations(schema, "a" * 95 + "z") == ()
    assert [str(problem) for problem in violations(schema, "a" * 100_000, "x")] == [
        "x: takes more than 500,000 steps to check; expected a smaller document"
    ]


def test_unique_items_is_linear_and_knows_types() -> None:
    schema = {"uniqueItems": True}
    assert violations(schema, [{"a": n} for n in range(20_000)]) == ()
    assert violations(schema, [1, True, "1", None, [1], {"a": 1}]) == ()
    assert [str(problem) for problem in violations(schema, [1, 1.0], "x")] == ["x: the items are not unique"]


def test_pattern_properties_and_additional_properties_agree() -> None:
    schema = {"patternProperties": {"^x-": {"type": "integer"}}, "additionalProperties": {"type": "string"}}
    assert violations(schema, {"x-a": 1, "b": "c"}) == ()
    assert [str(problem) for problem in violations(schema, {"x-a": "1", "b": 2}, "v")] == [
        "v.x-a: '1' is not of type integer",
        "v.b: 2 is not of type string",
    ]


def test_at_most_fifty_violations_are_listed() -> None:
    assert len(violations({"items": {"type": "string"}}, [*range(1000)])) == 50


def test_defaults_of_alternatives_are_not_applied() -> None:
    schema = {"anyOf": [{"properties": {"a": {"default": 1}}}], "allOf": [{"properties": {"b": {"default": 2}}}]}
    assert filled(schema, {}) == {"b": 2}


def test_defaults_are_copies() -> None:
    schema: dict[str, Any] = {"properties": {"a": {"default": {"x": []}}}}
    filled(schema, {})["a"]["x"].append(1)
    assert filled(schema, {}) == {"a": {"x": []}}


@pytest.mark.parametrize(
    ("pattern", "size"),
    [("abc", 3), ("a{3}", 3), ("(ab){3}", 6), ("((a{2}){3}){4}", 24), (r"\w{5}", 50), ("[a-z]{2,7}", 7), ("a{2,}", 2)],
)
def test_the_size_of_a_pattern(pattern: str, size: int) -> None:
    assert expanded_size(pattern) == size


def test_patterns_search_anywhere() -> None:
    assert compile_pattern("b").occurs_in("abc")
    assert not compile_pattern("^b").occurs_in("abc")
    with pytest.raises(ValueError, match="repeats too much"):
        compile_pattern(r"\w{500}")
