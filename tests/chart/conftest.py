"""Fixtures of the tests of the Helm chart: Helm 4 and 3, and every values file of ci/ rendered once."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from e2e.cluster import binaries
from e2e.cluster.bundles import HELM, HELM_3, Bundle
from e2e.cluster.fixtures import cluster, namespace
from e2e.cluster.progress import to_stderr
from tests.chart.helm import CI, Helm, Object

__all__ = ["cluster", "namespace"]

PROGRAMS: dict[str, tuple[str, Bundle]] = {"helm4": ("PARTITA_HELM", HELM), "helm3": ("PARTITA_HELM_3", HELM_3)}
"""Variable that names a program that is there already, and what is built otherwise."""


def _program(version: str) -> Path:
    variable, bundle = PROGRAMS[version]
    named = os.environ.get(variable)
    return Path(named) if named else binaries.ensure(to_stderr, bundle)["helm"]


@pytest.fixture(scope="session")
def helm(tmp_path_factory: pytest.TempPathFactory) -> Helm:
    """Helm 4, away from any cluster."""
    return Helm(_program("helm4"), tmp_path_factory.mktemp("helm4"))


@pytest.fixture(scope="session", params=list(PROGRAMS))
def either_helm(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Helm:
    """Helm 4 and Helm 3."""
    return Helm(_program(request.param), tmp_path_factory.mktemp(request.param))


@pytest.fixture(scope="session")
def rendered(helm: Helm) -> dict[str, list[Object]]:
    """What each values file of ci/ renders, by the file's name."""
    return {path.name: helm.template("-f", str(path)) for path in CI}
