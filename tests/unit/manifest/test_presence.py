"""An empty value is a value: what a manifest may not say is refused however little it says."""

from __future__ import annotations

from typing import Any

import pytest

from partita.domain.manifest import parse_definition, parse_run, shapes
from partita.domain.manifest.refusals import LATER, REFUSED

EMPTY: tuple[Any, ...] = ({}, [], "", 0, False)
NEUTRAL = {("sensitive", "False"), ("hold", "[]"), ("retry", "0")}
"""What happens anyway, so that it may stand."""


def _definition(node: dict[str, Any], metadata: Any = None, **spec: Any) -> list[str]:
    nodes = [{"name": "a", **node}]
    _, problems = parse_definition({"metadata": metadata or {"name": "one"}, "spec": {"nodes": nodes, **spec}})
    return [problem.path for problem in problems]


def _run(**spec: Any) -> list[str]:
    _, problems = parse_run({"metadata": {"name": "one"}, "spec": {"definitionRef": {"name": "one"}, **spec}})
    return [problem.path for problem in problems]


def _refused(shape: shapes.Shape, field: str, value: Any) -> bool:
    if shape is shapes.SPEC:
        return f"spec.{field}" in _definition({"compute": {}}, **{field: value})
    if shape is shapes.NODE:
        return f"spec.nodes[0].{field}" in _definition({"compute": {}, field: value})
    return f"spec.{field}" in _run(**{field: value})


@pytest.mark.parametrize(
    ("shape", "field"), [key for key in (*LATER, *REFUSED) if key[0] in (shapes.SPEC, shapes.NODE, shapes.RUN)]
)
def test_an_empty_value_of_a_refused_field_is_refused(shape: shapes.Shape, field: str) -> None:
    accepted = {(field, str(value)) for value in EMPTY if not _refused(shape, field, value)}
    assert accepted <= NEUTRAL


@pytest.mark.parametrize(("kind", "path"), [("job", "job"), ("workflow", "workflow"), ("fail", "fail.type")])
def test_a_node_that_is_only_an_empty_kind_is_refused(kind: str, path: str) -> None:
    assert _definition({kind: {}}) == [f"spec.nodes[0].{path}"]


def test_an_empty_succeed_is_a_node() -> None:
    assert _definition({"succeed": {}}) == []


@pytest.mark.parametrize("value", EMPTY)
def test_an_empty_value_of_an_unknown_field_is_refused(value: Any) -> None:
    assert _definition({"compute": {}, "unheard": value}) == ["spec.nodes[0].unheard"]


@pytest.mark.parametrize("name", ["Bad_Name", "a..b", "a.-b", "-a", "a-", ".a", "a" * 254, 7, {}, False])
def test_names_that_the_api_server_refuses(name: Any) -> None:
    assert _definition({"compute": {}}, {"name": name}) == ["metadata.name"]


@pytest.mark.parametrize("metadata", [{"name": "a.b-2"}, {"generateName": "order-"}, {"generateName": "a"}])
def test_names_that_it_takes(metadata: dict[str, str]) -> None:
    assert _definition({"compute": {}}, metadata) == []


@pytest.mark.parametrize("prefix", ["Order-", "-", "a.", "a..b", 7])
def test_beginnings_of_names_that_it_refuses(prefix: Any) -> None:
    assert _definition({"compute": {}}, {"generateName": prefix}) == ["metadata.generateName"]
