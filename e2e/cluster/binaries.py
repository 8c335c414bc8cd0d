"""Programs compiled from Go modules into a cache of the person's.

Invariant: a cache folder either holds every program of its bundle or does not exist: a build happens in a folder beside
it, under a lock between processes, and is renamed when it is whole. The folder's name contains a hash of all that goes
into it. Trade-off: the first build takes minutes and gigabytes of Go caches; in return nothing is downloaded but
checksummed source, and the versions stand in `go.mod`, where any tool that updates dependencies finds them.
"""

import contextlib
import fcntl
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from e2e.cluster.bundles import CONTROL_PLANE, MODULE, Bundle
from e2e.cluster.compiling import compile_packages
from e2e.cluster.errors import BuildError
from e2e.cluster.progress import Say

PACKAGES = CONTROL_PLANE.packages


@dataclass(frozen=True, slots=True)
class Binaries:
    """A folder that holds every program of a bundle, ready to run."""

    folder: Path
    version: str

    def __getitem__(self, program: str) -> Path:
        return self.folder / program


def kubernetes_version() -> str:
    """Return the Kubernetes version that go.mod requires, such as `v1.35.4`."""
    return CONTROL_PLANE.version()


def go_problem(bundle: Bundle = CONTROL_PLANE) -> str | None:
    """Return why a bundle cannot be built here, or None when it can."""
    go, minimum = shutil.which("go"), bundle.minimum_go()
    wanted = ".".join(map(str, minimum))
    if go is None:
        return f"Go {wanted} or newer is not installed"
    version = _go_version(go)
    if version < minimum:
        return f"Go {'.'.join(map(str, version))} is installed, but {wanted} or newer is needed"
    return None


def cached(bundle: Bundle = CONTROL_PLANE) -> Binaries | None:
    """Return a bundle's programs if they are built already."""
    folder = _folder(bundle)
    return Binaries(folder, bundle.version()) if folder.is_dir() else None


def ensure(say: Say, bundle: Bundle = CONTROL_PLANE) -> Binaries:
    """Return a bundle's programs, building them first where they are not in the cache; `say` gets lines of progress.

    Several callers, also in several processes, build once. Raises BuildError.
    """
    if (found := cached(bundle)) is not None:
        return found
    if (problem := go_problem(bundle)) is not None:
        raise BuildError(problem)
    cache = _folder(bundle).parent
    cache.mkdir(parents=True, exist_ok=True)
    with _only_builder(cache / ".lock", bundle, say):
        if (found := cached(bundle)) is not None:
            return found
        return _build(bundle, say)


def _build(bundle: Bundle, say: Say) -> Binaries:
    target = _folder(bundle)
    for leftover in target.parent.glob(".building-*"):
        shutil.rmtree(leftover)
    scratch = Path(tempfile.mkdtemp(prefix=".building-", dir=target.parent))
    try:
        compile_packages(bundle, scratch, say)
        scratch.chmod(0o755)
        scratch.rename(target)
    except BaseException:
        shutil.rmtree(scratch, ignore_errors=True)
        raise
    return Binaries(target, bundle.version())


def _folder(bundle: Bundle) -> Path:
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return home / "partita" / bundle.cache / bundle.key()


def _go_version(go: str) -> tuple[int, int]:
    answer = subprocess.run(
        [go, "env", "GOVERSION"], capture_output=True, text=True, check=False, timeout=60, cwd=MODULE.root
    ).stdout
    found = re.match(r"go(\d+)\.(\d+)", answer)
    return (int(found[1]), int(found[2])) if found else (0, 0)


@contextlib.contextmanager
def _only_builder(lock: Path, bundle: Bundle, say: Say) -> Iterator[None]:
    with lock.open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say(f"another process is building the {bundle.title}: waiting for it")
            fcntl.flock(file, fcntl.LOCK_EX)
        yield
