"""What every provider of a cluster offers, whichever way it makes one."""

import abc
import contextlib
import json
import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from e2e.cluster.errors import ClusterError

KUBECTL_SECONDS = 60.0
HELM_SECONDS = 300.0


def run(
    command: Sequence[str],
    *,
    seconds: float,
    stdin: str | None = None,
    environment: Mapping[str, str] | None = None,
    shown: str | None = None,
) -> str:
    """Run a command and return what it prints.

    Raises ClusterError with its message when it fails or takes longer than `seconds`; `shown` is then its name.
    """
    name = shown or " ".join([Path(command[0]).name, *command[1:]])
    try:
        done = subprocess.run(
            command,
            input=stdin or "",
            capture_output=True,
            text=True,
            check=False,
            timeout=seconds,
            env=os.environ | (environment or {}),
        )
    except subprocess.TimeoutExpired as error:
        raise ClusterError(f"{name}: no answer after {seconds:g} s") from error
    if done.returncode != 0:
        raise ClusterError(f"{name}: {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout


class Cluster(abc.ABC):
    """A Kubernetes API to test against, with an administrator's kubeconfig of its own.

    `start` and `stop` can be called again; a cluster that a person named is never stopped.
    """

    provider: str
    """`explicit`, `kind`, `go` or `node`."""

    name: str
    """The cluster's name, unique among those that run at the same time."""

    home: Path
    """The folder with all that belongs to the cluster."""

    @property
    @abc.abstractmethod
    def kubeconfig(self) -> Path:
        """The kubeconfig with an administrator's context; valid after `start`."""

    @property
    @abc.abstractmethod
    def kubectl(self) -> Path:
        """A kubectl that fits the cluster's version."""

    def prepare(self) -> None:  # noqa: B027 - most providers have nothing to do
        """Do beforehand what takes minutes before a first `start`, if anything; quick when it is done."""

    @abc.abstractmethod
    def start(self) -> None:
        """Make the cluster ready, or find it ready; raises ClusterError after a bounded time."""

    @abc.abstractmethod
    def stop(self) -> None:
        """Remove the cluster with all its objects; returns when nothing of it runs."""

    @abc.abstractmethod
    def ready(self) -> bool:
        """Return whether the API server is ready now."""

    def environment(self) -> dict[str, str]:
        """Return the variables that direct kubectl and clients of Kubernetes to this cluster."""
        return {"KUBECONFIG": str(self.kubeconfig)}

    def kubectl_command(self, *arguments: str) -> list[str]:
        """Return a kubectl command line that reaches this cluster and no other."""
        return [str(self.kubectl), f"--kubeconfig={self.kubeconfig}", *arguments]

    def run_kubectl(self, *arguments: str, stdin: str | None = None, seconds: float = KUBECTL_SECONDS) -> str:
        """Run kubectl and return what it prints; raises ClusterError with its message when it fails."""
        return run(
            self.kubectl_command(*arguments), seconds=seconds, stdin=stdin, shown=f"kubectl {' '.join(arguments)}"
        )

    def kubectl_json(self, *arguments: str) -> Any:
        """Run kubectl with `-o json` and return the parsed answer."""
        return json.loads(self.run_kubectl(*arguments, "-o", "json"))

    def apply(self, *manifests: Path, arguments: Sequence[str] = ("--server-side",)) -> None:
        """Apply manifest files or folders."""
        files = [part for manifest in manifests for part in ("-f", str(manifest))]
        self.run_kubectl("apply", *arguments, *files)


class PodCluster(Cluster):
    """A cluster that runs pods, of images that are loaded into it: their pull policy must be `Never`."""

    @property
    @abc.abstractmethod
    def helm(self) -> Path:
        """Helm 4."""

    @property
    @abc.abstractmethod
    def helm_3(self) -> Path:
        """Helm 3."""

    @abc.abstractmethod
    def load_image(self, archive: Path) -> None:
        """Load an image archive, as `docker save` or `e2e.images` write it."""

    @abc.abstractmethod
    def reach(self, namespace: str, service: str, port: int) -> contextlib.AbstractContextManager[int]:
        """Give the port of loopback that leads to a Service's port, for as long as the block lasts.

        Waits until the Service takes connections; raises ClusterError when it does not after a minute.
        """

    def run_helm(self, *arguments: str, seconds: float = HELM_SECONDS, program: Path | None = None) -> str:
        """Run Helm 4, or `program`, and return what it prints; raises ClusterError with its message when it fails.

        Its configuration and caches are below `home`: a person's own are neither read nor written.
        """
        folders = {f"HELM_{kind}_HOME": str(self.home / "helm" / kind.lower()) for kind in ("CACHE", "CONFIG", "DATA")}
        return run([str(program or self.helm), *arguments], seconds=seconds, environment=self.environment() | folders)


class RestartableCluster(Cluster):
    """A cluster whose API server can be taken away and brought back, with all objects kept."""

    @abc.abstractmethod
    def stop_apiserver(self) -> None:
        """End the API server at once, as a crash would; returns when it is gone."""

    @abc.abstractmethod
    def start_apiserver(self) -> None:
        """Start the API server again at its old address; returns when it is ready."""

    def restart_apiserver(self) -> None:
        """Take the API server away and bring it back; returns when it is ready."""
        self.stop_apiserver()
        self.start_apiserver()
