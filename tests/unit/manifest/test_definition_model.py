"""What a good manifest becomes: every field of the model, defaults included, and the hash of its meaning."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from partita.domain.errors import InvalidError
from partita.domain.expressions import DurationTemplate
from partita.domain.manifest import definition_from_spec, load_documents, parse_definition, parse_run, prepare_input
from partita.domain.model import Join, NodeKind, TaskSpec, Tier
from tests.unit.manifest.build import definition, manifest, problems, task

EXAMPLES = Path(__file__).parents[3] / "examples"


def test_a_task_with_everything() -> None:
    node = definition(
        task("b"),
        {
            "name": "a",
            "description": "Charge.",
            "dependsOn": ["b"],
            "join": "merge",
            "cancelRemaining": True,
            "when": "${input.x}",
            "input": {"x": "${input.x}"},
            "timeout": "${input.t}",
            "scheduleToStart": "1m",
            "retry": [
                {
                    "match": ["gateway", "http_503"],
                    "when": "${error.details.status >= 500}",
                    "maxRetries": 5,
                    "initialDelay": "2s",
                    "multiplier": 3,
                    "maxDelay": "1m",
                    "maxElapsed": "1h",
                    "jitter": 0,
                }
            ],
            "onError": [{"match": ["card_declined"], "when": "${error.type != ''}", "next": []}],
            "onFailure": "continue",
            "priority": -2,
            "task": {"type": "charge-card", "queue": "payments"},
        },
    ).nodes["a"]
    assert (node.kind, node.task, node.description) == (NodeKind.TASK, TaskSpec("charge-card", "payments"), "Charge.")
    assert (node.join, node.join_count, node.cancel_remaining, node.priority) == (Join.MERGE, 0, True, -2)
    assert node.when is not None
    assert node.input is not None
    assert node.timeout is not None
    assert (node.when.source, node.input.source, node.timeout.source) == (
        "${input.x}",
        {"x": "${input.x}"},
        "${input.t}",
    )
    assert (node.schedule_to_start_ms, node.continue_on_failure) == (60_000, True)
    tier = node.retry[0]
    assert (tier.match, tier.max_retries, tier.initial_delay_ms, tier.multiplier, tier.max_delay_ms) == (
        ("gateway", "http_503"), 5, 2_000, 3.0, 60_000,
    )  # fmt: skip
    assert (tier.max_elapsed_ms, tier.jitter) == (3_600_000, 0.0)
    assert (node.on_error[0].match, node.on_error[0].next) == (("card_declined",), ())


def test_defaults_reach_tasks_that_set_none_of_their_own() -> None:
    found = definition(
        task("a"),
        task("b", timeout="1s", scheduleToStart="2s", retry=[]),
        {"name": "c", "task": {"type": "t", "queue": "own"}, "retry": [{"maxRetries": 1}]},
        {"name": "d", "wait": {"duration": "1s"}},
        defaults={
            "timeout": "30s",
            "scheduleToStart": "1m",
            "queue": "q",
            "retry": [{"match": ["any"], "maxRetries": 2}],
        },
    ).nodes
    tier = Tier((), None, 2, 1_000, 2.0, 300_000, None, 0.2)
    assert (found["a"].timeout, found["a"].schedule_to_start_ms, found["a"].retry) == (
        DurationTemplate.of(30_000), 60_000, (tier,),
    )  # fmt: skip
    assert found["a"].task == TaskSpec("t", "q")
    assert found["b"].timeout is not None
    assert (found["b"].timeout.constant, found["b"].schedule_to_start_ms, found["b"].retry) == (1_000, 2_000, ())
    assert found["c"].task == TaskSpec("t", "own")
    assert found["c"].retry[0].max_retries == 1
    assert (found["d"].timeout, found["d"].schedule_to_start_ms, found["d"].retry) == (None, None, ())


def test_without_defaults_a_task_leaves_them_to_the_engine() -> None:
    node = definition(task("a")).nodes["a"]
    assert (node.timeout, node.schedule_to_start_ms, node.retry, node.priority) == (None, None, (), None)
    assert node.task == TaskSpec("t", "default")


def test_waits_and_events() -> None:
    found = definition(
        {"name": "a", "wait": {"duration": "${input.pause}"}},
        {"name": "b", "wait": {"until": "2030-01-01T06:00:00+02:00"}},
        {"name": "c", "waitForEvent": {}},
        {
            "name": "d",
            "waitForEvent": {
                "anyOf": [{"name": "yes-${input.id}", "schema": {"type": "object"}}, {"name": "no"}],
                "until": "${events.size() >= 2}",
                "timeout": "1h",
                "onTimeout": {"output": {"ok": False}},
                "ignoreEarlier": True,
            },
        },
    ).nodes
    assert found["a"].wait is not None
    assert found["a"].wait.duration is not None
    assert found["a"].wait.duration.millis({"input": {"pause": "2s"}}) == 2_000
    assert found["b"].wait is not None
    assert found["b"].wait.until is not None
    assert found["b"].wait.until.constant
    c = found["c"].event
    assert c is not None
    assert (c.any_of, c.until, c.on_timeout, c.ignore_earlier, found["c"].timeout) == (False, None, None, False, None)
    assert [alternative.name.render({}) for alternative in c.alternatives] == ["c"]
    d = found["d"].event
    assert d is not None
    assert d.any_of
    assert d.alternatives[0].name.render({"input": {"id": 7}}) == "yes-7"
    assert (d.alternatives[0].schema, d.alternatives[1].schema) == ({"type": "object"}, None)
    assert d.until is not None
    assert d.until.test({"events": [1, 2]})
    assert d.on_timeout is not None
    assert d.on_timeout.output is not None
    assert d.on_timeout.output.render({}) == {"ok": False}
    assert d.ignore_earlier
    assert found["d"].timeout is not None
    assert found["d"].timeout.constant == 3_600_000


def test_the_head() -> None:
    found = definition(
        task("a"),
        description="d",
        timeout="1h",
        failFast=False,
        config={"w": 1},
        inputSchema={"type": "object"},
        output={"x": "${nodes.a.output}"},
    )
    assert (found.name, found.namespace, found.description) == ("test", "default", "d")
    assert (found.timeout_ms, found.fail_fast, found.config) == (3_600_000, False, {"w": 1})
    assert found.input_schema == {"type": "object"}
    assert found.output is not None
    assert found.output_reads == {"a"}


def test_a_stored_spec_gives_the_same_definition() -> None:
    written = manifest(task("a"), task("b", input={"x": "${nodes.a.output}"}))
    found, _ = parse_definition(written)
    assert definition_from_spec(written["spec"], name="test") == found


def test_a_stored_spec_that_is_bad_raises_with_every_problem() -> None:
    with pytest.raises(InvalidError) as caught:
        definition_from_spec({"nodes": [task("a", priority=9), task("a")]}, name="x")
    assert str(caught.value) == (
        "WorkflowDefinition x: spec.nodes[0].priority: node a: is 9; expected a whole number from -2 to 2; "
        "spec.nodes[1].name: node a: 'a' is the name of spec.nodes[0] already; expected another"
    )


def test_the_order_of_from_does_not_depend_on_the_order_of_keys() -> None:
    one = definition(task("a"), task("b"), task("c", input={"x": "${nodes.b.output}", "a": "${nodes.a.output}"}))
    other = definition(task("a"), task("b"), task("c", input={"a": "${nodes.a.output}", "x": "${nodes.b.output}"}))
    assert one.nodes["c"].predecessors == other.nodes["c"].predecessors == ("a", "b")


def test_the_example_of_the_repository_is_good() -> None:
    definition_document, run_document = load_documents((EXAMPLES / "order.yaml").read_text(encoding="utf-8"))
    found, listed = parse_definition(definition_document)
    assert listed == ()
    run, listed = parse_run(run_document)
    assert listed == ()
    assert found is not None
    assert run is not None
    prepare_input(found, run.input)


def test_the_reference_example_has_exactly_the_problems_of_later_versions() -> None:
    (document,) = load_documents((Path(__file__).parent / "reference.yaml").read_text(encoding="utf-8"))
    _, listed = parse_definition(document)
    assert [problem.path for problem in listed] == [
        "spec.concurrency",
        "spec.nodes[12].job",
        "spec.onFinish",
    ]
    for problem in listed:
        field = problem.path.split(".")[-1]
        message = problem.message.partition(": ")[2] if "nodes" in problem.path else problem.message
        assert message.startswith(f"{field} is not supported by this version; ")


def test_a_thousand_nodes_with_many_edges() -> None:
    nodes = [
        task(f"n{n}", dependsOn=[f"n{m}" for m in range(max(0, n - 40), n)], input={"x": f"${{nodes.n{n - 1}.output}}"})
        for n in range(1, 1000)
    ]
    found = definition(task("n0"), *nodes)
    assert len(found.nodes) == 1000
    assert len(found.nodes["n999"].predecessors) == 40


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["name", "task", "type", "nodes", "switch", "next", "when", "wait", "waitForEvent", "dependsOn", "join",
                 "input", "compute", "retry", "onError", "timeout", "schema", "anyOf", "onTimeout", "match", "x",
                 "subflows", "finally", "forEach", "items", "as", "repeat", "until", "while", "undo", "workflow",
                 "subflow", "fail", "succeed", "joinCount", "maxFailures", "collect", "cancelNodes"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=30,
)  # fmt: skip


@given(anything)
def test_any_document_is_refused_with_problems_and_never_with_an_exception(spec: Any) -> None:
    found, listed = parse_definition({"metadata": {"name": "x"}, "spec": spec})
    assert (found is None) == bool(listed)
    run, listed = parse_run({"metadata": {"name": "x"}, "spec": spec})
    assert (run is None) == bool(listed)


@given(st.lists(anything, min_size=1, max_size=3))
def test_any_node_is_refused_with_problems_and_never_with_an_exception(nodes: list[Any]) -> None:
    problems(*nodes)
