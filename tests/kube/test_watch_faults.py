"""Watches that break, kinds that change under a running operator, and lists that are not whole."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml

from e2e.cluster.contract import RestartableCluster
from partita.domain.errors import UnavailableError
from partita.kube.client import KubeClient
from partita.kube.options import OperatorOptions
from partita.settings import Settings
from partita.store.database import Database
from tests.kube import operated
from tests.kube.conftest import CRDS
from tests.kube.operated import APPROVAL, CHAIN, Namespace, definition, operating, run, working
from tests.kube.operated import operator_settings as settings_of
from tests.kube.test_faults import runs
from tests.kube.wire import wire
from tests.waiting import until

WATCHES = "partita.kube.watching"


@pytest.fixture(scope="module")
def there(restartable_cluster: RestartableCluster) -> RestartableCluster:
    """A cluster whose API server a test may restart, with the CRDs."""
    restartable_cluster.apply(CRDS, arguments=("--server-side", "--force-conflicts"))
    restartable_cluster.run_kubectl("wait", "--for=condition=Established", "--timeout=30s", "-f", str(CRDS))
    return restartable_cluster


async def test_a_watch_that_was_cut_for_so_long_that_the_server_has_forgotten(
    there: RestartableCluster,
    settings: Settings,
    database: Database,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Meanwhile objects come, change and go, and the API server restarts: what it then remembers begins later (410)."""
    caplog.set_level(logging.DEBUG, WATCHES)
    there.run_kubectl("create", "namespace", "cut")
    patient = settings_of(settings, "cut", lease_duration_ms=120_000, lease_deadline_ms=110_000)
    async with (
        operated.namespace_of(there, "cut") as here,
        wire(there, tmp_path) as line,
        operating(here, patient, OperatorOptions(kubeconfig=line.kubeconfig)),
    ):
        await here.create(definition("approve", APPROVAL))
        for name in ("gone", "changed", "replaced"):
            await here.create(run(name, "approve"))
            await here.phase(name, "Running")
        first = (await here.phase("replaced", "Running"))["runId"]
        line.cut()
        await here.kubectl("delete", "wfr", "gone", "replaced", "--timeout=20s")
        await here.create(run("replaced", "approve"))
        await here.create(run("new", "approve"))
        await here.signal("changed", "a1")
        await asyncio.to_thread(there.restart_apiserver)
        line.mend()
        await here.phase("changed", "Succeeded")
        await here.phase("new", "Running")
        second = (await here.run_until("replaced", lambda status: status.get("phase") == "Running", "new"))["runId"]

        async def settled() -> bool:
            states = [state for _, state in await runs(database)]
            return sorted(states) == ["Cancelled", "Cancelled", "Running", "Running", "Succeeded"]

        await until(settled, within=60, what="the runs of the deleted objects to be cancelled")
        assert first != second

        async def forgotten() -> bool:
            return any("listed anew" in record.getMessage() for record in caplog.records)

        await until(forgotten, within=30, what="a 410; resync may have done the rest before the watch came back")


async def test_a_crd_is_upgraded_under_a_running_operator(there: RestartableCluster, settings: Settings) -> None:
    """A field and a column more, as a newer version brings them."""
    there.run_kubectl("create", "namespace", "upgraded")
    chosen = settings_of(settings, "upgraded", watch_namespaces=())
    async with operated.namespace_of(there, "upgraded") as here, operating(here, chosen), working(chosen):
        await here.create(definition("approve", APPROVAL))
        await here.create(definition("chain", CHAIN))
        await here.create(run("before", "approve"))
        await here.phase("before", "Running")
        there.run_kubectl("replace", "-f", "-", stdin=json.dumps(upgraded(there)))
        await until(partial(served, here), within=30, what="the new column to be served")
        newer = run("after", "chain")
        newer["spec"]["color"] = "blue"
        await here.create(newer)
        await here.phase("after", "Succeeded")
        await here.signal("before", "a1")
        await here.phase("before", "Succeeded")
        await here.kubectl("delete", "wfr", "before", "after", "--timeout=20s")
        there.apply(CRDS, arguments=("--server-side", "--force-conflicts"))


def upgraded(cluster: RestartableCluster) -> dict[str, Any]:
    crd: dict[str, Any] = yaml.safe_load(cluster.run_kubectl("get", "crd", "workflowruns.partita.dev", "-o", "yaml"))
    version = crd["spec"]["versions"][0]
    version["additionalPrinterColumns"].append({"name": "Color", "type": "string", "jsonPath": ".spec.color"})
    spec = version["schema"]["openAPIV3Schema"]["properties"]["spec"]
    spec["properties"]["color"] = {"type": "string", "maxLength": 10}
    return crd


async def served(here: Namespace) -> bool:
    return "COLOR" in (await here.kubectl("get", "wfr"))


class BrokenLists(KubeClient):
    """Lists break off after the first page of one object."""

    broken = True

    async def metadata(self, path: str, page: int = 500) -> AsyncIterator[list[dict[str, Any]]]:
        async for found in super().metadata(path, 1 if self.broken else page):
            yield found
            if self.broken and found:
                raise UnavailableError("kubernetes: the list broke off")


async def test_a_list_that_breaks_off_is_no_verdict(
    here: Namespace, settings: Settings, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two objects are there and one is gone, unseen: a broken list cancels none of the three, a whole one the third."""
    chosen = settings_of(settings, here.name)
    async with operating(here, chosen):
        await here.create(definition("approve", APPROVAL))
        for name in ("one", "two", "gone"):
            await here.create(run(name, "approve"))
            await here.phase(name, "Running")
    await here.kubectl("delete", "wfr", "gone", "--timeout=20s")
    monkeypatch.setattr("partita.kube.operator.KubeClient", BrokenLists)
    async with operating(here, chosen, ready=False):
        await here.engine_until(lambda status: "broke off" in str(status), "a resync that fails")
        assert [state for _, state in await runs(database)] == ["Running"] * 3
        monkeypatch.setattr(BrokenLists, "broken", False)

        async def settled() -> bool:
            return sorted(state for _, state in await runs(database)) == ["Cancelled", "Running", "Running"]

        await until(settled, within=60, what="the third run to be cancelled, and only that")
