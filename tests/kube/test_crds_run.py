"""What may change in a WorkflowRun and what may not, on a real API server: fixed fields, controls, signals."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from e2e.cluster.errors import ClusterError
from tests.kube.crd_api import Api
from tests.kube.crd_objects import run, signal

RUN_ID = "01890a5d-ac96-774b-bcce-b302099a8057"
OTHER_RUN_ID = "01890a5d-ac96-774b-bcce-b302099a8058"

FIXED: dict[str, tuple[Any, Any]] = {
    "input": ({"sku": "a", "lines": [1]}, {"lines": [1, 2]}),
    "runId": (RUN_ID, OTHER_RUN_ID),
    "idempotencyKey": ("order-1", "order-2"),
    "startAt": ("2030-01-01T06:00:00Z", "2030-01-01T07:00:00Z"),
    "priority": (1, 2),
    "tags": (["eu"], ["eu", "us"]),
    "attributes": ({"team": "billing"}, {"team": "sales"}),
    "timeout": ("1h", "2h"),
    "rerunOf": ({"runId": RUN_ID}, {"runId": RUN_ID, "from": "charge"}),
}
"""Optional field → a value, and a merge patch that changes it."""


@pytest.mark.parametrize("field", FIXED)
def test_a_fixed_field_never_changes(api: Api, field: str) -> None:
    value, other = FIXED[field]
    says = (f"spec.{field}: Forbidden", "fixed once the run exists; expected a new WorkflowRun")
    api.create(run("with", **{field: value}))
    api.create(run("without"))
    api.refuses_merge("wfr", "with", {"spec": {field: other}}, *says)
    api.refuses_merge("wfr", "with", {"spec": {field: None}}, *says)
    api.refuses_merge("wfr", "without", {"spec": {field: value}}, *says)
    api.merge("wfr", "with", {"spec": {field: value, "suspend": True}})


@pytest.mark.parametrize("patch", [{"name": "other"}, {"version": 2}, {"version": None}])
def test_the_definition_never_changes(api: Api, patch: dict[str, Any]) -> None:
    reference = {"name": "order", "version": None if patch == {"version": 2} else 1}
    api.create(run("r", definitionRef={key: value for key, value in reference.items() if value is not None}))
    api.refuses_merge("wfr", "r", {"spec": {"definitionRef": patch}}, "spec.definitionRef: Forbidden")


@pytest.mark.parametrize("patch", [{"sku": "b"}, {"sku": None}, {"more": 1}, {"lines": [{"n": 2}]}])
def test_no_part_of_the_input_changes(api: Api, patch: dict[str, Any]) -> None:
    api.create(run("r", input={"sku": "a", "lines": [{"n": 1}]}))
    api.refuses_merge("wfr", "r", {"spec": {"input": patch}}, "spec.input: Forbidden")


def test_the_time_to_live_and_the_controls_change(api: Api) -> None:
    api.create(run("r"))
    api.merge("wfr", "r", {"spec": {"suspend": True, "hold": ["pack"], "ttlSecondsAfterFinished": 10}})
    api.merge("wfr", "r", {"spec": {"suspend": False, "hold": None, "ttlSecondsAfterFinished": 20}})
    api.merge("wfr", "r", {"spec": {"suspend": None, "ttlSecondsAfterFinished": None}})


def test_cancel_is_never_taken_back(api: Api) -> None:
    api.create(run("r"))
    api.merge("wfr", "r", {"spec": {"cancel": {}}})
    api.refuses_merge("wfr", "r", {"spec": {"cancel": None}}, "spec.cancel: Forbidden", "cancel cannot be taken back")
    api.merge("wfr", "r", {"spec": {"cancel": {"mode": "Graceful", "reason": "a mistake"}}})
    api.merge("wfr", "r", {"spec": {"cancel": {"mode": "Now"}}})
    for back in ({"mode": "Graceful"}, {"mode": None}):
        api.refuses_merge("wfr", "r", {"spec": {"cancel": back}}, "spec.cancel: Forbidden", "mode Now cannot go back")
    api.refuses_merge("wfr", "r", {"spec": {"cancel": {"mode": "Later"}}}, '"Graceful", "Now"')


def test_cancel_goes_in_the_update_that_raises_retry(api: Api) -> None:
    api.create(run("r"))
    api.merge("wfr", "r", {"spec": {"cancel": {"mode": "Now"}, "cancelNodes": ["pack"]}})
    api.refuses_merge("wfr", "r", {"spec": {"cancel": None, "retry": 0}}, "spec.cancel: Forbidden")
    api.merge("wfr", "r", {"spec": {"cancel": None, "cancelNodes": None, "retry": 1}})
    api.merge("wfr", "r", {"spec": {"cancel": {}}})
    api.refuses_merge("wfr", "r", {"spec": {"cancel": None, "retry": 1}}, "spec.cancel: Forbidden")


def test_cancelled_nodes_only_grow(api: Api) -> None:
    api.create(run("r", cancelNodes=["pack"]))
    says = ("spec.cancelNodes: Forbidden", "cancelNodes only grows")
    api.merge("wfr", "r", {"spec": {"cancelNodes": ["ship", "pack"]}})
    api.refuses_merge("wfr", "r", {"spec": {"cancelNodes": ["pack"]}}, *says)
    api.refuses_merge("wfr", "r", {"spec": {"cancelNodes": None}}, *says)
    api.merge("wfr", "r", {"spec": {"cancelNodes": ["pack"], "retry": 1}})


def test_retry_only_grows(api: Api) -> None:
    api.create(run("r"))
    api.merge("wfr", "r", {"spec": {"retry": 2}})
    api.merge("wfr", "r", {"spec": {"retry": 3}})
    for smaller in (2, 0, None):
        api.refuses_merge("wfr", "r", {"spec": {"retry": smaller}}, "spec.retry", "retry only grows")


APPEND = {"op": "add", "path": "/spec/signals/-", "value": signal("a1", by="me")}


def test_a_signal_is_appended_by_json_patch_to_a_run_without_any(api: Api) -> None:
    api.create(run("r"))
    api.json_patch("wfr", "r", APPEND)
    api.json_patch("wfr", "r", {**APPEND, "value": {"id": "a2", "name": "approval"}})
    assert api.get("wfr", "r")["spec"]["signals"] == [signal("a1", by="me"), {"id": "a2", "name": "approval"}]


def test_an_id_is_used_once(api: Api) -> None:
    api.create(run("r", signals=[signal("a1")]))
    api.refuses_json_patch("wfr", "r", APPEND, "spec.signals[1]: Duplicate value")


@pytest.mark.parametrize(("path", "value"), [("name", "other"), ("payload/by", "you"), ("payload/more", 1)])
def test_a_signal_never_changes(api: Api, path: str, value: Any) -> None:
    api.create(run("r", signals=[signal("a1", by="me")]))
    operation = {"op": "add", "path": f"/spec/signals/0/{path}", "value": value}
    api.refuses_json_patch("wfr", "r", operation, "spec.signals[0]: Forbidden", "a signal cannot change")


def test_a_signal_goes_once_it_is_acknowledged(api: Api) -> None:
    api.create(run("r", signals=[signal("a1"), signal("a2")]))
    removal = {"op": "remove", "path": "/spec/signals/0"}
    says = ("spec.signals: Forbidden", "a signal cannot be taken back")
    api.refuses_json_patch("wfr", "r", removal, *says)
    api.refuses_merge("wfr", "r", {"spec": {"signals": None}}, *says)
    api.set_status("wfr", "r", signals=[{"id": "a1", "state": "Consumed"}])
    api.json_patch("wfr", "r", removal)
    api.refuses_json_patch("wfr", "r", removal, *says)
    api.set_status("wfr", "r", signals=[])
    assert [each["id"] for each in api.get("wfr", "r")["spec"]["signals"]] == ["a2"]


def test_the_65th_signal_waits(api: Api) -> None:
    api.create(run("r", signals=[signal(f"s{i}") for i in range(64)]))
    api.refuses_json_patch("wfr", "r", APPEND, "spec.signals: Too many")


def test_signals_that_race_are_all_stored(api: Api) -> None:
    api.create(run("r"))
    values = [signal(f"s{i}", number=i) for i in range(12)]
    with ThreadPoolExecutor(4) as clients:
        sent = [clients.submit(api.json_patch, "wfr", "r", {**APPEND, "value": value}) for value in values]
        for each in sent:
            each.result()
    stored = api.get("wfr", "r")["spec"]["signals"]
    assert sorted(stored, key=lambda each: each["payload"]["number"]) == values


def test_applying_a_manifest_again_keeps_the_signals(api: Api) -> None:
    manifest = json.dumps(run("r", input={"sku": "a"}))
    for flags in ((), ("--server-side",), ("--server-side", "--force-conflicts")):
        name = f"r{len(flags)}"
        manifest = json.dumps(run(name, input={"sku": "a"}))
        api.kubectl("apply", *flags, "-f", "-", stdin=manifest)
        api.json_patch("wfr", name, APPEND)
        api.kubectl("apply", *flags, "-f", "-", stdin=manifest)
        assert api.get("wfr", name)["spec"]["signals"] == [APPEND["value"]]


def test_a_manifest_with_an_empty_list_of_signals_is_refused(api: Api) -> None:
    manifest = json.dumps(run("r", signals=[]))
    api.kubectl("apply", "-f", "-", stdin=manifest)
    api.json_patch("wfr", "r", APPEND)
    with pytest.raises(ClusterError, match="leave signals out of manifests"):
        api.kubectl("apply", "-f", "-", stdin=manifest)


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        ({"definitionRef": {}}, "spec.definitionRef.name: Required"),
        ({"definitionRef": {"name": "Order"}}, "spec.definitionRef.name"),
        ({"runId": "5e2a7c1e-4f0b-4c1d-9a51-1d2e3f4a5b6c"}, "spec.runId"),
        ({"input": "text"}, "spec.input"),
        ({"priority": 3}, "spec.priority"),
        ({"tags": ["eu", "eu"]}, "spec.tags[1]: Duplicate value"),
        ({"tags": [str(i) for i in range(33)]}, "spec.tags: Too many"),
        ({"attributes": {"a" * 64: "x"}}, "expected 1 to 63 characters"),
        ({"attributes": {"": "x"}}, "expected 1 to 63 characters"),
        ({"idempotencyKey": "a\x00b"}, "spec.idempotencyKey"),
        ({"idempotencyKey": "k" * 256}, "Too long"),
        ({"startAt": "tomorrow"}, "spec.startAt"),
        ({"signals": [{"id": "a", "name": "x", "payload": 1}]}, "spec.signals[0].payload"),
        ({"signals": [{"name": "x"}]}, "spec.signals[0].id: Required"),
        ({"signal": []}, "unknown field"),
        ({"ttlSecondsAfterFinished": -1}, "spec.ttlSecondsAfterFinished"),
    ],
)
def test_a_wrong_shape_is_refused_with_its_path(api: Api, spec: dict[str, Any], says: str) -> None:
    api.refuses(run("r", **spec), says)
