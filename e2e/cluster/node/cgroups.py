"""The control group below which a node's pods get theirs, so that two nodes on one machine do not meet.

Of version 1, which has a tree for each controller, as well as of version 2.
"""

import contextlib
import time
from pathlib import Path

ROOT = Path("/sys/fs/cgroup")
END_SECONDS = 10.0


def create(name: str) -> str:
    """Make the group in every tree; returns the path that the kubelet calls it by."""
    for tree in _trees():
        group = tree / name
        group.mkdir(exist_ok=True)
        for setting in ("cpuset.cpus", "cpuset.mems"):  # of version 1: a group without them takes no process
            if (group / setting).exists() and (tree / setting).exists():
                (group / setting).write_text((tree / setting).read_text(encoding="ascii"), encoding="ascii")
        if _unified():
            _delegate(tree)
            _delegate(group)
    return f"/{name}"


def remove(name: str) -> None:
    """Remove the group with all below it; returns when it is gone or, with a process in it still, after ten seconds."""
    deadline = time.monotonic() + END_SECONDS
    trees = [*_trees(), ROOT / "unified"]  # into which a runtime on version 1 puts processes as well
    while not all(_removed(tree / name) for tree in trees) and time.monotonic() < deadline:
        time.sleep(0.05)


def _trees() -> list[Path]:
    if _unified():
        return [ROOT]
    return [tree for tree in ROOT.iterdir() if tree.is_dir() and not tree.is_symlink() and tree.name != "unified"]


def _unified() -> bool:
    return (ROOT / "cgroup.controllers").exists()


def _delegate(group: Path) -> None:
    """Let the groups below use every controller that this one has."""
    names = (group / "cgroup.controllers").read_text(encoding="ascii").split()
    with contextlib.suppress(OSError):  # refused for a group with processes of its own: the kubelet says so then
        (group / "cgroup.subtree_control").write_text(" ".join(f"+{name}" for name in names), encoding="ascii")


def _removed(group: Path) -> bool:
    if not group.exists():
        return True
    deepest_first = sorted((path for path in group.rglob("*") if path.is_dir()), reverse=True)
    for path in [*deepest_first, group]:
        with contextlib.suppress(OSError):  # a process that is about to end is still in it: tried again
            path.rmdir()
    return not group.exists()
