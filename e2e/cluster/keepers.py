"""The keepers that this process has: who stops a cluster when its owner is gone (see `owned`)."""

from pathlib import Path

from e2e.cluster.processes import Running

_keepers: dict[Path, int] = {}


def note(home: Path, pid: int) -> None:
    """Note the keeper of the cluster in a folder."""
    _keepers[home] = pid


def forget(home: Path) -> None:
    """Forget the keeper of the cluster in a folder."""
    del _keepers[home]


def keeper_of(home: Path) -> Running | None:
    """Return the keeper of the cluster in a folder, or None when nobody keeps it."""
    pid = _keepers.get(home)
    return None if pid is None else Running("keeper", pid, home)
