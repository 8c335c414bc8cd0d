"""Edges: where they come from, what is wrong with them, and what the model holds of them."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.manifest.build import definition, problems, task


def switch(name: str, *cases: Any, **fields: Any) -> dict[str, Any]:
    return {"name": name, "switch": [{"when": "${input.x}", "next": list(case)} for case in cases], **fields}


def compute(name: str, **fields: Any) -> dict[str, Any]:
    return {"name": name, "compute": {}, **fields}


def test_edges_come_from_depends_on_references_and_choices_each_once() -> None:
    found = definition(
        switch("s", ["d"], []),
        task("a"),
        task("b"),
        task("c", onError=[{"next": ["d"]}]),
        task(
            "d",
            dependsOn=["b", "a"],
            input={"y": "${nodes.c.output}", "x": "${get(nodes, 'a.output.z', null)}"},
            when="${nodes.a.state == 'Completed'}",
        ),
        {"name": "e", "waitForEvent": {"timeout": "1s", "onTimeout": {"next": ["f"]}}},
        task("f"),
    )
    assert found.nodes["d"].predecessors == ("b", "a", "c", "s")
    assert found.nodes["a"].successors == ("d",)
    assert found.nodes["s"].successors == ("d",)
    assert found.nodes["f"].predecessors == ("e",)
    assert found.roots == ("s", "a", "b", "c", "e")
    assert found.nodes["d"].reads == {"a", "c"}


def test_what_a_node_reads_is_told_by_any_of_its_expressions() -> None:
    found = definition(
        task("a", retry=[{"when": "${error.type == input.x}"}]),
        task("b", onError=[{"when": "${from.size() == 0}", "next": []}]),
        {"name": "c", "waitForEvent": {"until": "${events.size() > nodes.a.output.n}"}},
        output={"x": "${nodes.c.output}", "y": "${get(nodes, 'a.error', null)}"},
    )
    assert (found.nodes["a"].reads_input, found.nodes["a"].reads_from) == (True, False)
    assert (found.nodes["b"].reads_input, found.nodes["b"].reads_from) == (False, True)
    assert found.nodes["c"].predecessors == ("a",)
    assert found.output_reads == {"a", "c"}
    assert found.nodes["c"].successors == ()


ITSELF = "names its own node a, which has no output yet; expected another node, or previous in a repeat"


@pytest.mark.parametrize(
    ("nodes", "expected"),
    [
        ([task("a", dependsOn=["b"])], ["spec.nodes[0].dependsOn[0]: names node 'b', which does not exist"]),
        (
            [task("charge"), task("b", input={"x": {"y": "${nodes.chrge.output}"}})],
            ["spec.nodes[1].input.x.y: names node 'chrge', which does not exist (did you mean 'charge'?)"],
        ),
        (
            [task("charge"), task("b", when="${get(nodes, 'chage.output.ok', false)}")],
            ["spec.nodes[1].when: names node 'chage', which does not exist (did you mean 'charge'?)"],
        ),
        ([switch("s", ["x"])], ["spec.nodes[0].switch[0].next: names node 'x', which does not exist"]),
        (
            [task("a", onError=[{"next": ["x"]}])],
            ["spec.nodes[0].onError[0].next: names node 'x', which does not exist"],
        ),
        (
            [{"name": "w", "waitForEvent": {"timeout": "1s", "onTimeout": {"next": ["x"]}}}],
            ["spec.nodes[0].waitForEvent.onTimeout.next: names node 'x', which does not exist"],
        ),
        (
            [task("a", dependsOn=["a"])],
            ["spec.nodes[0].dependsOn[0]: node a waits for itself; expected another node"],
        ),
        (
            [task("a", input={"x": "${nodes.a.output}"})],
            [f"spec.nodes[0].input.x: {ITSELF}"],
        ),
        ([switch("s", ["s"])], ["spec.nodes[0].switch[0].next: node s leads to itself; expected another node"]),
        (
            [task("a"), task("a")],
            ["spec.nodes[1].name: 'a' is the name of spec.nodes[0] already; expected another"],
        ),
        (
            [task("a"), task("b", dependsOn=["a", "a"])],
            ["spec.nodes[1].dependsOn[1]: names 'a' twice"],
        ),
        (
            [task("a", dependsOn=["c"]), task("b", dependsOn=["a"]), task("c", input={"x": "${nodes.b.output}"})],
            ["spec.nodes[0].dependsOn[0]: closes a cycle: a → b → c → a; expected edges that lead one way"],
        ),
        (
            [switch("s", ["a"]), task("a"), task("z", dependsOn=["a"], onError=[{"next": ["s"]}])],
            ["spec.nodes[0].switch[0].next: closes a cycle: a → z → s → a; expected edges that lead one way"],
        ),
        (
            [
                task("a", dependsOn=["b"]),
                task("b", dependsOn=["a"]),
                task("c", dependsOn=["d"]),
                task("d", dependsOn=["c"]),
            ],
            [
                "spec.nodes[0].dependsOn[0]: closes a cycle: a → b → a; expected edges that lead one way",
                "spec.nodes[2].dependsOn[0]: closes a cycle: c → d → c; expected edges that lead one way",
            ],
        ),
        (
            [task("a"), task("b", dependsOn=["a"], joinCount=2)],
            ["spec.nodes[1].joinCount: is 2, but b has 1 edges"],
        ),
    ],
)
def test_edges_with_a_mistake(nodes: list[Any], expected: list[str]) -> None:
    assert problems(*nodes) == expected


NEVER = "can never run: {} never leads to all of {}; use join: merge"


@pytest.mark.parametrize(
    ("nodes", "expected"),
    [
        (
            [switch("s", ["a"], ["b"]), compute("a"), compute("b"), compute("j", dependsOn=["a", "b"])],
            ["spec.nodes[3].join: node j " + NEVER.format("s", "a, b")],
        ),
        (
            [
                switch("s", ["a"], ["b"]),
                compute("a"),
                compute("b"),
                compute("a2", dependsOn=["a"]),
                compute("b2", dependsOn=["b"]),
                compute("j", dependsOn=["a2", "b2"]),
                compute("after", dependsOn=["j"]),
            ],
            ["spec.nodes[5].join: node j " + NEVER.format("s", "a2, b2")],
        ),
        (
            [task("t", onError=[{"next": ["c"]}]), compute("n", dependsOn=["t"]), compute("c"),
             compute("j", dependsOn=["n", "c"])],
            ["spec.nodes[3].join: node j " + NEVER.format("t", "n, c")],
        ),
        (
            [{"name": "w", "waitForEvent": {"timeout": "1s", "onTimeout": {"next": ["late"]}}}, compute("late"),
             compute("j", dependsOn=["w", "late"])],
            ["spec.nodes[2].join: node j " + NEVER.format("w", "w, late")],
        ),
        ([switch("s", ["a"], ["b"]), compute("a"), compute("b"), compute("j", dependsOn=["a", "b"], join="merge")], []),
        ([switch("s", ["a"], ["b"]), compute("a"), compute("b"), compute("j", dependsOn=["a", "b"], join="any")], []),
        ([switch("s", ["a", "b"], ["b"]), compute("a"), compute("b"), compute("j", dependsOn=["a", "b"])], []),
        ([switch("s", ["a"], ["b"]), switch("r", ["a"], ["b"]), compute("a"), compute("b", join="any")], []),
        (
            [
                switch("s", ["a"], ["b"]),
                compute("a"),
                compute("b"),
                compute("m", dependsOn=["a", "b"], join="merge"),
                compute("j", dependsOn=["m", "a"]),
            ],
            [],
        ),
        ([switch("s", ["a"]), compute("a"), compute("j", dependsOn=["a", "s"])], []),
    ],
)  # fmt: skip
def test_joins_that_can_never_fire(nodes: list[Any], expected: list[str]) -> None:
    assert problems(*nodes) == expected


def test_a_graph_too_large_for_the_search_is_accepted_without_it() -> None:
    nodes = [switch(f"s{n}", [f"s{n + 1}"], []) for n in range(900)]
    assert problems(*nodes, compute("s900")) == []
