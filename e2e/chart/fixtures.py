"""Pytest fixtures, which e2e/conftest.py takes in: the node with the images of this checkout, the release that most
tests share, and a database that is no pod.

Trade-off: installing takes half a minute, so tests that only use the product share one release and leave it as they
found it; those that change it stand in a later file, in the order in which they leave it.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from e2e.chart.release import Release
from e2e.cluster import ClusterError, PodCluster
from e2e.cluster.progress import to_stderr
from e2e.images import build, problem
from e2e.outside import Network, Postgres, postgres

HERE = Path(__file__).parent
DEFINITION = HERE / "steps.yaml"
OUTSIDE_NAMESPACE = "outside-system"
DATABASE = "partita-db-rw"
POOLER = "partita-pooler"
"""Services of PostgreSQL and PgBouncer outside the cluster, which their certificate names, in that namespace."""


@dataclass(slots=True)
class SharedRelease:
    """The release that tests share, and whether it is there."""

    release: Release
    notes: str = ""
    """What Helm printed when it was installed; empty while it is not."""

    def ensure(self) -> None:
        """Install it unless it is there."""
        if not self.notes:
            self.release.prepare()
            self.notes = self.release.install()
            self.release.kubectl("apply", "-f", str(DEFINITION))

    def remove(self) -> None:
        """Remove it with its namespace and the kinds, if it is there."""
        if self.notes:
            self.release.remove()
            self.notes = ""


@pytest.fixture(scope="session")
def chart_node(node: PodCluster, tmp_path_factory: pytest.TempPathFactory) -> PodCluster:
    """The node with the product's image, made from this checkout, and PostgreSQL's."""
    if (missing := problem()) is not None:
        pytest.skip(missing)
    folder = tmp_path_factory.mktemp("images")
    for name in ("partita", "postgres"):
        node.load_image(build(name, folder, say=to_stderr).tar)
    return node


@pytest.fixture(scope="session")
def shared_release(chart_node: PodCluster) -> Iterator[SharedRelease]:
    """The holder of the shared release; it is removed at the end."""
    shared = SharedRelease(Release(chart_node, "partita-system", HERE / "trial.yaml"))
    yield shared
    shared.remove()


@pytest.fixture
def product(shared_release: SharedRelease) -> Release:
    """The product installed for trying it out: two operators, a worker and an embedded database, all ready."""
    shared_release.ensure()
    return shared_release.release


@pytest.fixture(scope="session")
def outside(chart_node: PodCluster) -> Iterator[Postgres]:
    """PostgreSQL with TLS in the node's network, with a certificate for the Services of `OUTSIDE_NAMESPACE`."""
    if (missing := postgres.problem()) is not None:
        pytest.skip(missing)
    folder = Path(tempfile.mkdtemp(prefix="partita-outside-"))
    try:
        network = Network.of(chart_node, folder)
    except ClusterError as error:
        pytest.skip(str(error))
    server = Postgres(network, network.authority("authority", (DATABASE, POOLER), OUTSIDE_NAMESPACE))
    try:
        server.start()
        yield server
    finally:
        server.stop()
        shutil.rmtree(folder)
