"""What a person who knows kubectl gets from `helm install` with `postgresql.embedded.enabled=true`."""

from __future__ import annotations

import re
import subprocess

import pytest

from e2e.chart.fixtures import SharedRelease
from e2e.chart.release import ROOT, Release
from e2e.cluster import ClusterError

EXAMPLES = ROOT / "examples"
WITHOUT_HELP = {"children": "folder-tree-1", "fan-out": "thumbnails-1", "polling": "print-1"}
"""Examples that end well by themselves, and their runs."""
APPROVAL = '[{"op":"add","path":"/spec/signals/-","value":{"id":"a1","name":"approval","payload":{"by":"me"}}}]'


def phase(product: Release, run: str) -> str:
    return product.kubectl("get", "wfr", run, "-o", "jsonpath={.status.phase}")


def delete(product: Release, example: str) -> None:
    product.kubectl("delete", "-f", str(EXAMPLES / f"{example}.yaml"))


def test_everything_is_ready_and_hardened(product: Release) -> None:
    deployments = {each["metadata"]["name"]: each["status"] for each in product.json("get", "deployments")["items"]}
    ready = {name: status.get("readyReplicas") for name, status in deployments.items()}
    assert ready == {"partita-operator": 2, "partita-worker-held": 1, "partita-worker-shop": 1}
    restarts = product.kubectl("get", "pods", "-o", "jsonpath={.items[*].status.containerStatuses[*].restartCount}")
    assert set(restarts.split()) == {"0"}
    product.wait("wfe/partita", "condition=Ready")
    product.wait("wfe/partita", "condition=Synced")


def test_helm_test_passes(product: Release) -> None:
    told = product.helm("test", "partita", "--timeout", "120s")
    assert told.count("Succeeded") >= 1
    assert "Failed" not in told


def test_the_commands_of_the_notes_work_as_printed(product: Release, shared_release: SharedRelease) -> None:
    commands = re.sub(r"^  ", "", "\n".join(shared_release.notes.split("Watch it start")[1].splitlines()), flags=re.M)
    script = "\n".join(["set -eux", *commands.split("Workers:")[0].splitlines()[1:]])
    words = ("Try a first workflow", "Watch it")
    script = "\n".join(line for line in script.splitlines() if not line.startswith(words))
    path = f"{product.node.kubectl.parent}:{product.node.helm.parent}:/usr/local/bin:/usr/bin:/bin"
    done = subprocess.run(
        ["sh", "-c", script],
        env={**product.node.environment(), "PATH": path, "HOME": str(product.node.home)},
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )
    assert done.returncode == 0, f"{script}\n{done.stdout}\n{done.stderr}\n{product.explain()}"
    assert re.search(r"^hello-1\s+hello\s+Succeeded\s", done.stdout, re.MULTILINE), done.stdout
    product.node.run_kubectl("delete", "wfr/hello-1", "wfd/hello")


def test_the_order_of_the_quick_start(product: Release) -> None:
    product.kubectl("apply", "-f", str(EXAMPLES / "order.yaml"))
    product.wait("wfr/order-1", "jsonpath={.status.phase}=Running")
    product.kubectl("patch", "wfr", "order-1", "--type=json", "-p", APPROVAL)
    product.wait("wfr/order-1", "condition=Completed")
    row = product.kubectl("get", "wfr", "order-1", "--no-headers").split()
    assert row[:4] == ["order-1", "order", "Succeeded", "8/8"]
    described = product.kubectl("describe", "wfr", "order-1")
    for told in (r"Phase:\s+Succeeded", r"Carrier:\s+courier", r"Type:\s+Completed"):
        assert re.search(told, described), described
    delete(product, "order")


@pytest.mark.parametrize("example", list(WITHOUT_HELP))
def test_an_example_runs_to_its_end(product: Release, example: str) -> None:
    product.kubectl("apply", "-f", str(EXAMPLES / f"{example}.yaml"))
    product.wait(f"wfr/{WITHOUT_HELP[example]}", "condition=Completed")
    assert phase(product, WITHOUT_HELP[example]) == "Succeeded"
    delete(product, example)


def test_a_failed_saga_undoes_its_bookings(product: Release) -> None:
    product.kubectl("apply", "-f", str(EXAMPLES / "saga.yaml"))
    product.wait("wfr/trip-1", "condition=Completed")
    assert phase(product, "trip-1") == "Failed"
    undone = product.sql(
        "SELECT node FROM partita.run_history JOIN partita.workflow_runs ON id = run_id "
        "WHERE name = 'trip-1' AND event LIKE '%Undo%' OR name = 'trip-1' AND node LIKE '%undo%'"
    )
    assert {"flight~undo", "hotel~undo"} <= {node for (node,) in undone}
    delete(product, "saga")


@pytest.mark.parametrize("job", ["ensure", "drop"])
def test_a_cron_job_does_its_work_when_it_fires(product: Release, job: str) -> None:
    product.kubectl("create", "job", f"--from=cronjob/partita-{job}", f"{job}-now")
    product.wait(f"job/{job}-now", "condition=Complete")
    assert "nothing to do" in product.kubectl("logs", f"job/{job}-now")
    product.kubectl("delete", "job", f"{job}-now")


def test_maintenance_has_no_rights_in_the_api(product: Release) -> None:
    account = f"system:serviceaccount:{product.namespace}:partita-maintenance"
    for verb, what in (("get", "wfr"), ("get", "secrets"), ("create", "pods")):
        with pytest.raises(ClusterError, match="no"):
            product.kubectl("auth", "can-i", verb, what, f"--as={account}")
    mounted = product.json("get", "cronjob", "partita-drop")
    assert mounted["spec"]["jobTemplate"]["spec"]["template"]["spec"]["automountServiceAccountToken"] is False


def test_a_container_has_no_shell(product: Release) -> None:
    worker = product.kubectl("get", "pods", "-l", "partita.dev/worker=shop", "-o", "name").strip()
    with pytest.raises(ClusterError, match=r"(?i)not found|no such file"):
        product.kubectl("exec", worker, "--", "sh", "-c", "true")
    assert re.match(r"partita \S+|\d", product.kubectl("exec", worker, "--", "partita", "--version"))
