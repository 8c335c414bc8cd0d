"""What the story plays on: a cluster, a database and the two processes, and how all of it is taken down again."""

import contextlib
import json
import os
import shutil
import signal
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from e2e.cluster.choice import choose, find
from e2e.cluster.contract import Cluster
from e2e.cluster.errors import ClusterError
from e2e.cluster.explicit import ExplicitCluster
from e2e.cluster.owned import running
from e2e.cluster.progress import to_stderr
from e2e.cluster.waiting import wait_until
from e2e.demo.shell import Background, Shell
from partita.store.embedded import Server

NAMESPACE = "partita-demo"


def home() -> Path:
    """The folder of the demo that this person runs; removed with it."""
    return Path(tempfile.gettempdir()) / f"partita-demo-{os.geteuid()}"


@dataclass
class Stage:
    """A running demo."""

    cluster: Cluster
    database_url: str
    folder: Path
    server: Server | None
    """None when the person named a database."""
    processes: list[Background] = field(default_factory=list)

    def shell(self) -> Shell:
        """A shell that reaches the demo's cluster and database and nothing of the person's own."""
        return Shell(self.environment(), self.cluster.kubectl)

    def environment(self) -> dict[str, str]:
        """The variables that lead to the demo."""
        return {
            **self.cluster.environment(),
            "PARTITA_DATABASE_URL": self.database_url,
            "PARTITA_OPERATOR_NAMESPACE": NAMESPACE,
            "PARTITA_OPERATOR_WATCH_NAMESPACES": NAMESPACE,
        }

    def remember(self) -> None:
        """Write down what runs, for ``stop``."""
        record = {"pids": [process.pid for process in self.processes]}
        (self.folder / "demo.json").write_text(json.dumps(record))


@contextlib.contextmanager
def raised(*, keep: bool) -> Iterator[Stage]:
    """Set the stage; it is taken down at the end of the block unless ``keep`` and all went well."""
    folder = home()
    if folder.exists():
        stop()
    folder.mkdir(mode=0o755)
    cluster = choose(folder / "cluster", "demo", to_stderr)
    with contextlib.ExitStack() as stack:
        if keep:
            cluster.start()
            stack.callback(cluster.stop)
        else:
            stack.enter_context(running(cluster))
        server = _server(folder)
        if server is not None:
            stack.callback(server.remove)
            server.start()
        stage = Stage(cluster, server.url() if server else os.environ["PARTITA_DATABASE_URL"], folder, server)
        stack.callback(_stop_all, stage)
        yield stage
        if keep:
            stage.remember()
            stack.pop_all()
            return
    shutil.rmtree(folder, ignore_errors=True)


def stop() -> bool:
    """Take down a demo that was kept; False when there is none."""
    folder = home()
    record = folder / "demo.json"
    if not folder.exists():
        return False
    for pid in json.loads(record.read_text())["pids"] if record.exists() else []:
        _end(pid)
    cluster = find(folder / "cluster", to_stderr)
    if cluster is not None:
        _clean(cluster)
        cluster.stop()
    Server(folder / "postgres").remove()
    shutil.rmtree(folder, ignore_errors=True)
    return True


def _server(folder: Path) -> Server | None:
    """An embedded server of the demo's own, unless the person named a database."""
    return None if os.environ.get("PARTITA_DATABASE_URL") else Server(folder / "postgres")


def _stop_all(stage: Stage) -> None:
    for process in reversed(stage.processes):
        process.stop()
    _clean(stage.cluster)


def _clean(cluster: Cluster) -> None:
    """Remove what the demo made in a cluster that goes on without it; its CRDs stay."""
    if isinstance(cluster, ExplicitCluster):
        cluster.run_kubectl("delete", "namespace", NAMESPACE, "--ignore-not-found", "--wait=false")


def _end(pid: int) -> None:
    """End one of the demo's processes, and wait until it is gone."""
    if not _is_ours(pid):
        return
    os.kill(pid, signal.SIGTERM)
    try:
        wait_until(lambda: not _is_ours(pid), f"the end of process {pid}", seconds=20)
    except ClusterError:
        os.kill(pid, signal.SIGKILL)


def _is_ours(pid: int) -> bool:
    """Whether the process is one of Partita's, not one that got its number later."""
    try:
        return b"partita" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False
