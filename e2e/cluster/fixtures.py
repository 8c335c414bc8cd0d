"""Pytest fixtures for a real Kubernetes API; a conftest takes them in with

    pytest_plugins = ["e2e.cluster.fixtures"]      # in the conftest of the root folder, or
    from e2e.cluster.fixtures import cluster, namespace, node, node_namespace, restartable_cluster

Every pytest process has its own cluster, started by the first test that asks for it: several of them (xdist) never
disturb each other. It costs seconds and half a gigabyte each, so suites that use it are best run in one process.
"""

import secrets
from collections.abc import Iterator

import pytest

from e2e.cluster.choice import choose, choose_pods, choose_restartable
from e2e.cluster.contract import Cluster, PodCluster, RestartableCluster
from e2e.cluster.errors import ProviderUnavailable
from e2e.cluster.node import Node
from e2e.cluster.node.images import write_pause
from e2e.cluster.owned import running
from e2e.cluster.progress import to_stderr

__all__ = ["cluster", "namespace", "node", "node_namespace", "restartable_cluster"]


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


@pytest.fixture(scope="session")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PodCluster]:
    """A running cluster that runs pods, for all tests of this process, with no image but the one of a small shell."""
    try:
        chosen = choose_pods(tmp_path_factory.mktemp("node"), _unique_name(), to_stderr)
    except ProviderUnavailable as error:
        pytest.skip(Node.problem() or str(error))
    with running(chosen):
        if not isinstance(chosen, Node):  # which has it already
            archive = tmp_path_factory.mktemp("images") / "shell.tar"
            write_pause(archive)
            chosen.load_image(archive)
        yield chosen


@pytest.fixture
def namespace(cluster: Cluster) -> Iterator[str]:
    """A fresh namespace for one test; it is deleted afterwards, without waiting for its end."""
    yield from _namespace(cluster)


@pytest.fixture
def node_namespace(node: PodCluster) -> Iterator[str]:
    """The same in the cluster that runs pods."""
    yield from _namespace(node)


def _namespace(cluster: Cluster) -> Iterator[str]:
    name = f"test-{secrets.token_hex(4)}"
    cluster.run_kubectl("create", "namespace", name)
    yield name
    cluster.run_kubectl("delete", "namespace", name, "--wait=false")


def _unique_name() -> str:
    return f"e2e-{secrets.token_hex(3)}"
