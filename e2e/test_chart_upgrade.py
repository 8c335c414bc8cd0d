"""What changes under an installed product: its leader, its version, its engine object, and the release itself.

The tests stand in the order in which they leave the shared release: the last one uninstalls it and installs it again.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from e2e.chart.release import KINDS, Release
from e2e.chart.runs import GO, Load, recorded, runs_of
from e2e.cluster.waiting import wait_until

LEADER = ("get", "pods", "-l", "partita.io/leader=true", "-o", "jsonpath={.items[*].metadata.name}")
FOLLOWED_SECONDS = 60


def leader_after(product: Release, former: str) -> str:
    """The pod that leads and is not the former one, once there is exactly one."""
    found: list[str] = []

    def led() -> bool:
        found[:] = product.kubectl(*LEADER).split()
        return len(found) == 1 and found[0] != former

    wait_until(led, "another pod leads", seconds=FOLLOWED_SECONDS)
    return found[0]


@pytest.mark.parametrize("how", [("--grace-period=0", "--force"), ()], ids=["forced", "stopped"])
def test_another_operator_leads_and_a_run_under_way_ends(product: Release, how: tuple[str, ...]) -> None:
    name = "gated-forced" if how else "gated-stopped"
    product.kubectl("apply", "-f", "-", stdin=runs_of("gate", name))
    product.wait(f"wfr/{name}", "jsonpath={.status.waitingFor}")
    former = leader_after(product, "")
    product.kubectl("delete", "pod", former, "--wait=false", *how)
    product.kubectl("patch", "wfr", name, "--type=json", "-p", GO)  # while nobody may lead
    leader_after(product, former)
    product.wait(f"wfr/{name}", "condition=Succeeded")
    assert recorded(product.sql, name) == [(name, "after"), (name, "before")]
    product.kubectl("rollout", "status", "deployment/partita-operator", "--timeout=100s", seconds=120)


def test_an_upgrade_and_a_rollback_under_load_lose_and_double_nothing(product: Release) -> None:
    before = product.kubectl("get", "pods", "-o", "name").split()
    upgraded = Load(product, "upgraded")
    changed = ("--set", "operator.podAnnotations.changed=yes", "--set", "workerDefaults.podAnnotations.changed=yes")
    upgraded.beside(lambda: product.upgrade(*changed))
    upgraded.check()
    rolled = Load(product, "rolled")
    rolled.beside(lambda: product.helm("rollback", "partita", "--wait", "--timeout", "180s"))
    rolled.check()
    after = set(product.kubectl("get", "pods", "-o", "name").split())
    kept = {pod for pod in before if pod in after}
    assert not [pod for pod in kept if "operator" in pod or "worker" in pod]


def test_deleting_the_engine_object_returns_and_it_comes_back(product: Release) -> None:
    uid = product.json("get", "wfe", "partita")["metadata"]["uid"]
    product.kubectl("delete", "wfe", "partita", "--timeout=20s")

    def made_again() -> bool:
        return product.kubectl("get", "wfe", "-o", "jsonpath={.items[*].metadata.uid}") not in ("", uid)

    wait_until(made_again, "the WorkflowEngine is made again", seconds=FOLLOWED_SECONDS)
    product.wait("wfe/partita", "condition=Ready")
    product.kubectl("scale", "deployment/partita-operator", "--replicas=0")
    gone = ("--for=delete", "-l", "app.kubernetes.io/component=operator", "--timeout=60s")
    product.kubectl("wait", "pod", *gone, seconds=80)
    product.kubectl("delete", "wfe", "partita", "--timeout=20s")
    product.kubectl("scale", "deployment/partita-operator", "--replicas=2")
    product.kubectl("rollout", "status", "deployment/partita-operator", "--timeout=100s", seconds=120)


def test_objects_and_records_outlive_the_release_and_helm_3_installs_it_again(product: Release) -> None:
    product.kubectl("apply", "-f", "-", stdin=runs_of("gate", "outlives"))
    product.wait("wfr/outlives", "jsonpath={.status.waitingFor}")
    product.helm("uninstall", "partita")
    product.kubectl("wait", "pod", "--for=delete", "--all", "--timeout=100s", seconds=120)
    for kind in KINDS:
        product.kubectl("get", "crd", kind)
    product.kubectl("get", "pvc", "data-partita-postgresql-0")
    product.kubectl("patch", "wfr", "outlives", "--type=json", "-p", GO)  # nobody is there to see it
    replace(product, helm_program=product.node.helm_3).install()
    product.wait("wfr/outlives", "condition=Succeeded", seconds=90)
    assert product.sql("SELECT count(*) FROM partita.workflow_runs WHERE name = 'outlives'") == [["1"]]
    assert "Succeeded" in replace(product, helm_program=product.node.helm_3).helm("test", "partita")
