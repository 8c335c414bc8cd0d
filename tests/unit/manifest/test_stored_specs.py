"""A spec that is stored is executed as it stands, whatever is linted today; what cannot be executed still fails."""

from __future__ import annotations

from typing import Any

import pytest

from partita.domain.errors import InvalidError
from partita.domain.manifest import definition_from_spec, parse_definition
from partita.domain.manifest.limits import PROBLEMS
from partita.domain.model import Join
from tests.unit.manifest.build import manifest, task

CHOICE = [
    {"name": "s", "switch": [{"when": "${input.x}", "next": ["b"]}, {"next": ["c"]}]},
    task("b"),
    task("c"),
]
ROUTES = [{"next": []}, {"match": ["gateway"], "next": ["b"]}]
LINTED: dict[str, list[dict[str, Any]]] = {
    "a match that no worker reports": [task("a", retry=[{"match": ["CardDeclined", "x" * 64]}])],
    "a route behind one that takes all": [task("a", onError=ROUTES), task("b")],
    "a case behind otherwise": [{"name": "s", "switch": [{"next": []}, {"when": "${true}", "next": []}]}],
    "both branches of a choice": [*CHOICE, task("d", dependsOn=["b", "c"])],
    "more branches than are taken": [*CHOICE, task("d", dependsOn=["b", "c"], joinCount=2)],
    "something after the end": [{"name": "f", "fail": {"type": "refused"}}, task("a", dependsOn=["f"])],
    "a constant that does not exist": [task("a", input={"x": "${config.limit}"})],
    "an expression of another language": [task("a", input={"x": "{{input.x}} $(nodes.b.output)"})],
    "a source twice": [task("a"), task("b", dependsOn=["a", "a"])],
}


@pytest.mark.parametrize("nodes", LINTED.values(), ids=LINTED)
def test_what_is_linted_is_refused_only_while_it_is_new(nodes: list[dict[str, Any]]) -> None:
    refused, problems = parse_definition(manifest(*nodes))
    assert refused is None
    assert all(problem.lint for problem in problems)
    assert [*definition_from_spec({"nodes": nodes}).nodes] == [node["name"] for node in nodes]


def test_what_is_linted_keeps_its_meaning() -> None:
    found = definition_from_spec({"nodes": LINTED["a match that no worker reports"]})
    assert found.nodes["a"].retry[0].match == ("CardDeclined", "x" * 64)
    found = definition_from_spec({"nodes": LINTED["a route behind one that takes all"]})
    assert [route.next for route in found.nodes["a"].on_error] == [(), ("b",)]
    found = definition_from_spec({"nodes": LINTED["more branches than are taken"]})
    assert (found.nodes["d"].join, found.nodes["d"].join_count) == (Join.COUNT, 2)


@pytest.mark.parametrize(
    ("tier", "problem"),
    [
        ({"match": [7]}, "match[0]: a number does not fit"),
        ({"match": ["any"], "whenever": 1}, "whenever: unknown field"),
        ({"match": ["any"], "when": "${nope}"}, "when: expression 'nope'"),
    ],
)
def test_what_cannot_be_executed_fails_beside_any_number_of_lint(tier: dict[str, Any], problem: str) -> None:
    odd = [task(f"a{index}", retry=[{"match": ["CardDeclined"]}]) for index in range(PROBLEMS)]
    with pytest.raises(InvalidError) as caught:
        definition_from_spec({"nodes": [*odd, task("z", retry=[tier])]}, name="x")
    assert len(caught.value.problems) == 1
    path, message = problem.split(": ")
    assert caught.value.problems[0].path == f"spec.nodes[{PROBLEMS}].retry[0].{path}"
    assert caught.value.problems[0].message.startswith(f"node z: {message}")
