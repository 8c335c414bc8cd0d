"""The commands that the documents show for one's own cluster, typed as they stand, in their order."""

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from e2e.cluster.contract import Cluster
from e2e.cluster.fixtures import cluster
from tests import postgres
from tests.docs.blocks import ROOT, SHELL, blocks

__all__ = ["cluster"]

PLACEHOLDER = "postgresql://user:password@host:5432/partita"
README, MANIFESTS = ROOT / "README.md", ROOT / "docs" / "manifests.md"
AGAIN = "kubectl delete wfr order-1\nkubectl apply -f examples/order.yaml\n"
"""What a reader of the second document has done, with the first one's operator running: a run of their own."""
SECONDS = 240


@pytest.fixture
def database_url() -> Iterator[str]:
    """An empty database on a server that any process of this machine can reach."""
    with postgres.cluster() as server, postgres.fresh_database(server, "template0") as url:
        yield url


@pytest.fixture
def own_cluster(cluster: Cluster) -> Iterator[Cluster]:
    """A cluster whose namespace ``default`` is left as it was found."""
    yield cluster
    cluster.run_kubectl(
        "delete", "workflowruns,workflowdefinitions", "--all", "--namespace=default", "--ignore-not-found"
    )
    cluster.run_kubectl("delete", "namespace", "partita-system", "--ignore-not-found")


def test_every_block_for_a_cluster_is_typed_here() -> None:
    marked = {block.document for block in blocks() if block.how == "run"}
    assert marked == {README, MANIFESTS}


def test_the_quick_start_works_as_it_stands(own_cluster: Cluster, database_url: str) -> None:
    assert PLACEHOLDER in typed(README)
    text = shell(typed(README).replace(PLACEHOLDER, database_url) + "\n" + AGAIN + typed(MANIFESTS), own_cluster)
    assert '{"carrier":"courier","confirmation":"ch-' in text
    assert "workflowrun.partita.dev/order-1 condition met" in text


def typed(document: Path) -> str:
    """The commands of a document's marked blocks."""
    return "\n".join(block.text for block in blocks(document) if block.language in SHELL and block.how == "run")


def shell(script: str, cluster: Cluster) -> str:
    """Run a script, and end what it leaves in the background; returns what it printed."""
    folders = [str(Path(sys.executable).parent), str(cluster.kubectl.parent), os.environ["PATH"]]
    clean = {name: value for name, value in os.environ.items() if not name.startswith("PARTITA_")}
    environment = {**clean, "KUBECONFIG": str(cluster.kubeconfig), "PATH": os.pathsep.join(folders)}
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(
            ["bash", "-euo", "pipefail", "-c", script],
            cwd=ROOT,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            code = process.wait(SECONDS)
        finally:
            os.killpg(process.pid, signal.SIGTERM)
        output.seek(0)
        text = output.read().decode(errors="replace")
    assert code == 0, text
    return text
