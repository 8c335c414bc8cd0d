"""Each kind of mistake in a field: its exact path and message."""

from __future__ import annotations

from typing import Any

import pytest

from partita.domain.manifest import parse_definition
from tests.unit.manifest.build import cases, manifest, problems, task


@pytest.mark.parametrize(("node", "expected"), cases("nodes", "node"))
def test_a_node_with_a_mistake(node: dict[str, Any], expected: list[str]) -> None:
    assert problems(node) == expected


@pytest.mark.parametrize(("spec", "expected"), cases("specs", "spec"))
def test_a_spec_with_a_mistake(spec: dict[str, Any], expected: list[str]) -> None:
    assert problems(**spec) == expected


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"nodes": [task(f"n{n}") for n in range(1001)]}, "spec.nodes: has 1,001 entries; expected 1 to 1,000"),
        ({"description": "x" * 4097}, "spec.description: has 4,097 characters; expected at most 4,096"),
        ({"description": "a\0b"}, "spec.description: contains a NUL character, which PostgreSQL cannot store"),
        ({"description": "\ud800"}, "spec.description: contains half a character (a lone surrogate)"),
        ({"config": {"big": "x" * 600_000}}, "spec: has 600,064 bytes as JSON; expected at most 524,288"),
    ],
)
def test_a_spec_that_is_too_large_or_cannot_be_stored(spec: dict[str, Any], expected: str) -> None:
    assert problems(**spec) == [expected]


def test_all_problems_are_listed_at_once() -> None:
    found = problems(task("a", timeout="x", dependsOn=["c"]), task("b", priority=9), failFast=1)
    assert [line.split(":")[0] for line in found] == [
        "spec.nodes[0].timeout",
        "spec.nodes[0].dependsOn[0]",
        "spec.nodes[1].priority",
        "spec.failFast",
    ]


def test_null_and_absent_are_the_same() -> None:
    assert problems(task("a", timeout=None, taks=None, job=None, retry=None), schedule=None) == []


def test_later_features_that_are_switched_off_are_no_problem() -> None:
    assert problems(task("a", sensitive=False)) == []


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"kind": "Workflow"}, ["kind: is 'Workflow'; expected WorkflowDefinition"]),
        (
            {"apiVersion": "argoproj.io/v1alpha1"},
            ["apiVersion: is 'argoproj.io/v1alpha1'; expected partita.dev/v1alpha1"],
        ),
        ({"apiVersion": None}, ["apiVersion: is missing; expected partita.dev/v1alpha1"]),
        ({"metadata": {}}, ["metadata.name: is missing; expected the object's name"]),
        ({"metadata": None}, ["metadata.name: is missing; expected the object's name"]),
        ({"spec": None}, ["spec: is null; expected an object with nodes"]),
        ({"spec": []}, ["spec: is a list; expected an object with nodes"]),
    ],
)
def test_the_head_of_a_manifest(change: dict[str, Any], expected: list[str]) -> None:
    definition, found = parse_definition({**manifest(), **change})
    assert definition is None
    assert [str(problem) for problem in found] == expected


def test_a_hostile_manifest_lists_a_bounded_number_of_problems() -> None:
    assert len(problems(*[task(f"n{n}", timeout="x", priority=9) for n in range(500)])) == 200
