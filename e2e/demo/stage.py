"""What the story plays on: a cluster, a database and the two processes, and how all of it is taken down again."""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from e2e.cluster.choice import choose, find
from e2e.cluster.contract import Cluster
from e2e.cluster.errors import ClusterError
from e2e.cluster.explicit import VARIABLE as KUBECONFIG_VARIABLE
from e2e.cluster.explicit import ExplicitCluster
from e2e.cluster.owned import running
from e2e.cluster.progress import to_stderr
from e2e.cluster.waiting import wait_until
from e2e.demo.database import VARIABLE, DemoDatabase, EmbeddedDatabase, NamedDatabase, demo_database
from e2e.demo.shell import Background, Shell

NAMESPACE = "partita-demo"
HOME_VARIABLE = "PARTITA_DEMO_HOME"
GONE_SECONDS = 60.0


def home() -> Path:
    """The folder of the demo that this person runs, or that PARTITA_DEMO_HOME names; removed with it."""
    named = os.environ.get(HOME_VARIABLE)
    return Path(named) if named else Path(tempfile.gettempdir()) / f"partita-demo-{os.geteuid()}"


@dataclass
class Stage:
    """A running demo."""

    cluster: Cluster
    database: DemoDatabase
    folder: Path
    processes: list[Background] = field(default_factory=list)

    def shell(self) -> Shell:
        """A shell that reaches the demo's cluster and database and nothing of the person's own."""
        return Shell(self.environment(), self.cluster.kubectl)

    def environment(self) -> dict[str, str]:
        """The variables that lead to the demo."""
        return {
            **self.cluster.environment(),
            **self.database.environment(),
            "PARTITA_OPERATOR_NAMESPACE": NAMESPACE,
            "PARTITA_OPERATOR_WATCH_NAMESPACES": NAMESPACE,
        }

    def remember(self) -> None:
        """Write down what runs, for ``stop``, readable for the person alone since a URL may hold a password."""
        record = {
            "pids": [process.pid for process in self.processes],
            "url": self.database.environment()[VARIABLE] if isinstance(self.database, NamedDatabase) else None,
            "kubeconfig": str(self.cluster.kubeconfig) if isinstance(self.cluster, ExplicitCluster) else None,
        }
        path = _record(self.folder)
        path.touch(mode=0o600)
        path.write_text(json.dumps(record))


@contextlib.contextmanager
def raised(*, keep: bool) -> Iterator[Stage]:
    """Set the stage; it is taken down at the end of the block unless ``keep`` and all went well."""
    folder = home()
    database = demo_database(folder)
    database.check()  # before anything of a kept demo is taken down
    if folder.exists():
        stop()
    cluster = choose(folder / "cluster", "demo", to_stderr)
    folder.mkdir(mode=0o755)
    with contextlib.ExitStack() as stack:
        if keep:
            stack.callback(cluster.stop)
            cluster.start()
        else:
            stack.enter_context(running(cluster))
        stack.callback(database.remove)
        database.start()
        stage = Stage(cluster, database, folder)
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
    if not folder.exists():
        return False
    record = json.loads(_record(folder).read_text()) if _record(folder).exists() else {}
    for pid in record.get("pids", ()):
        _end(pid)
    if record.get("kubeconfig"):
        os.environ[KUBECONFIG_VARIABLE] = record["kubeconfig"]
        _clean(ExplicitCluster(folder / "cluster", "demo"))
    elif (cluster := find(folder / "cluster", to_stderr)) is not None:
        cluster.stop()
    database = demo_database(folder, record["url"]) if record.get("url") else EmbeddedDatabase(folder)
    database.remove()
    shutil.rmtree(folder, ignore_errors=True)
    return True


def _record(folder: Path) -> Path:
    return folder / "demo.json"


def _stop_all(stage: Stage) -> None:
    for process in reversed(stage.processes):
        process.stop()
    _clean(stage.cluster)


def _clean(cluster: Cluster) -> None:
    """Remove what the demo made in a cluster that goes on without it; its CRDs stay."""
    if isinstance(cluster, ExplicitCluster):
        cluster.run_kubectl("delete", "namespace", NAMESPACE, "--ignore-not-found", seconds=GONE_SECONDS)


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
    if not Path("/proc/self").exists():
        command = ["ps", "-p", str(pid), "-o", "command="]
        return b"partita" in subprocess.run(command, capture_output=True, check=False).stdout
    try:
        return b"partita" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False
