"""The control plane's programs, compiled from Go modules into a cache of the person's.

Invariant: a cache folder either holds every program or does not exist: a build happens in a folder beside it, under a
lock between processes, and is renamed when it is whole. The folder's name contains a hash of all that goes into it.
Trade-off: the first build takes minutes and about a gigabyte of Go caches; in return nothing is downloaded but
checksummed source, and the versions stand in `go.mod`, where any tool that updates dependencies finds them.
"""

import contextlib
import fcntl
import hashlib
import os
import platform
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from e2e.cluster.compiling import compile_packages
from e2e.cluster.errors import BuildError
from e2e.cluster.progress import Say

MODULE = Path(__file__).parent
MINIMUM_GO = (1, 25)

PACKAGES = {
    "etcd": "go.etcd.io/etcd/server/v3",
    "kube-apiserver": "k8s.io/kubernetes/cmd/kube-apiserver",
    "kube-controller-manager": "k8s.io/kubernetes/cmd/kube-controller-manager",
    "kubectl": "k8s.io/kubernetes/cmd/kubectl",
}
"""Program → Go package. What a node needs (scheduler, kubelet, kube-proxy) would join here and in go.mod."""


@dataclass(frozen=True, slots=True)
class Binaries:
    """A folder that holds every program of `PACKAGES`, ready to run."""

    folder: Path
    version: str

    def __getitem__(self, program: str) -> Path:
        return self.folder / program


def kubernetes_version() -> str:
    """Return the Kubernetes version that go.mod requires, such as `v1.35.4`."""
    found = re.search(
        r"^\s*(?:require )?k8s\.io/kubernetes (v\S+)", (MODULE / "go.mod").read_text("utf-8"), re.MULTILINE
    )
    if found is None:
        raise BuildError(f"{MODULE / 'go.mod'}: requires no k8s.io/kubernetes")
    return found[1]


def go_problem() -> str | None:
    """Return why the programs cannot be built here, or None when they can."""
    go = shutil.which("go")
    wanted = ".".join(map(str, MINIMUM_GO))
    if go is None:
        return f"Go {wanted} or newer is not installed"
    version = _go_version(go)
    if version < MINIMUM_GO:
        return f"Go {'.'.join(map(str, version))} is installed, but {wanted} or newer is needed"
    return None


def cached() -> Binaries | None:
    """Return the programs if they are built already."""
    folder = _folder()
    return Binaries(folder, kubernetes_version()) if folder.is_dir() else None


def ensure(say: Say) -> Binaries:
    """Return the programs, building them first where they are not in the cache; `say` gets lines of progress.

    Several callers, also in several processes, build once. Raises BuildError.
    """
    if (found := cached()) is not None:
        return found
    if (problem := go_problem()) is not None:
        raise BuildError(problem)
    cache = _folder().parent
    cache.mkdir(parents=True, exist_ok=True)
    with _only_builder(cache / ".lock", say):
        if (found := cached()) is not None:
            return found
        return _build(say)


def _build(say: Say) -> Binaries:
    version, target = kubernetes_version(), _folder()
    for leftover in target.parent.glob(".building-*"):
        shutil.rmtree(leftover)
    scratch = Path(tempfile.mkdtemp(prefix=".building-", dir=target.parent))
    try:
        compile_packages(MODULE, PACKAGES, scratch, flags=_build_flags(version), version=version, say=say)
        scratch.chmod(0o755)
        scratch.rename(target)
    except BaseException:
        shutil.rmtree(scratch, ignore_errors=True)
        raise
    return Binaries(target, version)


def _build_flags(version: str) -> list[str]:
    """Return what `go build` is told; without debugging data the compiler needs an eighth less time."""
    major, minor, _ = version.removeprefix("v").split(".", 2)
    stamps = {
        "k8s.io/component-base/version.gitVersion": version,
        "k8s.io/component-base/version.gitMajor": major,
        "k8s.io/component-base/version.gitMinor": minor,
        "k8s.io/client-go/pkg/version.gitVersion": version,
    }
    linker = " ".join(["-s -w", *(f"-X {name}={value}" for name, value in stamps.items())])
    return ["-trimpath", "-buildvcs=false", "-gcflags=all=-dwarf=false", f"-ldflags={linker}"]


def _folder() -> Path:
    version = kubernetes_version()
    inputs = hashlib.sha256()
    for name in ("go.mod", "go.sum"):
        inputs.update((MODULE / name).read_bytes())
    inputs.update(repr((PACKAGES, _build_flags(version), platform.system(), platform.machine())).encode())
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return home / "partita" / "kubernetes" / f"{version}-{inputs.hexdigest()[:12]}"


def _go_version(go: str) -> tuple[int, int]:
    answer = subprocess.run(
        [go, "env", "GOVERSION"], capture_output=True, text=True, check=False, timeout=60, cwd=MODULE.root
    ).stdout
    found = re.match(r"go(\d+)\.(\d+)", answer)
    return (int(found[1]), int(found[2])) if found else (0, 0)


@contextlib.contextmanager
def _only_builder(lock: Path, say: Say) -> Iterator[None]:
    with lock.open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("another process is building the Kubernetes control plane: waiting for it")
            fcntl.flock(file, fcntl.LOCK_EX)
        yield
