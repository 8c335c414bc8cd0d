"""The leader's pod has a label, the others have none, and nothing depends on it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest

from partita.kube.client import KubeClient
from partita.kube.operator import run_operator
from partita.kube.options import OperatorOptions
from partita.kube.pod_label import LEADER_LABEL, PodLabel
from partita.kube.resources import PODS
from partita.settings import Settings
from tests.kube.operated import APPROVAL, Namespace, Object, definition, operating, run
from tests.waiting import until

POD: Object = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "operator-1", "labels": {LEADER_LABEL: "true", "other": "stays"}},
    "spec": {"containers": [{"name": "operator", "image": "none"}]},
}


async def test_the_label_comes_with_the_term_and_goes_with_it(here: Namespace, operator_settings: Settings) -> None:
    """The label that a killed process has left behind is there at the start."""
    await here.client.create(PODS.path(here.name), POD)
    options = OperatorOptions(pod_namespace=here.name, pod_name="operator-1")

    async def labelled(value: str | None) -> None:
        async def check() -> bool:
            labels = (await here.client.get(PODS.path(here.name, "operator-1")))["metadata"].get("labels") or {}
            return labels.get(LEADER_LABEL) == value and labels.get("other") == "stays"

        await until(check, within=40, what=f"the label to be {value}")

    async with operating(here, operator_settings, options):
        await labelled("true")
        second = replace(options, pod_name="operator-2")
        await here.client.create(PODS.path(here.name), {**POD, "metadata": {**POD["metadata"], "name": "operator-2"}})
        async with standing_by(here, operator_settings, second):
            await unlabelled(here, "operator-2")
        await labelled("true")
    await labelled(None)


@asynccontextmanager
async def standing_by(here: Namespace, settings: Settings, options: OperatorOptions) -> AsyncIterator[None]:
    """An operator that waits for the Lease."""
    stop = asyncio.Event()
    task = asyncio.create_task(run_operator(settings, replace(options, kubeconfig=here.cluster.kubeconfig), stop=stop))
    try:
        yield
    finally:
        stop.set()
        await task


async def unlabelled(here: Namespace, name: str) -> None:
    async def check() -> bool:
        pod = await here.client.get(PODS.path(here.name, name))
        return LEADER_LABEL not in (pod["metadata"].get("labels") or {})

    await until(check, within=40, what=f"{name} to lose its label")


async def test_a_pod_that_cannot_be_labelled_costs_a_warning_and_no_term(
    here: Namespace, operator_settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    options = OperatorOptions(pod_namespace=here.name, pod_name="no-such-pod")
    async with operating(here, operator_settings, options) as task:
        await here.create(definition("approve", APPROVAL))
        await here.create(run("one", "approve"))
        await here.phase("one", "Running")
        assert not task.done()
    assert "the operator works without it" in caplog.text


async def test_without_the_name_of_a_pod_nothing_is_asked() -> None:
    client = KubeClient(lambda: pytest.fail("no connection is needed"))
    label = PodLabel(client, "", "")
    await label.put()
    await label.remove()
