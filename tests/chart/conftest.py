"""Fixtures of the tests of the Helm chart: Helm 4 and 3, and every values file of ci/ rendered once."""

from __future__ import annotations

import pytest

from e2e.cluster.bundles import HELM, HELM_3
from e2e.cluster.explicit import find_helm
from e2e.cluster.fixtures import cluster, namespace
from e2e.cluster.progress import to_stderr
from tests.chart.helm import CI, Helm, Object

__all__ = ["cluster", "namespace"]

BUNDLES = {"helm4": HELM, "helm3": HELM_3}


@pytest.fixture(scope="session")
def helm(tmp_path_factory: pytest.TempPathFactory) -> Helm:
    """Helm 4, away from any cluster."""
    return Helm(find_helm(to_stderr, HELM), tmp_path_factory.mktemp("helm4"))


@pytest.fixture(scope="session", params=list(BUNDLES))
def either_helm(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Helm:
    """Helm 4 and Helm 3."""
    return Helm(find_helm(to_stderr, BUNDLES[request.param]), tmp_path_factory.mktemp(request.param))


@pytest.fixture(scope="session")
def rendered(helm: Helm) -> dict[str, list[Object]]:
    """What each values file of ci/ renders, by the file's name."""
    return {path.name: helm.template("-f", str(path)) for path in CI}
