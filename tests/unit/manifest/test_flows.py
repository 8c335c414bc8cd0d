"""What children, subflows, loops, undo, finally and the two ends become in the model."""

from __future__ import annotations

from typing import Any

import pytest

from partita.domain.manifest import limits
from partita.domain.model import FailSpec, ForEach, NodeKind, Repeat, SucceedSpec, TaskSpec, Tier, Undo, WorkflowSpec
from tests.unit.manifest.build import definition, problems, task

LINES = {"items": "${input.lines}"}


def one(**fields: Any) -> Any:
    """The model of one task node with these fields."""
    return definition(task("a", **fields)).nodes["a"]


def test_a_child_run() -> None:
    found = definition(
        {
            "name": "a",
            "workflow": {"name": "shipping", "version": 3},
            "input": {"x": 1},
            "timeout": "1h",
            "priority": 1,
        },
        {"name": "b", "workflow": {"name": "invoice", "detach": True}, "retry": [{"maxRetries": 1}]},
        defaults={"timeout": "1s", "scheduleToStart": "1s", "retry": [{}]},
    ).nodes
    assert (found["a"].kind, found["a"].workflow) == (NodeKind.WORKFLOW, WorkflowSpec("shipping", 3, "", False))
    assert found["a"].input is not None
    assert found["a"].input.source == {"x": 1}
    assert found["a"].timeout is not None
    assert (found["a"].timeout.constant, found["a"].priority) == (3_600_000, 1)
    assert (found["a"].retry, found["a"].schedule_to_start_ms) == ((), None)
    assert found["b"].workflow == WorkflowSpec("invoice", None, "", True)
    assert (found["b"].timeout, found["b"].retry[0].max_retries) == (None, 1)


def test_the_two_ends() -> None:
    found = definition(
        task("a"),
        {"name": "f", "fail": {"type": "refused", "message": "By ${nodes.a.output.who}"}},
        {"name": "g", "fail": {"type": "over_budget"}},
        {"name": "s", "succeed": {"output": {"x": "${input.x}"}}},
        {"name": "t", "succeed": {}},
    ).nodes
    assert (found["f"].kind, found["f"].predecessors) == (NodeKind.FAIL, ("a",))
    assert found["f"].fail is not None
    assert found["f"].fail.message is not None
    assert found["f"].fail.message.render({"nodes": {"a": {"output": {"who": "me"}}}}) == "By me"
    assert found["g"].fail == FailSpec("over_budget")
    assert found["s"].succeed is not None
    assert found["s"].succeed.output is not None
    assert found["s"].succeed.output.render({"input": {"x": 1}}) == {"x": 1}
    assert found["s"].reads_input
    assert found["t"].succeed == SucceedSpec()


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, ()),
        ({"as": "line", "maxParallel": 3}, ("line", 3)),
        ({"maxFailures": 2}, ("item", 100, 2)),
        ({"maxFailures": "10%"}, ("item", 100, None, 10)),
        ({"maxFailures": "0%", "joinCount": 4}, ("item", 100, None, 0, 4)),
        ({"cancelRemaining": True}, ("item", 100, None, None, 0, True)),
    ],
)
def test_for_each(given: dict[str, Any], expected: tuple[Any, ...]) -> None:
    found = one(forEach={**LINES, **given})
    assert found.for_each == ForEach(found.for_each.items, *expected)
    assert found.for_each.items.render({"input": {"lines": [1]}}) == [1]
    assert found.repeat is None


@pytest.mark.parametrize("items", [[], [1, "${input.x}"], {"a": 1, "b": "${input.x}"}, " ${input.lines} ", "${[1]}"])
def test_items_are_a_list_an_object_or_one_expression(items: Any) -> None:
    found = one(forEach={"items": items}).for_each
    assert found is not None
    assert isinstance(found.items.render({"input": {"x": 2, "lines": [3]}}), list | dict)


def test_an_item_is_known_where_an_item_has_a_value_of_its_own() -> None:
    node = one(
        forEach={**LINES, "as": "line"},
        input={"line": "${line}", "index": "${index}", "key": "${key}", "all": "${input.lines}"},
        timeout="${line.patience}",
        retry=[{"when": "${error.type == 'x' && line.often}"}],
        onError=[{"when": "${error.type == 'x'}", "next": []}],
    )
    scope = {"line": {"patience": "2s"}, "index": 0, "key": None, "input": {"lines": []}}
    assert node.input.render(scope) == {"line": {"patience": "2s"}, "index": 0, "key": None, "all": []}
    assert node.timeout.millis(scope) == 2_000
    assert node.retry[0].when.test({"error": {"type": "x"}, "line": {"often": True}})


def test_repeat() -> None:
    node = one(
        repeat={"until": "${output.n > previous.n + iteration}", "delay": "${previous.pause}", "collect": "${output.n}",
                "maxIterations": 5},
        input={"n": "${get(previous, 'n', 0)}", "i": "${iteration}"},
        retry=[{"when": "${iteration < 3}"}],
    )  # fmt: skip
    found = node.repeat
    assert found is not None
    assert (found.while_, found.max_iterations) == (None, 5)
    assert found.until.test({"output": {"n": 3}, "previous": {"n": 1}, "iteration": 1})
    assert found.delay.millis({"previous": {"pause": "1m"}}) == 60_000
    assert found.collect.render({"output": {"n": 3}}) == 3
    assert node.input.render({"previous": None, "iteration": 0}) == {"n": 0, "i": 0}


def test_repeat_leaves_out_what_it_can() -> None:
    node = one(repeat={"while": "${output.more}"})
    assert node.repeat == Repeat(None, node.repeat.while_)
    assert node.repeat.while_.source == "${output.more}"


def test_loops_make_edges() -> None:
    found = definition(
        task("a"),
        task("b", forEach={"items": "${nodes.a.output.lines}"}),
        task("c", repeat={"until": "${output.n > nodes.b.output.size()}"}),
    ).nodes
    assert (found["b"].predecessors, found["c"].predecessors) == (("a",), ("b",))
    assert ({*found["b"].reads}, {*found["c"].reads}) == ({"a"}, {"b"})


def test_undo_takes_the_defaults_and_makes_no_edges() -> None:
    found = definition(
        task("a", undo={"task": {"type": "refund"}, "input": {"id": "${output.id}", "was": "${input.x}"}}),
        task("b", undo={"task": {"type": "u", "queue": "own"}}),
        defaults={"queue": "q", "timeout": "30s", "retry": [{"maxRetries": 2}]},
    ).nodes
    tier = Tier((), None, 2, 1_000, 2.0, 300_000, None, 0.2)
    undo = found["a"].undo
    assert undo is not None
    assert (undo.task, undo.timeout_ms, undo.retry) == (TaskSpec("refund", "q"), 30_000, (tier,))
    assert undo.input is not None
    assert undo.input.render({"output": {"id": 7}, "input": {"x": 1}}) == {"id": 7, "was": 1}
    assert not found["a"].reads_input
    assert found["b"].undo == Undo(TaskSpec("u", "own"), None, 30_000, (tier,))


def test_undo_without_defaults_leaves_its_tries_to_the_engine() -> None:
    assert one(undo={"task": {"type": "u"}}).undo == Undo(TaskSpec("u", "default"))


def test_undo_sees_no_other_node() -> None:
    found = problems(task("a"), task("b", undo={"task": {"type": "u"}, "input": {"x": "${nodes.a.output}"}}))
    expected = "names node 'a'; undo sees only its own node: expected input, output or error of that"
    assert found == [f"spec.nodes[1].undo.input.x: {expected}"]


def test_finally_reads_the_flow_without_edges() -> None:
    found = definition(
        task("a"),
        **{
            "finally": {
                "timeout": "5m",
                "nodes": [
                    task("audit", input={"status": "${run.status}", "x": "${get(nodes, 'a.output.x', 0)}"}),
                    task("tell", dependsOn=["audit"], when="${nodes.audit.output.ok && nodes.a.state != 'Failed'}"),
                ],
            }
        },
    )
    final = found.finally_
    assert final is not None
    assert (final.roots, final.timeout_ms, [*final.nodes]) == (("audit",), 300_000, ["audit", "tell"])
    assert (final.nodes["audit"].predecessors, final.nodes["audit"].successors) == ((), ("tell",))
    assert (final.nodes["tell"].predecessors, {*final.nodes["tell"].reads}) == (("audit",), {"audit", "a"})
    assert found.nodes["a"].successors == ()


def test_subflows_are_definitions_of_their_own() -> None:
    found = definition(
        {"name": "a", "workflow": {"subflow": "packLine"}},
        subflows=[
            {
                "name": "packLine",
                "nodes": [
                    task("pick"),
                    {"name": "again", "workflow": {"subflow": "packLine"}, "when": "${input.more}"},
                ],
                "output": {"box": "${nodes.pick.output.box}"},
                "finally": {"nodes": [task("audit", input={"box": "${nodes.pick.output}"})]},
                "timeout": "1h",
                "failFast": False,
            },
            {"name": "unused", "nodes": [task("pick", dependsOn=["b"]), task("b")]},
        ],
        config={"site": "x"},
        defaults={"timeout": "30s"},
        inputSchema={"type": "object"},
    )
    inner = found.flow("packLine")
    assert (inner.name, inner.namespace, inner.subflow, inner.config) == ("test", "default", "packLine", {"site": "x"})
    assert (inner.timeout_ms, inner.fail_fast, inner.input_schema) == (3_600_000, False, None)
    assert inner.subflows is found.subflows
    assert (inner.roots, {*inner.output_reads}) == (("pick", "again"), {"pick"})
    assert inner.nodes["pick"].timeout is not None
    assert inner.nodes["pick"].timeout.constant == 30_000
    assert inner.finally_ is not None
    assert [*inner.finally_.nodes] == ["audit"]
    assert found.flow("unused").roots == ("b",)
    assert found.flow("") is found
    assert {flow.content_hash for flow in found.subflows.values()} == {found.content_hash}


def test_subflows_may_run_each_other() -> None:
    def subflow(name: str, other: str) -> dict[str, Any]:
        return {"name": name, "nodes": [{"name": "a", "workflow": {"subflow": other}, "when": "${input.more}"}]}

    assert problems(subflows=[subflow("one", "other"), subflow("other", "one")]) == []


def test_the_nodes_of_all_flows_are_counted_together() -> None:
    subflows = [{"name": f"s{n}", "nodes": [task(f"n{m}") for m in range(30)]} for n in range(32)]
    assert problems(*(task(f"a{n}") for n in range(40)), subflows=subflows) == []
    assert problems(*(task(f"a{n}") for n in range(41)), subflows=subflows) == [
        "spec.subflows: make 1,001 nodes with those of spec.nodes; expected at most 1,000 in all"
    ]


def test_there_are_at_most_32_subflows_and_nodes_of_finally() -> None:
    subflows = [{"name": f"s{n}", "nodes": [task("a")]} for n in range(33)]
    final = {"nodes": [task(f"f{n}") for n in range(33)]}
    assert problems(subflows=subflows, **{"finally": final}) == [
        "spec.subflows: has 33 entries; expected at most 32",
        "spec.finally.nodes: has 33 entries; expected 1 to 32",
    ]
    assert (limits.SUBFLOWS, limits.FINALLY_NODES) == (32, 32)


def test_every_mistake_of_every_flow_is_listed_at_once() -> None:
    found = problems(
        task("a", timeout="x"),
        subflows=[{"name": "s", "nodes": [task("p", input={"a": "${1 +}", "b": "${nodes.q.output}"})]}],
        **{"finally": {"nodes": [task("z", dependsOn=["y"])]}},
        output={"x": "${nodes.b.output}"},
    )
    assert [line.split(": ")[0] for line in found] == [
        "spec.nodes[0].timeout",
        "spec.subflows[0].nodes[0].input.a",
        "spec.subflows[0].nodes[0].input.b",
        "spec.finally.nodes[0].dependsOn[0]",
        "spec.output.x",
    ]
