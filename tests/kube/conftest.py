"""Fixtures of the tests against a real Kubernetes API: a cluster, a namespace a test, and the CRDs in place."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from e2e.cluster.contract import Cluster
from e2e.cluster.errors import ClusterError
from e2e.cluster.fixtures import cluster, namespace, restartable_cluster
from partita.kube import retention
from partita.settings import Settings
from tests.kube import operated
from tests.kube.crd_api import Api
from tests.waiting import until_sync

__all__ = ["api", "cluster", "crds", "namespace", "restartable_cluster"]

CRDS = Path(__file__).parents[2] / "crds"


@pytest.fixture(scope="session")
def crds(cluster: Cluster) -> Cluster:
    """The cluster with the CRDs of this checkout applied and served."""
    cluster.apply(CRDS, arguments=("--server-side", "--force-conflicts"))
    cluster.run_kubectl("wait", "--for=condition=Established", "--timeout=30s", "-f", str(CRDS))
    until_sync(lambda: _described(cluster), within=60, every=0.2, what="the kinds to be described")
    return cluster


def _described(cluster: Cluster) -> bool:
    """Whether the API server describes all three kinds, which it begins to do a while after it serves them."""
    try:
        for name in ("wfd", "wfr", "wfe"):
            cluster.run_kubectl("explain", name)
    except ClusterError:
        cluster.run_kubectl("api-resources", "--api-group=partita.dev")  # kubectl forgets what it has remembered
        return False
    return True


@pytest.fixture
def api(crds: Cluster, namespace: str) -> Api:
    """The API server with the CRDs, in a fresh namespace."""
    return Api(crds, namespace)


@pytest.fixture
async def here(crds: Cluster, namespace: str) -> AsyncIterator[operated.Namespace]:
    """A fresh namespace with the CRDs, as the tests of the operator see it."""
    async with operated.namespace_of(crds, namespace) as here:
        yield here


@pytest.fixture
def operator_settings(settings: Settings, namespace: str) -> Settings:
    """Settings of an operator of this test's namespace and database."""
    return operated.operator_settings(settings, namespace)


@pytest.fixture
def quick_deletion(monkeypatch: pytest.MonkeyPatch) -> None:
    """An operator of this process looks for objects whose time is over five times a second."""
    monkeypatch.setattr(retention, "INTERVAL_SECONDS", 0.2)
