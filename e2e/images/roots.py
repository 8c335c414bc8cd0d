"""Roots made of layered folders, mounted where nobody else sees them.

Purpose: run one step of a stage and keep only what it changed. Invariant: a mount lives in a namespace of the one
process that needs it, so that nothing is left behind when it dies, and a step has no network.
"""

import os
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from e2e.images.errors import ImageError

SECONDS = 600
WHEELS = "/run/wheels"
_ISOLATED = ("unshare", "--mount", "--pid", "--net", "--fork", "--kill-child", "--propagation", "private")
_DEVICES = ("null", "zero", "random", "urandom")
_MOUNT = 'mount -t overlay overlay -o "$OVERLAY" "$MERGED"\n'
_RUN = (
    "set -e\n"
    + _MOUNT
    + 'mount -t proc proc "$MERGED/proc"\n'
    + "".join(f'touch "$MERGED/dev/{name}"\nmount --bind /dev/{name} "$MERGED/dev/{name}"\n' for name in _DEVICES)
    + 'if [ -n "$HOUSE" ]; then mount -t tmpfs tmpfs "$MERGED/run"; mkdir "$MERGED/run/wheels"\n'
    + 'mount --bind -o ro "$HOUSE" "$MERGED/run/wheels"; fi\n'
    + 'exec chroot "$MERGED" /usr/bin/env -i "$@"\n'
)
_COPY = "set -e\n" + _MOUNT + 'for source in "$@"; do cp -a "$MERGED/$source" "$TARGET"; done\n'


def run(
    lowers: Sequence[Path], upper: Path, script: str, *, folder: str, variables: Mapping[str, str], house: Path
) -> None:
    """Run a shell script in the root made of `lowers` (bottom first); what it changes lands in `upper`."""
    inside = [f"{name}={value}" for name, value in variables.items()]
    inside += ["PIP_NO_INDEX=1", f"PIP_FIND_LINKS={WHEELS}", "/bin/sh", "-euc", f'cd "{folder}" && {script}']
    _isolated(lowers, upper, _RUN, inside, {"HOUSE": str(house)})
    for name in _DEVICES:
        (upper / "dev" / name).unlink(missing_ok=True)


def copy_out(lowers: Sequence[Path], sources: Sequence[str], target: Path) -> None:
    """Copy files (`/a/b`) or the contents of folders (`/a/.`) out of the root made of `lowers`."""
    with tempfile.TemporaryDirectory(dir=target.parent) as upper:
        _isolated(lowers, Path(upper), _COPY, list(sources), {"TARGET": str(target)})


def _isolated(
    lowers: Sequence[Path], upper: Path, script: str, arguments: list[str], variables: dict[str, str]
) -> None:
    with tempfile.TemporaryDirectory(prefix="partita-root-", dir=upper.parent) as scratch:
        merged, work = Path(scratch) / "merged", Path(scratch) / "work"
        merged.mkdir()
        work.mkdir()
        below = ":".join(os.path.relpath(lower, upper.parent) for lower in reversed(lowers))
        options = f"lowerdir={below},upperdir={upper.name},workdir={work.relative_to(upper.parent)}"
        environment = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "OVERLAY": options, "MERGED": str(merged), **variables}
        done = subprocess.run(
            [*_ISOLATED, "/bin/sh", "-c", script, "sh", *arguments], check=False, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", timeout=SECONDS,
            cwd=upper.parent, env=environment,
        )  # fmt: skip
    if done.returncode:
        raise ImageError(f"exit code {done.returncode}; the output ends:\n{done.stdout[-3000:]}")
