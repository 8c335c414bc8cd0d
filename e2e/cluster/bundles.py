"""What is compiled together from one Go module: the control plane, a node, Helm and the name server.

Invariant: a bundle's key is a hash of all that goes into it, so that a changed version is another folder of the cache.
"""

import hashlib
import platform
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from e2e.cluster.errors import BuildError

MODULE = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class Bundle:
    """Programs of one Go module."""

    title: str
    """What a person reads while it is built."""
    cache: str
    """Its folder below the user's cache."""
    module: Path
    """The folder with go.mod."""
    packages: Mapping[str, str]
    """Program → Go package."""
    versioned_by: str
    """The required module whose version is the bundle's."""

    def version(self) -> str:
        """Return the version that go.mod requires, such as `v1.35.4`."""
        text = (self.module / "go.mod").read_text("utf-8")
        found = re.search(rf"^\s*(?:require )?{re.escape(self.versioned_by)} (v\S+)", text, re.MULTILINE)
        if found is None:
            raise BuildError(f"{self.module / 'go.mod'}: requires no {self.versioned_by}")
        return found[1]

    def minimum_go(self) -> tuple[int, int]:
        """Return the oldest Go that compiles it, as go.mod says."""
        found = re.search(r"^go (\d+)\.(\d+)", (self.module / "go.mod").read_text("utf-8"), re.MULTILINE)
        if found is None:
            raise BuildError(f"{self.module / 'go.mod'}: names no version of Go")
        return int(found[1]), int(found[2])

    def flags(self) -> list[str]:
        """Return what `go build` is told; without debugging data the compiler needs an eighth less time."""
        linker = " ".join(["-s -w", *(f"-X {name}={value}" for name, value in self._stamps().items())])
        return ["-trimpath", "-buildvcs=false", "-gcflags=all=-dwarf=false", f"-ldflags={linker}"]

    def key(self) -> str:
        """Return the name of its folder in the cache."""
        inputs = hashlib.sha256()
        own = [source for package in self.packages.values() for source in sorted(self._own_sources(package))]
        for path in (self.module / "go.mod", self.module / "go.sum", *own):
            inputs.update(path.read_bytes())
        inputs.update(repr((dict(self.packages), self.flags(), platform.system(), platform.machine())).encode())
        return f"{self.version()}-{inputs.hexdigest()[:12]}"

    def _own_sources(self, package: str) -> list[Path]:
        """Return the source files of a package that lies in the module's own folder."""
        return list((self.module / package).glob("*.go")) if package.startswith("./") else []

    def _stamps(self) -> dict[str, str]:
        """Return the variables that the linker sets: Kubernetes's programs do not know their version otherwise."""
        if self.versioned_by != "k8s.io/kubernetes":
            return {}
        version = self.version()
        major, minor, _ = version.removeprefix("v").split(".", 2)
        return {
            "k8s.io/component-base/version.gitVersion": version,
            "k8s.io/component-base/version.gitMajor": major,
            "k8s.io/component-base/version.gitMinor": minor,
            "k8s.io/client-go/pkg/version.gitVersion": version,
        }


CONTROL_PLANE = Bundle(
    title="Kubernetes control plane",
    cache="kubernetes",
    module=MODULE,
    packages={
        "etcd": "go.etcd.io/etcd/server/v3",
        "kube-apiserver": "k8s.io/kubernetes/cmd/kube-apiserver",
        "kube-controller-manager": "k8s.io/kubernetes/cmd/kube-controller-manager",
        "kubectl": "k8s.io/kubernetes/cmd/kubectl",
    },
    versioned_by="k8s.io/kubernetes",
)

NODE = Bundle(
    title="Kubernetes node",
    cache="kubernetes-node",
    module=MODULE,
    packages={
        "kube-scheduler": "k8s.io/kubernetes/cmd/kube-scheduler",
        "kubelet": "k8s.io/kubernetes/cmd/kubelet",
        "kube-proxy": "k8s.io/kubernetes/cmd/kube-proxy",
    },
    versioned_by="k8s.io/kubernetes",
)

HELM = Bundle(
    title="Helm 4",
    cache="helm",
    module=MODULE / "tools",
    packages={"helm": "helm.sh/helm/v4/cmd/helm"},
    versioned_by="helm.sh/helm/v4",
)

HELM_3 = Bundle(
    title="Helm 3",
    cache="helm",
    module=MODULE / "tools",
    packages={"helm": "helm.sh/helm/v3/cmd/helm"},
    versioned_by="helm.sh/helm/v3",
)

DNS = Bundle(
    title="name server",
    cache="coredns",
    module=MODULE / "tools",
    packages={"coredns": "./dns"},
    versioned_by="github.com/coredns/coredns",
)

TO_RUN_PODS = (CONTROL_PLANE, NODE, DNS)
"""What a node consists of, in the order in which it is compiled."""

FOR_PODS = (*TO_RUN_PODS, HELM, HELM_3)
"""The same with what installs charts on it."""
