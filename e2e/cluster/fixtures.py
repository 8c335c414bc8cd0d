"""Pytest fixtures for a real Kubernetes API; a conftest takes them in with

    pytest_plugins = ["e2e.cluster.fixtures"]      # in the conftest of the root folder, or
    from e2e.cluster.fixtures import cluster, namespace, restartable_cluster

Every pytest process has its own cluster, started by the first test that asks for it: several of them (xdist) never
disturb each other. It costs seconds and half a gigabyte each, so suites that use it are best run in one process.
"""

import secrets
from collections.abc import Iterator

import pytest

from e2e.cluster.choice import choose, choose_restartable
from e2e.cluster.contract import Cluster, RestartableCluster
from e2e.cluster.errors import ProviderUnavailable
from e2e.cluster.owned import running
from e2e.cluster.progress import to_stderr

__all__ = ["cluster", "namespace", "restartable_cluster"]


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A running cluster for all tests of this process, without anything of Partita in it."""
    try:
        chosen = choose(tmp_path_factory.mktemp("cluster"), _unique_name(), to_stderr)
    except ProviderUnavailable as error:
        pytest.skip(str(error))
    with running(chosen):
        yield chosen


@pytest.fixture(scope="session")
def restartable_cluster(
    tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Iterator[RestartableCluster]:
    """A running cluster whose API server a test may take away: the one of `cluster` where that can do it."""
    shared = request.getfixturevalue("cluster")
    if isinstance(shared, RestartableCluster):
        yield shared
        return
    try:
        own = choose_restartable(tmp_path_factory.mktemp("restartable"), _unique_name(), to_stderr)
    except ProviderUnavailable as error:
        pytest.skip(str(error))
    with running(own):
        yield own


@pytest.fixture
def namespace(cluster: Cluster) -> Iterator[str]:
    """A fresh namespace for one test; it is deleted afterwards, without waiting for its end."""
    name = f"test-{secrets.token_hex(4)}"
    cluster.run_kubectl("create", "namespace", name)
    yield name
    cluster.run_kubectl("delete", "namespace", name, "--wait=false")


def _unique_name() -> str:
    return f"e2e-{secrets.token_hex(3)}"
