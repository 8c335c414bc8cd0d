"""What peers need, installed into the user's cache: an environment for Python, modules for Node, a program in Go.

Invariant: nothing is installed into the repository or the environment of the project; a folder is named after the
digest of what was asked for and holds a stamp that is written last, so that an interrupted install is done again.
Trade-off: packages are pinned by version and not by hash: a peer is measured, never shipped.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import sys
import venv
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from bench.figures import say
from bench.peers.catalogue import FOLDER, Peer

ROOT: Final = FOLDER.parents[1]
REQUIREMENTS: Final = ROOT / "requirements" / "peers.txt"
MANIFEST: Final = FOLDER / "package.json"
_TIMEOUT: Final = 300
"""Seconds that an install may take."""


class NotInstalledError(Exception):
    """A peer cannot be had here; the text says why."""


def command(peer: Peer) -> tuple[list[str], dict[str, str]]:
    """Command that runs a peer's adapter, and variables for it; NotInstalledError when it cannot be had."""
    if peer.runtime == "own":
        return [sys.executable, "-m", peer.adapter], {}
    if peer.runtime == "python":
        version = f"{sys.version_info.major}.{sys.version_info.minor}"
        return [str(_prepared(f"python-{version}", [REQUIREMENTS], _python) / "bin" / "python"), "-m", peer.adapter], {}
    if peer.runtime == "go":
        source = Path(peer.adapter)
        built = _prepared(f"go-{peer.name}", sorted(source.iterdir()), lambda folder: _go(source, folder))
        return [str(built / "peer")], {}
    version = _run(_program("node"), "--version").strip().removeprefix("v")
    modules = _prepared(f"node-{version}", [MANIFEST], _node)
    return [_program("node"), peer.adapter], {"PEER_MODULES": str(modules)}


def cache() -> Path:
    """Where environments of peers are kept."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "partita" / "peers"


def _prepared(kind: str, wanted: Sequence[Path], install: Callable[[Path], None]) -> Path:
    """The folder with what some files ask for, installed on first use."""
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in wanted)).hexdigest()
    folder = cache() / f"{kind}-{digest[:12]}"
    stamp = folder / ".installed"
    folder.parent.mkdir(parents=True, exist_ok=True)
    with (folder.parent / f"{folder.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not stamp.exists():
            say(f"installing peers: {kind} (about a minute when nothing is cached)")
            shutil.rmtree(folder, ignore_errors=True)
            install(folder)
            stamp.touch()
    return folder


def _python(folder: Path) -> None:
    venv.create(folder, with_pip=True, symlinks=True)
    pip = (str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check")
    _run(*pip, "--requirement", str(REQUIREMENTS))


def _node(folder: Path) -> None:
    folder.mkdir()
    shutil.copy(MANIFEST, folder)
    _run(_program("npm"), "install", "--no-package-lock", "--no-audit", "--no-fund", "--silent", cwd=folder)


def _go(source: Path, folder: Path) -> None:
    version = re.search(rf"{source.name} v(\S+)", (source / "go.mod").read_text("utf-8"))
    flags = f"-s -w -X main.Version={version[1] if version else 'unknown'}"
    folder.mkdir()
    _run(
        _program("go"),
        "build",
        "-trimpath",
        "-buildvcs=false",
        f"-ldflags={flags}",
        "-o",
        str(folder / "peer"),
        cwd=source,
    )


def _program(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        raise NotInstalledError(f"there is no {name} here")
    return found


def _run(*arguments: str, cwd: Path | None = None) -> str:
    """Run a program; NotInstalledError with the end of what it said."""
    try:
        done = subprocess.run(
            arguments, cwd=cwd, check=True, capture_output=True, text=True, timeout=_TIMEOUT, stdin=subprocess.DEVNULL
        )
    except subprocess.CalledProcessError as error:
        raise NotInstalledError(f"{arguments[0]}: {' '.join((error.stderr or error.stdout).split())[-300:]}") from error
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NotInstalledError(f"{arguments[0]}: {error}") from error
    return done.stdout
