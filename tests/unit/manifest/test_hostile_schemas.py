"""Schemas made to cost as much as possible are refused, or applied, for a bounded price.

The price is counted in what is looked at, not in seconds.
"""

from __future__ import annotations

from typing import Any

import pytest

from partita.domain.errors import InvalidInputError
from partita.domain.manifest import prepare_input
from partita.domain.payload import Json
from partita.domain.schema import Budget, TooMuchError, inplace, schema_problems, violations, with_defaults
from partita.domain.schema.walk import ENDLESS, STEPS, Walk
from tests.unit.manifest.build import definition, problems


def doubling(levels: int, last: Json) -> dict[str, Any]:
    """A schema that applies ``last`` to one value 2 ** levels times."""
    parts = {f"a{n}": {"allOf": [{"$ref": f"#/$defs/a{n + 1}"}] * 2} for n in range(levels)}
    return {"$defs": {**parts, f"a{levels}": last}, "$ref": "#/$defs/a0"}


def test_parts_that_double_at_each_level_are_refused_where_they_are_defined(monkeypatch: pytest.MonkeyPatch) -> None:
    looked_at = []
    applied = inplace._applied

    def counting(schema: Any, root: Json) -> Any:
        looked_at.append(id(schema))
        return applied(schema, root)

    monkeypatch.setattr(inplace, "_applied", counting)
    (found,) = problems(inputSchema=doubling(25, {"type": "object"}))
    assert found.startswith("spec.inputSchema: applies more than 500,000 parts to one value")
    assert len(looked_at) == len(set(looked_at)) <= 3 * 26


def test_defaults_that_double_at_each_level_stop() -> None:
    branch = {"$ref": "#", "default": {}}
    schema = {"properties": {"a": branch, "b": branch}}
    assert schema_problems(schema, "s") == ()
    with pytest.raises(InvalidInputError, match="refers to itself, or the document is nested too deeply"):
        prepare_input(definition(inputSchema=schema), {})
    deep = {"properties": {f"p{n}": {"$ref": "#/$defs/a0", "default": {}} for n in range(20)}}
    schema = {**doubling(15, {"properties": {"x": {"default": 1}}}), **deep}
    assert schema_problems(schema, "s") == ()
    with pytest.raises(InvalidInputError, match="takes more than 500,000 steps"):
        prepare_input(definition(inputSchema=schema), {})


def test_defaults_pay_for_what_they_look_at_and_copy() -> None:
    schema = {"items": {"properties": {"a": {"default": [0] * 1_000}}}}
    budget = Budget()
    with_defaults(schema, [{}] * 100, budget=budget, most_bytes=1_000_000)
    assert STEPS - budget.left > 100 * 400
    with pytest.raises(TooMuchError):
        with_defaults(schema, [{}] * 100, budget=Budget(1_000), most_bytes=1_000_000)


def test_a_large_default_is_not_repeated_beyond_the_size_of_an_input() -> None:
    schema = {"properties": {"l": {"items": {"properties": {"a": {"default": "x" * 10_000}}}}}}
    with pytest.raises(InvalidInputError, match="has more than 1,048,576 bytes with its defaults"):
        prepare_input(definition(inputSchema=schema), {"l": [{}] * 1_000})
    assert len(prepare_input(definition(inputSchema=schema), {"l": [{}] * 10}).text) > 100_000


def test_defaults_reach_through_a_long_chain_of_references_and_a_deep_document() -> None:
    parts: dict[str, Any] = {f"a{n}": {"properties": {"x": {"$ref": f"#/$defs/a{n + 1}"}}} for n in range(120)}
    schema = {"$defs": {**parts, "a120": {"properties": {"y": {"default": 1}}}}, "$ref": "#/$defs/a0"}
    document: dict[str, Any] = {}
    for _ in range(120):
        document = {"x": document}
    assert schema_problems(schema, "s") == ()
    value = with_defaults(schema, document, budget=Budget(), most_bytes=1_000)
    assert violations(schema, value) == ()
    for _ in range(120):
        value = value["x"]
    assert value == {"y": 1}


class Counting(dict[str, Any]):
    """Parts of a schema that count how often all of them are gone through."""

    times = 0

    def items(self) -> Any:
        """All parts."""
        self.times += 1
        return super().items()


def test_a_reference_is_followed_without_going_through_all_parts() -> None:
    parts = Counting({f"a{n}": {"$ref": f"#/$defs/a{n + 1}"} if n % 50 else {} for n in range(2_001)})
    assert schema_problems({"$defs": parts}, "s") == ()
    assert parts.times <= 4


@pytest.mark.parametrize(
    "schema",
    [
        {"allOf": [{"type": "object"}, {"$ref": "#"}]},
        {"properties": {"a": {"anyOf": [{"type": "string"}, {"$ref": "#/properties/a"}]}}},
        {"if": {"const": 1}, "then": {"$ref": "#"}},
        {"dependentSchemas": {"a": {"$ref": "#"}}},
        {"not": {"not": {"$ref": "#/not"}}},
    ],
)
def test_a_schema_that_applies_itself_to_the_same_value_is_refused(schema: Json) -> None:
    assert [problem.message for problem in schema_problems(schema, "s")] == [ENDLESS]


def test_a_chain_of_references_has_a_longest_length() -> None:
    def chain(length: int) -> Json:
        parts: dict[str, Any] = {f"a{n}": {"$ref": f"#/$defs/a{n + 1}"} for n in range(length)}
        return {"$defs": {**parts, f"a{length}": {"type": "object"}}}

    assert schema_problems(chain(60), "s") == ()
    assert "more than 64 levels" in schema_problems(chain(5_000), "s")[0].message


@pytest.mark.parametrize(
    "part",
    [
        {"required": ["x"] + [f"n{n}" for n in range(5_000)]},
        {"dependentRequired": {"a": [f"n{n}" for n in range(5_000)]}},
        {"dependentSchemas": {f"n{n}": True for n in range(5_000)}},
        {"anyOf": [False] * 5_000},
        {"oneOf": [False] * 5_000},
    ],
)
def test_long_lists_in_a_schema_are_paid_for(part: Json) -> None:
    schema = {"$defs": {"part": part}, "allOf": [{"anyOf": [{"$ref": "#/$defs/part"}, True]}] * 1_000}
    assert [problem.message for problem in violations(schema, {})][:1] == [
        "takes more than 500,000 steps to check; expected a smaller document"
    ]


def test_long_documents_are_paid_for_where_the_schema_is_a_word() -> None:
    for keyword, value in (("contains", [0] * 5_000), ("propertyNames", dict.fromkeys(map(str, range(5_000)), 0))):
        budget = Budget()
        violations({"allOf": [{keyword: True}] * 10}, value, budget=budget)
        assert STEPS - budget.left >= 10 * 5_000


def test_what_is_only_tried_is_not_described(monkeypatch: pytest.MonkeyPatch) -> None:
    described: list[object] = []

    def path(_: Walk, place: object) -> str:
        described.append(place)
        return ""

    monkeypatch.setattr(Walk, "_path", path)
    refusing = {"additionalProperties": {"additionalProperties": False}}
    assert violations({"allOf": [{"not": refusing}] * 100}, {"k" * 10_000: {"x": 1}}) == ()
    assert described == []


def test_problems_are_short_whatever_they_are_about() -> None:
    key = "k" * 200_000
    schema = {"properties": {key: {"properties": {f"p{n}": {"type": "nothing"} for n in range(1_000)}}}}
    for problem in (
        *schema_problems(schema, "s"),
        *schema_problems({"properties": {"a": {"$ref": f"#/{key}"}}}, "s"),
        *schema_problems({"required": "x", key: {}, "properties": {"a": {"pattern": key}}}, "s"),
        *violations({"required": [key] * 3}, {}),
        *violations({"required": [f"n{n}" for n in range(10_000)]}, {}),
        *violations({"additionalProperties": False}, {key: 1}),
        *violations({"additionalProperties": {"type": "null"}}, {key: {key: 1}}),
        *violations({"enum": [key, *range(1_000)]}, 1_001),
        *violations({"propertyNames": False}, {key: 1}),
    ):
        assert len(str(problem)) < 2_500
