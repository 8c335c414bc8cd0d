"""Our JSON Schema gives the verdict of the published standard.

Random schemas and documents are judged by ours and by an independent implementation; what our check of schemas accepts,
the published meta-schema accepts too.
"""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from partita.domain.payload import Json
from partita.domain.schema import schema_problems, violations
from partita.domain.schema.keywords import TYPES

names = st.sampled_from(["a", "b", "ab", "c"])
scalars = st.one_of(
    st.none(), st.booleans(), st.integers(-3, 12), st.sampled_from([0.0, 1.0, 1.5, 2.5, -0.5, 10.0]),
    st.sampled_from(["", "a", "ab", "abc", "b1", "ä"]),
)  # fmt: skip
documents = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(names, inner, max_size=4),
    max_leaves=10,
)
counts = st.integers(0, 4)
numbers = st.sampled_from([-1, 0, 1, 2, 5, 1.5])


def _keyword(name: str, values: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return values.map(lambda value: {name: value})


simple = st.one_of(
    _keyword("type", st.sampled_from(TYPES) | st.lists(st.sampled_from(TYPES), min_size=1, max_size=3, unique=True)),
    _keyword("enum", st.lists(documents, max_size=3)),
    _keyword("const", documents),
    *(_keyword(name, numbers) for name in ("maximum", "minimum", "exclusiveMaximum", "exclusiveMinimum")),
    _keyword("multipleOf", st.sampled_from([1, 2, 0.5, 1.5])),
    *(_keyword(name, counts) for name in ("maxLength", "minLength", "maxItems", "minItems")),
    *(_keyword(name, counts) for name in ("maxProperties", "minProperties")),
    _keyword("pattern", st.sampled_from(["^a", "b$", "[0-9]", "^a?b*$"])),
    _keyword("uniqueItems", st.booleans()),
    _keyword("required", st.lists(names, max_size=2, unique=True)),
    _keyword("dependentRequired", st.dictionaries(names, st.lists(names, max_size=2, unique=True), max_size=2)),
    _keyword("$ref", st.sampled_from(["#/$defs/x", "#/$defs/y"])),
)


def _together(parts: list[dict[str, Any]]) -> dict[str, Any]:
    return {key: value for part in parts for key, value in part.items()}


def _nested(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    schema = inner | st.booleans()
    named = st.dictionaries(names, schema, max_size=3)
    several = st.lists(schema, min_size=1, max_size=3)
    branch = st.fixed_dictionaries({"if": schema}, optional={"then": schema, "else": schema})
    containing = st.fixed_dictionaries({"contains": schema}, optional={"minContains": counts, "maxContains": counts})
    return st.one_of(
        *(_keyword(name, several) for name in ("allOf", "anyOf", "oneOf", "prefixItems")),
        *(_keyword(name, schema) for name in ("items", "not", "additionalProperties", "propertyNames")),
        _keyword("properties", named),
        _keyword("patternProperties", st.dictionaries(st.sampled_from(["^a", "b"]), schema, max_size=2)),
        _keyword("dependentSchemas", named),
        branch,
        containing,
        st.lists(inner, min_size=2, max_size=4).map(
            lambda parts: {key: val for part in parts for key, val in part.items()}
        ),
    )


schemas = st.recursive(simple, _nested, max_leaves=8)
leaves = st.one_of(st.booleans(), st.sampled_from([{"type": "string"}, {"minimum": 2}, {"required": ["a"]}]))


def _whole(schema: dict[str, Any], x: Json, y: Json) -> dict[str, Any]:
    return {**schema, "$defs": {"x": x, "y": y}}


@settings(max_examples=500, deadline=None)
@given(st.builds(_whole, schemas, leaves, leaves), documents)
def test_verdicts_agree(schema: dict[str, Any], document: Json) -> None:
    assert schema_problems(schema, "s") == ()
    theirs = Draft202012Validator(schema).is_valid(document)
    assert (violations(schema, document) == ()) == theirs


keywords = st.sampled_from(
    [
        *("type", "enum", "items", "properties", "anyOf", "required", "minLength", "pattern", "not", "$defs"),
        *("maximum", "multipleOf", "title", "uniqueItems", "dependentRequired", "a"),
    ]
)
anything = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keywords, inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=300, deadline=None)
@given(
    st.dictionaries(
        st.sampled_from(["type", "items", "properties", "anyOf", "required", "minLength", "$defs"]), anything
    )
)
def test_a_schema_that_is_accepted_is_one_by_the_published_meta_schema(schema: dict[str, Any]) -> None:
    if not schema_problems(schema, "s"):
        Draft202012Validator.check_schema(schema)
        violations(schema, {"a": ["b"]})
