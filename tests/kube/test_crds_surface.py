"""What people meet at the API: explain, columns, short names, selectors, status and conditions, kubectl apply."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from e2e.cluster.errors import ClusterError
from tests.kube.conftest import CRDS
from tests.kube.crd_api import Api
from tests.kube.crd_objects import Object, definition, engine, run, task

NOW = "2030-01-01T06:00:00Z"


def condition(kind: str, status: str = "True", **more: Any) -> Object:
    """A condition."""
    return {"type": kind, "status": status, "reason": "Because", "message": "", "lastTransitionTime": NOW, **more}


EXPLAINED = {
    "wfd": "graph of nodes that runs execute",
    "wfd.spec.nodes": "edges decide what comes after what",
    "wfd.spec.nodes.switch.when": "a boolean, for example ${input.total > 100}",
    "wfd.spec.nodes.waitForEvent.onTimeout.next": "instead of those that depend on this one",
    "wfd.spec.subflows.nodes.retry.maxDelay": "Default: 5m.",
    "wfd.spec.finally.nodes.task": "May run more than once after a crash",
    "wfd.status.problems.path": "for example spec.nodes[2].switch[0].when",
    "wfr.spec.signals": "Append one by a JSON patch",
    "wfr.spec.signals.payload": "output of the node that waits",
    "wfr.spec.cancel.mode": "Now skips those",
    "wfr.status.phase": "Succeeded, Failed or Cancelled",
    "wfe.spec.paused": "attempts in flight finish, nothing new starts",
}


@pytest.mark.parametrize("path", EXPLAINED)
def test_explain_reads_well(api: Api, path: str) -> None:
    said = " ".join(api.kubectl("explain", path).split())
    assert EXPLAINED[path] in said
    assert "<no description>" not in said


COLUMNS = {
    "wfr": (["NAME", "DEFINITION", "PHASE", "PROGRESS", "WAITING", "AGE"], ["RUN ID", "VERSION", "MESSAGE"]),
    "wfd": (["NAME", "VERSION", "NODES", "ACCEPTED", "READY", "AGE"], ["SCHEDULE", "MESSAGE"]),
    "wfe": (
        ["NAME", "PHASE", "LEADER", "SYNCED", "RUNS", "QUEUED", "AGE"],
        ["EXECUTING", "EPOCH", "MESSAGE"],
    ),
}


@pytest.mark.parametrize("resource", COLUMNS)
def test_columns(api: Api, resource: str) -> None:
    for each in (definition("order"), run("r"), engine()):
        api.create(each)
    narrow, wide = COLUMNS[resource]
    assert _columns(api.kubectl("get", resource)) == narrow
    assert _columns(api.kubectl("get", resource, "-o", "wide")) == narrow + wide


def _columns(table: str) -> list[str]:
    return [column.strip() for column in table.splitlines()[0].split("  ") if column.strip()]


def test_columns_show_status_and_conditions(api: Api) -> None:
    api.create(definition("order"))
    api.set_status("wfd", "order", version=3, nodes=7, conditions=[condition("Accepted"), condition("Ready", "False")])
    assert api.kubectl("get", "wfd", "order", "--no-headers").split()[:5] == ["order", "3", "7", "True", "False"]
    api.create(run("r"))
    api.set_status("wfr", "r", phase="Running", progress="2/7", waitingFor="approval")
    assert api.kubectl("get", "wfr", "r", "--no-headers").split()[:5] == ["r", "order", "Running", "2/7", "approval"]


def test_the_category_lists_all_kinds(api: Api) -> None:
    for each in (definition("order"), run("r"), engine()):
        api.create(each)
    assert api.kubectl("get", "partita", "-o", "name").split() == [
        "workflowdefinition.partita.dev/order",
        "workflowengine.partita.dev/partita",
        "workflowrun.partita.dev/r",
    ]


def test_runs_are_selected_by_definition_and_phase(api: Api) -> None:
    api.create(run("a"))
    api.create(run("b", definitionRef={"name": "other"}))
    api.set_status("wfr", "b", phase="Succeeded")
    by = {"status.phase=Succeeded": "b", "spec.definitionRef.name=order": "a"}
    for selector, name in by.items():
        found = api.kubectl("get", "wfr", "--field-selector", selector, "-o", "name").split()
        assert found == [f"workflowrun.partita.dev/{name}"]


def test_status_is_written_by_its_subresource_only(api: Api) -> None:
    api.create({**run("r"), "status": {"phase": "Succeeded"}})
    api.merge("wfr", "r", {"status": {"phase": "Failed"}})
    assert "status" not in api.get("wfr", "r")
    api.merge("wfr", "r", {"status": {"phase": "Running"}, "spec": {"suspend": True}}, "--subresource=status")
    found = api.get("wfr", "r")
    assert (found["status"]["phase"], found["spec"].get("suspend")) == ("Running", None)


def test_the_whole_status_of_a_run(api: Api) -> None:
    status: Object = {
        "observedGeneration": 2,
        "revision": 12,
        "phase": "Suspended",
        "runId": "01890a5d-ac96-774b-bcce-b302099a8057",
        "version": 3,
        "progress": "3/7",
        "waitingFor": "event approval",
        "message": "x" * 4096,
        "startedAt": NOW,
        "finishedAt": NOW,
        "lastSyncTime": NOW,
        "retry": 1,
        "signals": [{"id": f"s{i}", "state": "Refused", "message": "no"} for i in range(64)],
        "nodes": [{"name": f"n[{i}]", "state": "Waiting", "attempt": 2, "message": "timer"} for i in range(20)],
        "output": {"shipment": None, "boxes": 3},
        "conditions": [condition(kind, observedGeneration=2) for kind in ("Accepted", "Completed", "Synced")],
    }
    api.create(run("r"))
    api.set_status("wfr", "r", **status)
    del status["output"]["shipment"]  # a merge patch drops nulls
    assert api.get("wfr", "r")["status"] == status


def test_the_whole_status_of_a_definition_and_an_engine(api: Api) -> None:
    problems = [{"path": "spec.nodes[0]", "message": "m"}] * 50
    conditions = [condition("Accepted", "False")]
    statuses: list[tuple[Object, Object]] = [
        (definition("d"), {"version": 1, "hash": "0" * 64, "nodes": 1, "problems": problems, "conditions": conditions}),
        (
            engine(),
            {
                "phase": "Running",
                "leader": "partita-0",
                "epoch": 4,
                "openRuns": 5,
                "readyTasks": 1,
                "runningTasks": 2,
                "queues": [{"name": "default", "ready": 1, "running": 2, "workers": 3}],
                "conditions": [condition("Ready"), condition("Synced"), condition("SchemaCurrent")],
            },
        ),
    ]
    for obj, status in statuses:
        api.create(obj)
        api.set_status(obj["kind"], obj["metadata"]["name"], observedGeneration=1, **status)
        assert api.get(obj["kind"], obj["metadata"]["name"])["status"] == {"observedGeneration": 1, **status}


@pytest.mark.parametrize(
    ("status", "says"),
    [
        ({"phase": "Done"}, 'supported values: "Pending", "Running"'),
        ({"conditions": [condition("Accepted"), condition("Accepted")]}, "status.conditions[1]: Duplicate value"),
        ({"conditions": [{"type": "Accepted"}]}, "status.conditions[0].status: Required"),
        ({"nodes": [{"name": "a", "state": "Pending"}] * 21}, "status.nodes: Too many"),
    ],
)
def test_a_wrong_status_is_refused(api: Api, status: Object, says: str) -> None:
    api.create(run("r"))
    with pytest.raises(ClusterError) as refusal:
        api.set_status("wfr", "r", **status)
    assert says in str(refusal.value)


def test_kubectl_waits_for_a_condition(api: Api) -> None:
    api.create(run("r"))
    api.set_status("wfr", "r", conditions=[condition("Completed", observedGeneration=1)])
    api.kubectl("wait", "--for=condition=Completed", "--timeout=10s", "wfr/r")


def test_an_installation_has_one_engine(api: Api) -> None:
    api.refuses(engine("other"), "metadata.name", "one WorkflowEngine; expected the name partita")
    limits = {"shared/license": 3}
    api.create(engine(paused=True, ttlSecondsAfterFinished=60, concurrencyLimits=limits, jobDefaults={"spec": {}}))
    api.merge("wfe", "partita", {"spec": {"paused": False}})


def test_an_engine_limits_shared_keys_only(api: Api) -> None:
    api.refuses(engine(concurrencyLimits={"license": 3}), "spec.concurrencyLimits", "begin with shared/")
    api.refuses(engine(concurrencyLimits={"shared/license": 0}), "spec.concurrencyLimits")
    api.accepts(engine(concurrencyLimits={"shared/license": 3}))


@pytest.mark.parametrize("file", sorted(CRDS.glob("*.yaml")), ids=lambda file: file.stem)
def test_a_crd_fits_client_side_apply(api: Api, file: Path) -> None:
    said = api.kubectl("apply", "--dry-run=server", "-f", str(file))
    assert file.stem in said


def test_a_crd_has_no_complaint_of_the_server(api: Api) -> None:
    for name in ("workflowdefinitions", "workflowruns", "workflowengines"):
        crd = json.loads(api.kubectl("get", "crd", f"{name}.partita.dev", "-o", "json"))
        found = {each["type"]: each["status"] for each in crd["status"]["conditions"]}
        assert found["Established"] == "True"
        assert found.get("NonStructuralSchema", "False") == "False"


def test_managed_fields_stay_small(api: Api) -> None:
    """Each object inside a node is atomic, so that an owner of 200 nodes is 20 KiB and not 150."""
    nodes = [
        task(f"n{i}", retry=[{"match": ["a", "b"], "maxRetries": 3}] * 4, dependsOn=["n0"] if i else [])
        for i in range(200)
    ]
    api.kubectl("apply", "--server-side", "-f", "-", stdin=json.dumps(definition("d", *nodes)))
    found = json.loads(api.kubectl("get", "wfd", "d", "-o", "json", "--show-managed-fields"))
    assert len(json.dumps(found["metadata"]["managedFields"])) < 30 * 1024
