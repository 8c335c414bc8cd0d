"""A throwaway kind cluster, where a Docker engine answers. Its kubeconfig is the cluster's own, never the person's."""

import os
import shutil
import subprocess
from pathlib import Path

from e2e.cluster.contract import Cluster
from e2e.cluster.errors import ClusterError
from e2e.cluster.explicit import answers, find_kubectl
from e2e.cluster.progress import Say, Stopwatch, quietly
from e2e.cluster.state import Record, kubeconfig_path, record_path

ENGINE_SECONDS = 15
CREATE_SECONDS = 420
IMAGE_VARIABLE = "PARTITA_E2E_KIND_IMAGE"


class KindCluster(Cluster):
    """The kind cluster `partita-<name>`; PARTITA_E2E_KIND_IMAGE chooses another node image, hence version."""

    provider = "kind"

    def __init__(self, home: Path, name: str, say: Say = quietly) -> None:
        self.home = home.resolve()
        self.name = name
        self._say = say

    @staticmethod
    def problem() -> str | None:
        """Return why this provider cannot be used here, or None when it can."""
        if shutil.which("kind") is None:
            return "the kind program is not installed"
        if shutil.which("docker") is None:
            return "the docker program is not installed"
        return None if _engine_answers() else "no Docker engine answers `docker info`"

    @property
    def kubeconfig(self) -> Path:
        return kubeconfig_path(self.home)

    @property
    def kubectl(self) -> Path:
        return find_kubectl(self._say)

    def start(self) -> None:
        if self.ready():
            return
        watch = Stopwatch()
        self.home.mkdir(parents=True, exist_ok=True)
        Record(self.provider, self.name).write(self.home)
        self._kind("delete", "cluster")
        image = os.environ.get(IMAGE_VARIABLE)
        self._say(f"creating the kind cluster {self._kind_name}")
        self._kind("create", "cluster", "--wait", "180s", *(("--image", image) if image else ()))
        self._say(f"kind cluster ready after {watch}")

    def stop(self) -> None:
        self._kind("delete", "cluster")
        for path in (self.kubeconfig, record_path(self.home)):
            path.unlink(missing_ok=True)

    def ready(self) -> bool:
        return self.kubeconfig.exists() and answers(self)

    @property
    def _kind_name(self) -> str:
        return f"partita-{self.name}"

    def _kind(self, *arguments: str) -> None:
        command = ["kind", *arguments, "--name", self._kind_name, "--kubeconfig", str(self.kubeconfig)]
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=CREATE_SECONDS
        )
        if done.returncode != 0:
            raise ClusterError(f"{' '.join(command)} failed:\n{done.stderr.strip()}")


def _engine_answers() -> bool:
    try:
        asked = subprocess.run(
            ["docker", "info"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            check=False,
            timeout=ENGINE_SECONDS,
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return asked.returncode == 0
