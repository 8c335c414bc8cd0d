"""The largest objects that the CRDs allow: created, changed, and refused for the right reason.

A rule's estimated cost is checked when a CRD is created, its real cost only when an object comes: a rule too dear
would refuse valid objects, and only large ones. So every rule runs here over full lists, at create and at update.
"""

from __future__ import annotations

import json

import pytest

from tests.kube.crd_api import Api
from tests.kube.crd_objects import MAX_SIGNALS, engine, largest_definition, largest_run, run, signal, task


@pytest.mark.parametrize("node_name_length", [5, 17])
def test_the_largest_definition(api: Api, node_name_length: int) -> None:
    largest = largest_definition("big", node_name_length=node_name_length)
    api.create(largest)
    api.merge("wfd", "big", {"spec": {"description": "Changed."}})
    assert len(api.get("wfd", "big")["spec"]["nodes"]) == 1000


def test_a_mistake_in_the_largest_definition_is_named(api: Api) -> None:
    wrong = largest_definition("big")
    wrong["spec"]["nodes"][-1]["dependsOn"][-1] = "missing"
    api.refuses(wrong, "spec.nodes: Invalid value", "node n0999: dependsOn names a node that does not exist")
    wrong = largest_definition("big")
    wrong["spec"]["finally"]["nodes"][-1]["name"] = "n0999"
    api.refuses(wrong, "node n0999 of finally has the name of a node of spec.nodes")


def test_every_node_with_a_long_shared_key(api: Api) -> None:
    largest = largest_definition("big")
    for node in largest["spec"]["nodes"]:
        node.update(concurrency={"key": "shared/" + "k" * 400}, repeat={"until": "${true}"}, dependsOn=[])
    api.accepts(largest)


def test_every_node_a_loop_that_can_be_undone(api: Api) -> None:
    largest = largest_definition("big")
    loop = {"items": "${input." + "i" * 100 + "}", "as": "l" * 63, "maxFailures": "10%", "joinCount": 3}
    undo = {"task": {"type": "u" * 128}, "input": {"id": "${output.id}"}}
    for node in (*largest["spec"]["nodes"], *largest["spec"]["finally"]["nodes"]):
        node.update(forEach=loop, undo=undo, dependsOn=[], onError=[{"match": ["e" * 63] * 16, "next": ["n0001"]}])
    api.accepts(largest)


def test_one_node_too_many(api: Api) -> None:
    largest = largest_definition("big")
    largest["spec"]["nodes"].append(task("extra"))
    api.refuses(largest, "spec.nodes: Too many: 1001: must have at most 1000 items")


def test_the_largest_run(api: Api) -> None:
    largest = largest_run("big")
    api.create(largest)
    api.merge("wfr", "big", {"spec": {"suspend": True, "retry": 2}})
    stored = api.get("wfr", "big")["spec"]
    assert stored == {**largest["spec"], "suspend": True, "retry": 2}


def test_the_largest_run_keeps_its_rules(api: Api) -> None:
    largest = largest_run("big", input_bytes=10_000)
    api.create(largest)
    last = {**largest["spec"]["signals"][-1], "name": "other"}
    replace = {"op": "replace", "path": f"/spec/signals/{MAX_SIGNALS - 1}", "value": last}
    api.refuses_json_patch("wfr", "big", replace, f"spec.signals[{MAX_SIGNALS - 1}]: Forbidden")
    api.refuses_json_patch("wfr", "big", {"op": "remove", "path": "/spec/signals/0"}, "cannot be taken back")
    api.refuses_json_patch("wfr", "big", {"op": "remove", "path": "/spec/cancelNodes/255"}, "cancelNodes only grows")
    api.refuses_merge("wfr", "big", {"spec": {"attributes": {"a" * 60 + "031": "w"}}}, "spec.attributes: Forbidden")
    acknowledged = [{"id": each["id"], "state": "Consumed"} for each in largest["spec"]["signals"]]
    api.set_status("wfr", "big", signals=acknowledged)
    api.merge("wfr", "big", {"spec": {"signals": []}})
    assert api.get("wfr", "big")["spec"]["signals"] == []


def test_64_signals_of_16_kib(api: Api) -> None:
    api.create(run("r", signals=[signal(f"s{i}", text="x" * 16_000) for i in range(MAX_SIGNALS)]))
    api.merge("wfr", "r", {"spec": {"suspend": True}})


def test_the_largest_engine(api: Api) -> None:
    limits = {f"shared/{'k' * 990}{i:04d}": i + 1 for i in range(1000)}
    api.create(engine(concurrencyLimits=limits))
    api.merge("wfe", "partita", {"spec": {"paused": True}})
    assert json.dumps(api.get("wfe", "partita")["spec"]["concurrencyLimits"], sort_keys=True) == json.dumps(limits)
