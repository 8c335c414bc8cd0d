"""A cluster that the person names with PARTITA_E2E_KUBECONFIG: used as it is, never created, stopped or restarted."""

import os
import shutil
from pathlib import Path

from e2e.cluster import binaries
from e2e.cluster.bundles import Bundle
from e2e.cluster.contract import Cluster, run
from e2e.cluster.errors import ClusterError, ProviderUnavailable
from e2e.cluster.progress import Say, quietly
from e2e.cluster.waiting import wait_until

VARIABLE = "PARTITA_E2E_KUBECONFIG"
READY_SECONDS = 30.0
ANSWER_SECONDS = 10.0


class ExplicitCluster(Cluster):
    """The cluster of the current context of the kubeconfig file that PARTITA_E2E_KUBECONFIG names."""

    provider = "explicit"

    def __init__(self, home: Path, name: str, say: Say = quietly) -> None:
        self.home = home.resolve()
        self.name = name
        self._say = say

    @staticmethod
    def problem() -> str | None:
        """Return why this provider cannot be used here, or None when it can."""
        return None if os.environ.get(VARIABLE) else f"{VARIABLE} is not set"

    @property
    def kubeconfig(self) -> Path:
        path = Path(os.environ[VARIABLE]).expanduser()
        if not path.is_file():
            raise ClusterError(f"{VARIABLE}: {path}: no such file; expected the path of a kubeconfig")
        return path

    @property
    def kubectl(self) -> Path:
        return find_kubectl(self._say)

    def start(self) -> None:
        what = f"{VARIABLE}={self.kubeconfig}: the API server is ready"
        wait_until(self.ready, what, seconds=READY_SECONDS, every=0.5)

    def stop(self) -> None:
        """Do nothing: the cluster is the person's."""

    def ready(self) -> bool:
        return answers(self)


def answers(cluster: Cluster) -> bool:
    """Return whether the API server says, through kubectl, that it is ready."""
    try:
        return cluster.run_kubectl("get", "--raw", "/readyz", seconds=ANSWER_SECONDS).strip() == "ok"
    except ClusterError:
        return False


def find_kubectl(say: Say) -> Path:
    """Return the kubectl in PATH, else the one that is built with the control plane."""
    if (found := shutil.which("kubectl")) is not None:
        return Path(found)
    if binaries.cached() is None and (problem := binaries.go_problem()) is not None:
        raise ProviderUnavailable(f"kubectl is not installed, and cannot be built: {problem}")
    return binaries.ensure(say)["kubectl"]


def find_helm(say: Say, bundle: Bundle) -> Path:
    """Return the Helm of a bundle: the one in PATH when it is of the same major version, else one that is built."""
    found = shutil.which("helm")
    if found is not None and run([found, "version", "--short"], seconds=ANSWER_SECONDS).startswith(
        bundle.version()[:3]
    ):
        return Path(found)
    return binaries.ensure(say, bundle)["helm"]
