"""Fixtures of the tests against a real Kubernetes API: a cluster, a namespace a test, and the CRDs in place."""

from __future__ import annotations

from pathlib import Path

import pytest

from e2e.cluster.contract import Cluster
from e2e.cluster.fixtures import cluster, namespace, restartable_cluster
from tests.kube.crd_api import Api

__all__ = ["api", "cluster", "crds", "namespace", "restartable_cluster"]

CRDS = Path(__file__).parents[2] / "crds"


@pytest.fixture(scope="session")
def crds(cluster: Cluster) -> Cluster:
    """The cluster with the CRDs of this checkout applied and served."""
    cluster.apply(CRDS, arguments=("--server-side", "--force-conflicts"))
    cluster.run_kubectl("wait", "--for=condition=Established", "--timeout=30s", "-f", str(CRDS))
    return cluster


@pytest.fixture
def api(crds: Cluster, namespace: str) -> Api:
    """The API server with the CRDs, in a fresh namespace."""
    return Api(crds, namespace)
