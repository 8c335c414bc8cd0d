"""What a WorkflowDefinition's CRD refuses and accepts, on a real API server: each rule with both of its answers."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.kube.crd_api import Api
from tests.kube.crd_objects import Object, definition, task

LOOP = {"until": "${iteration > 3}"}


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule: a node that breaks it, what the API server says, and a node that keeps it."""

    title: str
    bad: Object
    says: tuple[str, ...]
    good: Object


RULES = [
    Rule(
        "reserved name",
        task("in"),
        ("spec.nodes[0].name", "the name is a word of the expression language"),
        task("inside"),
    ),
    Rule("no kind", {"name": "a"}, ("spec.nodes[0]", "exactly one kind; expected one of task, job"), task("a")),
    Rule(
        "two kinds",
        task("a", compute={"x": 1}),
        ("spec.nodes[0]", "exactly one kind"),
        {"name": "a", "compute": {"x": 1}},
    ),
    Rule("itself", task("a", dependsOn=["a"]), ("spec.nodes[0].dependsOn", "depends on itself"), task("a")),
    Rule(
        "join and joinCount",
        task("a", join="any", joinCount=1),
        ("spec.nodes[0].joinCount", "exclude each other"),
        task("a", joinCount=1),
    ),
    Rule(
        "forEach and repeat",
        task("a", forEach={"items": [1]}, repeat=LOOP),
        ("spec.nodes[0].repeat", "exclude each other"),
        task("a", forEach={"items": "${input.lines}"}),
    ),
    Rule(
        "until and while",
        task("a", repeat={**LOOP, "while": "${true}"}),
        ("spec.nodes[0].repeat", "exactly one of until and while"),
        task("a", repeat={"while": "${true}"}),
    ),
    Rule(
        "neither until nor while",
        task("a", repeat={"delay": "1s"}),
        ("exactly one of until and while",),
        task("a", repeat={**LOOP, "delay": "1s"}),
    ),
    Rule(
        "duration and until",
        {"name": "a", "wait": {"duration": "1s", "until": "2030-01-01T00:00:00Z"}},
        ("spec.nodes[0].wait", "exactly one of duration and until"),
        {"name": "a", "wait": {"duration": "1h30m"}},
    ),
    Rule(
        "name and subflow",
        {"name": "a", "workflow": {"name": "b", "subflow": "c"}},
        ("spec.nodes[0].workflow", "exactly one of name and subflow"),
        {"name": "a", "workflow": {"subflow": "c"}},
    ),
    Rule(
        "version of a subflow",
        {"name": "a", "workflow": {"subflow": "c", "version": 2}},
        ("spec.nodes[0].workflow", "expected version only beside name"),
        {"name": "a", "workflow": {"name": "b", "version": 2}},
    ),
    Rule(
        "limit of a key",
        task("a", concurrency={"key": "printer"}),
        ("spec.nodes[0].concurrency", "limit is missing"),
        task("a", concurrency={"key": "shared/printer"}),
    ),
    Rule(
        "two timeouts",
        {"name": "a", "waitForEvent": {}, "timeout": "1h"},
        ("spec.nodes[0].timeout", "expected it in waitForEvent.timeout"),
        {"name": "a", "waitForEvent": {"timeout": "1h"}},
    ),
    Rule(
        "anyOf and name",
        {"name": "a", "waitForEvent": {"name": "x", "anyOf": [{"name": "y"}]}},
        ("spec.nodes[0].waitForEvent", "anyOf excludes name and schema"),
        {"name": "a", "waitForEvent": {"anyOf": [{"name": "x"}, {"name": "y", "schema": {"type": "object"}}]}},
    ),
    Rule(
        "onTimeout output and next",
        {"name": "a", "waitForEvent": {"timeout": "1h", "onTimeout": {"output": {}, "next": []}}},
        ("spec.nodes[0].waitForEvent.onTimeout", "exactly one of output and next"),
        {"name": "a", "waitForEvent": {"timeout": "1h", "onTimeout": {"next": []}}},
    ),
]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.title)
def test_a_rule_refuses_and_accepts(api: Api, rule: Rule) -> None:
    api.refuses(definition("d", rule.bad), *rule.says)
    api.accepts(definition("d", rule.good))


FINALLY_RULES = [rule for rule in RULES if "waitForEvent" not in rule.bad]


@pytest.mark.parametrize("rule", FINALLY_RULES, ids=lambda rule: rule.title)
def test_nodes_of_finally_have_the_same_rules(api: Api, rule: Rule) -> None:
    bad, good = ({"nodes": [task("first")], "finally": {"nodes": [node]}} for node in (rule.bad, rule.good))
    said = rule.says[-1].replace("a node has", "a node of finally has")
    api.refuses({**definition("d"), "spec": bad}, "spec.finally.nodes[0]", said)
    api.accepts({**definition("d"), "spec": good})


def test_dependencies_exist(api: Api) -> None:
    api.refuses(
        definition("d", task("a"), task("b", dependsOn=["a", "c"])),
        "spec.nodes: Invalid value",
        "node b: dependsOn names a node that does not exist; expected names of spec.nodes",
    )
    api.accepts(definition("d", task("a"), task("b", dependsOn=["a"])))


def test_dependencies_of_finally_are_its_own_nodes(api: Api) -> None:
    closing = [task("c"), task("d", dependsOn=["a"])]
    api.refuses(definition("d", task("a"), **{"finally": {"nodes": closing}}), "expected names of finally.nodes")
    closing = [task("c"), task("d", dependsOn=["c"])]
    api.accepts(definition("d", task("a"), **{"finally": {"nodes": closing}}))


def test_names_of_finally_differ(api: Api) -> None:
    api.refuses(
        definition("d", task("a"), task("b"), **{"finally": {"nodes": [task("b")]}}),
        "spec.finally.nodes",
        "node b of finally has the name of a node of spec.nodes; expected different names",
    )
    api.accepts(definition("d", task("a"), **{"finally": {"nodes": [task("b")]}}))


def test_names_of_nodes_are_unique(api: Api) -> None:
    api.refuses(definition("d", task("a"), task("a")), "spec.nodes[1]: Duplicate value")


def test_a_definition_limits_its_runs_by_number(api: Api) -> None:
    api.refuses(definition("d", concurrency={"key": "${input.customer}"}), "spec.concurrency", "limit is missing")
    api.refuses(definition("d", concurrency={}), "spec.concurrency")
    api.accepts(definition("d", concurrency={"limit": 2}))
    api.accepts(definition("d", concurrency={"key": "shared/${input.region}"}))


WRONG_SHAPES: dict[str, tuple[Object, str]] = {
    "hyphen": (task("charge-card"), "spec.nodes[0].name"),
    "long name": (task("a" * 64), "Too long"),
    "duration": ({"name": "a", "wait": {"duration": "10 minutes"}}, "spec.nodes[0].wait.duration"),
    "expression in a plain duration": (task("a", scheduleToStart="${input.x}"), "spec.nodes[0].scheduleToStart"),
    "empty switch": ({"name": "a", "switch": []}, "spec.nodes[0].switch"),
    "case without next": ({"name": "a", "switch": [{"when": "${true}"}]}, "spec.nodes[0].switch[0].next: Required"),
    "task without type": ({"name": "a", "task": {"queue": "q"}}, "spec.nodes[0].task.type: Required"),
    "compute of a string": ({"name": "a", "compute": "${input.x}"}, "spec.nodes[0].compute"),
    "join": (task("a", join="first"), 'supported values: "all", "merge", "any"'),
    "priority": (task("a", priority=3), "spec.nodes[0].priority"),
    "jitter": (task("a", retry=[{"jitter": 1.5}]), "spec.nodes[0].retry[0].jitter"),
    "nine tiers": (task("a", retry=[{}] * 9), "spec.nodes[0].retry: Too many"),
    "type of an error": (
        task("a", onError=[{"match": ["CardDeclined"], "next": []}]),
        "spec.nodes[0].onError[0].match",
    ),
    "type of fail": ({"name": "a", "fail": {"type": "TooLate"}}, "spec.nodes[0].fail.type"),
    "undo without task": (task("a", undo={"input": {}}), "spec.nodes[0].undo.task: Required"),
    "loop without items": (task("a", forEach={}), "spec.nodes[0].forEach.items: Required"),
    "iterations": (task("a", repeat={**LOOP, "maxIterations": 0}), "spec.nodes[0].repeat.maxIterations"),
    "percentage": (task("a", forEach={"items": [], "maxFailures": "101%"}), "spec.nodes[0].forEach.maxFailures"),
}


@pytest.mark.parametrize(("node", "says"), WRONG_SHAPES.values(), ids=WRONG_SHAPES)
def test_a_wrong_shape_is_refused_with_its_path(api: Api, node: Object, says: str) -> None:
    api.refuses(definition("d", node), says)


@pytest.mark.parametrize("value", [0, 3, "0%", "10%", "100%"])
def test_failures_are_a_number_or_a_percentage(api: Api, value: Any) -> None:
    api.accepts(definition("d", task("a", forEach={"items": {"x": 1}, "maxFailures": value})))


@pytest.mark.parametrize("duration", ["500ms", "1h30m", "0s", "${input.pause}", "${\n  input.pause\n}"])
def test_durations(api: Api, duration: str) -> None:
    api.accepts(definition("d", {"name": "a", "wait": {"duration": duration}}))


def test_no_nodes(api: Api) -> None:
    api.refuses({**definition("d"), "spec": {"nodes": []}}, "spec.nodes", "should have at least 1 items")
    api.refuses({**definition("d"), "spec": {}}, "spec.nodes: Required value")


def test_unknown_fields_are_refused_before_any_rule(api: Api) -> None:
    api.refuses(definition("d", {"name": "a", "tsk": {}}), "strict decoding error", "spec.nodes[0].tsk")
    closing = {"nodes": [{"name": "b", "waitForEvent": {}}]}
    api.refuses(definition("d", **{"finally": closing}), "spec.finally.nodes[0].waitForEvent")
    subflow = {"name": "s", "nodes": [{"name": "a", "tsk": {}}]}
    api.refuses(definition("d", subflows=[subflow]), "spec.subflows[0].nodes[0].tsk")


def test_free_fields_keep_what_is_in_them(api: Api) -> None:
    free = {"deep": [{"x": None, "y": 9007199254740993}], "text": "${input}"}
    node = task("a", input=free)
    api.create(definition("d", node, config=free, inputSchema={"type": "object", "x-own": [1]}))
    spec = api.get("wfd", "d")["spec"]
    assert spec["nodes"] == [node]
    assert spec["config"] == free
    assert spec["inputSchema"]["x-own"] == [1]


def test_no_default_is_written_into_a_definition(api: Api) -> None:
    sent = definition("d", {"name": "a", "waitForEvent": {}}, task("b", forEach={"items": []}, retry=[{}]))
    api.create(sent)
    assert api.get("wfd", "d")["spec"] == sent["spec"]


def test_every_field_of_a_node_has_its_place(api: Api) -> None:
    places = sorted((Path(__file__).parent / "manifests").glob("*.yaml"))
    assert places
    for place in places:
        for document in yaml.safe_load_all(place.read_text("utf-8")):
            api.create(document)
            kind, name = document["kind"], document["metadata"]["name"]
            assert api.get(kind, name)["spec"] == document["spec"], place.name


def test_the_examples_are_accepted(api: Api) -> None:
    examples = Path(__file__).parents[2] / "examples"
    files = [path for path in sorted(examples.rglob("*.yaml")) if _is_manifest(path)]
    assert files
    for path in files:
        api.kubectl("create", "--dry-run=server", "-f", str(path))


def _is_manifest(path: Path) -> bool:
    return re.search("^apiVersion: partita.dev/", path.read_text("utf-8"), re.MULTILINE) is not None
