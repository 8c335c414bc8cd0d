"""The operator needs the rights that are documented and no others, with a cluster's and with a namespace's roles."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path

import pytest

from partita.domain.errors import ForbiddenError
from partita.kube import retention
from partita.kube.operator import run_operator
from partita.kube.options import OperatorOptions
from partita.kube.pod_label import LEADER_LABEL
from partita.kube.resources import EVENTS, PODS, RUNS
from partita.settings import Settings
from tests.kube import rights
from tests.kube.operated import APPROVAL, CHAIN, Namespace, definition, operating, run, working
from tests.kube.operated import operator_settings as settings_of
from tests.kube.test_leader_label import POD
from tests.waiting import until


async def everything_works(here: Namespace) -> None:
    """Definitions, runs, signals that are pruned, deletion, Events and the label."""
    await here.create(definition("approve", APPROVAL))
    await here.create(definition("chain", CHAIN))
    await here.create(run("short", "chain", ttlSecondsAfterFinished=0))
    await here.create(run("one", "approve"))
    await here.phase("one", "Running")
    many = [{"id": f"s{number}", "name": "nobody"} for number in range(60)]
    await here.patch_run("one", {"signals": many})
    await here.run_until("one", lambda status: len(status.get("signals") or ()) >= 60, "all signals taken over")

    async def settled() -> bool:
        pruned = len((await here.get(RUNS, "one"))["spec"]["signals"]) < 60
        events = (await here.client.get(EVENTS.path(here.name)))["items"]
        told = {event["reason"] for event in events} >= {"Accepted", "Waiting", "LeaderChanged"}
        labels = (await here.client.get(PODS.path(here.name, "operator-1")))["metadata"]["labels"]
        return pruned and told and LEADER_LABEL in labels and not await here.get(RUNS, "short")

    await until(settled, within=60, what="signals pruned, Events told, the pod labelled, the finished object gone")
    await here.patch_run("one", {"cancel": {}})
    await here.phase("one", "Cancelled")


def denied(caplog: pytest.LogCaptureFixture) -> list[str]:
    """What was logged about missing rights."""
    return [record.getMessage() for record in caplog.records if "forbidden" in record.getMessage().lower()]


@pytest.mark.usefixtures("quick_deletion")
async def test_roles_of_a_namespace_are_enough(
    here: Namespace, settings: Settings, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "partita.kube")
    account = rights.account(here.cluster, here.name, tmp_path)
    rights.grant(here.cluster, here.name, (*rights.WATCHED, *rights.OWN))
    await here.client.create(PODS.path(here.name), POD)
    options = OperatorOptions(kubeconfig=account, pod_namespace=here.name, pod_name="operator-1")
    chosen = settings_of(settings, here.name, cluster_uid="this-cluster", events_after_ms=300)
    async with operating(here, chosen, options), working(chosen):
        await everything_works(here)
    assert denied(caplog) == []


async def test_without_the_right_to_identify_the_cluster_it_says_what_to_set(
    here: Namespace, settings: Settings, tmp_path: Path
) -> None:
    account = rights.account(here.cluster, here.name, tmp_path)
    rights.grant(here.cluster, here.name, (*rights.WATCHED, *rights.OWN))
    with pytest.raises(ForbiddenError, match="identifies the cluster") as caught:
        await asyncio.wait_for(run_operator(settings_of(settings, here.name), OperatorOptions(kubeconfig=account)), 60)
    assert "PARTITA_OPERATOR_CLUSTER_UID" in str(caught.value)


@pytest.mark.usefixtures("quick_deletion")
async def test_roles_of_the_cluster_are_enough(
    here: Namespace, settings: Settings, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Everything is watched; the other namespaces of this cluster are used by nobody but this test's operator."""
    caplog.set_level(logging.DEBUG, "partita.kube")
    account = rights.account(here.cluster, here.name, tmp_path)
    rights.grant_everywhere(here.cluster, here.name, rights.CLUSTER, owner=here.name)
    rights.grant(here.cluster, here.name, rights.OWN)
    await here.client.create(PODS.path(here.name), POD)
    options = OperatorOptions(kubeconfig=account, pod_namespace=here.name, pod_name="operator-1")
    chosen = settings_of(settings, here.name, events_after_ms=300, watch_namespaces=())
    try:
        async with operating(here, chosen, options), working(chosen):
            await everything_works(here)
    finally:
        await here.kubectl("delete", "clusterrole,clusterrolebinding", here.name)
    assert denied(caplog) == []


async def test_a_list_that_is_refused_is_no_verdict(
    here: Namespace, settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The right to list runs is taken away while one waits: resync fails, and nothing is cancelled."""
    monkeypatch.setattr(retention, "INTERVAL_SECONDS", 3600.0)
    account = rights.account(here.cluster, here.name, tmp_path)
    rights.grant(here.cluster, here.name, (*rights.WATCHED, *rights.OWN))
    chosen = settings_of(settings, here.name, cluster_uid="this-cluster")
    async with operating(here, chosen, OperatorOptions(kubeconfig=account)):
        await here.create(definition("approve", APPROVAL))
        await here.create(run("one", "approve"))
        await here.phase("one", "Running")
        fewer = [each for each in rights.WATCHED if "workflowruns" not in each["resources"]]
        without = rights.rule(rights.OURS, "workflowruns", "get watch patch delete")
        rights.grant(here.cluster, here.name, (*fewer, without, *rights.OWN))

        def refused(status: dict[str, object]) -> bool:
            return "workflowruns" in str(status) and "forbidden" in str(status)

        await here.engine_until(refused, "a resync that fails")
        rights.grant(here.cluster, here.name, (*rights.WATCHED, *rights.OWN))
        await here.engine_until(lambda status: not refused(status), "a resync that works")
        await here.signal("one", "a1")
        assert (await here.phase("one", "Succeeded", "Cancelled"))["phase"] == "Succeeded"
