"""Nodes that can never run are refused, and only those."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.manifest.build import definition, problems, task
from tests.unit.manifest.test_manifest_edges import compute, switch

END = {"name": "end", "fail": {"type": "refused"}}
DONE = {"name": "end", "succeed": {}}
SOMETIMES = {**END, "when": "${input.bad}"}
ENDED = "can never run: end ends the run; expected when at end, or no edge from it"


@pytest.mark.parametrize("end", [END, DONE])
@pytest.mark.parametrize("join", ["all", "merge", "any"])
def test_nothing_follows_a_node_that_ends_the_run(end: dict[str, Any], join: str) -> None:
    assert problems(end, compute("b", dependsOn=["end"], join=join)) == [f"spec.nodes[1].dependsOn[0]: node b {ENDED}"]


def test_the_problem_stands_at_the_field_that_makes_the_edge() -> None:
    found = problems(END, compute("a"), compute("b", dependsOn=["a"], when="${nodes.end.state == 'Skipped'}"))
    assert found == [f"spec.nodes[2].when: node b {ENDED}"]


def test_what_follows_a_node_that_never_runs_is_not_named_again() -> None:
    found = problems(END, compute("b", dependsOn=["end"]), compute("c", dependsOn=["b"]))
    assert found == [f"spec.nodes[1].dependsOn[0]: node b {ENDED}"]


@pytest.mark.parametrize(
    "nodes",
    [
        [SOMETIMES, compute("b", dependsOn=["end"])],
        [END, compute("a"), compute("b", dependsOn=["end", "a"], join="merge")],
        [END, compute("a"), compute("b", dependsOn=["end", "a"], join="any")],
        [END, compute("a"), compute("b", dependsOn=["end", "a"], joinCount=1)],
        [switch("s", ["end"], ["b"]), END, compute("b")],
    ],
)
def test_a_node_that_has_another_way_is_good(nodes: list[Any]) -> None:
    assert problems(*nodes) == []


FEW = "can never run: at most {}, found joinCount {}"


@pytest.mark.parametrize(
    ("nodes", "expected"),
    [
        (
            [switch("s", ["a"], ["b"]), compute("a"), compute("b"), compute("j", dependsOn=["a", "b"], joinCount=2)],
            ["spec.nodes[3].joinCount: node j " + FEW.format("1 of its edges is taken together", 2)],
        ),
        (
            [switch("s", ["a", "b"], ["c"]), compute("a"), compute("b"), compute("c"), compute("d"),
             compute("j", dependsOn=["a", "b", "c", "d"], joinCount=4)],
            ["spec.nodes[5].joinCount: node j " + FEW.format("3 of its edges are taken together", 4)],
        ),
        (
            [END, compute("a"), compute("j", dependsOn=["end", "a"], joinCount=2)],
            ["spec.nodes[2].joinCount: node j " + FEW.format("1 of its edges is taken together", 2)],
        ),
        (
            [task("t", onError=[{"next": ["j"]}]), task("u", onError=[{"next": ["j"]}]), compute("j", joinCount=2)],
            [],
        ),
        (
            [switch("s", ["a", "b"], ["c"]), compute("a"), compute("b"), compute("c"),
             compute("j", dependsOn=["a", "b", "c"], joinCount=2)],
            [],
        ),
        (
            [task("a"), task("b", dependsOn=["a"], joinCount=2)],
            ["spec.nodes[1].joinCount: is 2, but b has 1 edges"],
        ),
    ],
)  # fmt: skip
def test_a_count_that_is_never_reached(nodes: list[Any], expected: list[str]) -> None:
    assert problems(*nodes) == expected


def test_nodes_of_subflows_and_finally_are_looked_at_too() -> None:
    inner = [END, compute("b", dependsOn=["end"])]
    last = [END, compute("c", dependsOn=["end"])]
    found = problems(subflows=[{"name": "s", "nodes": inner}], **{"finally": {"nodes": last}})
    assert found == [
        f"spec.subflows[0].nodes[1].dependsOn[0]: node b {ENDED}",
        f"spec.finally.nodes[1].dependsOn[0]: node c {ENDED}",
    ]


def test_a_condition_on_the_end_keeps_what_follows() -> None:
    found = definition(SOMETIMES, compute("b", dependsOn=["end"]))
    assert found.nodes["b"].predecessors == ("end",)
