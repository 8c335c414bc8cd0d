"""A throwaway kind cluster, where a Docker engine answers. Its kubeconfig is the cluster's own, never the person's."""

import contextlib
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

from e2e.cluster import processes
from e2e.cluster.bundles import HELM, HELM_3
from e2e.cluster.contract import PodCluster
from e2e.cluster.errors import ClusterError
from e2e.cluster.explicit import answers, find_helm, find_kubectl
from e2e.cluster.ports import free_ports, is_free
from e2e.cluster.progress import Say, Stopwatch, quietly
from e2e.cluster.state import Record, kubeconfig_path, record_path
from e2e.cluster.waiting import wait_until

ENGINE_SECONDS = 15
CREATE_SECONDS = 420
IMAGE_VARIABLE = "PARTITA_E2E_KIND_IMAGE"


class KindCluster(PodCluster):
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

    @property
    def helm(self) -> Path:
        return find_helm(self._say, HELM)

    @property
    def helm_3(self) -> Path:
        return find_helm(self._say, HELM_3)

    def load_image(self, archive: Path) -> None:
        self._kind("load", "image-archive", str(archive.resolve()))

    @contextlib.contextmanager
    def reach(self, namespace: str, service: str, port: int) -> Iterator[int]:
        local = free_ports(1)[0]
        command = self.kubectl_command("port-forward", "-n", namespace, f"service/{service}", f"{local}:{port}")
        program = processes.start_command(self.home, f"port-forward-{local}", command)
        try:
            wait_until(lambda: not is_free(local), "kubectl port-forward listens", seconds=30, log=program.log)
            yield local
        finally:
            program.kill()

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
