#!/usr/bin/env python3
"""Makes the virtual environment that everything in the Makefile runs in; quick when there is nothing to do.

usage: make_venv.py FOLDER REQUIREMENTS

Installs exactly the pinned packages (by hash) and then the project itself, editable. Invariant: a stamp in the folder,
one for each requirements file, equals the digest of all that was installed from; it is written last, so that an
interrupted install is done again. Needs nothing but the standard library of the Python that the environment is to have.
"""

import fcntl
import hashlib
import json
import subprocess
import sys
import time
import tomllib
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LOCK = ROOT / ".state" / "set-up.lock"


def main(folder: Path, requirements: Path) -> int:
    """Bring the environment up to date; returns the exit code of what failed, else 0."""
    wanted, stamp = digest(requirements), folder / f".installed-{requirements.stem}"
    LOCK.parent.mkdir(exist_ok=True)
    with LOCK.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if runs(folder) and stamp.exists() and stamp.read_text(encoding="utf-8") == wanted:
            return 0
        try:
            install(folder, requirements)
        except subprocess.CalledProcessError as error:
            print(f"set-up: pip failed with exit code {error.returncode}; its output is above", file=sys.stderr)
            return 1
        stamp.write_text(wanted, encoding="utf-8")
    return 0


def digest(requirements: Path) -> str:
    """Digest all that decides what is installed, where the project lies included, but no setting of a tool."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    installed = [project["project"], project["build-system"], project["tool"]["hatch"], str(ROOT)]
    hashed = hashlib.sha256(json.dumps(installed, sort_keys=True).encode())
    hashed.update(requirements.read_bytes())
    return hashed.hexdigest()


def runs(folder: Path) -> bool:
    """Return whether the environment's Python is there and not a dangling link."""
    return (folder / "bin" / "python").exists()


def install(folder: Path, requirements: Path) -> None:
    """Make the environment where it is missing and install into it."""
    begin = time.monotonic()
    if not runs(folder):
        version = ".".join(map(str, sys.version_info[:3]))
        say(f"making the virtual environment {folder} with Python {version}")
        venv.create(folder, with_pip=True, clear=True, symlinks=True)
    count = sum(1 for line in requirements.read_text(encoding="utf-8").splitlines() if line[:1].isalnum())
    say(f"installing {count} pinned packages of {requirements.name} (about a minute when nothing is cached)")
    pip(folder, "--require-hashes", "--requirement", str(requirements))
    say("installing partita itself, editable")
    pip(folder, "--no-deps", "--no-build-isolation", "--editable", str(ROOT))
    say(f"the virtual environment is ready after {time.monotonic() - begin:.0f} s")


def pip(folder: Path, *arguments: str) -> None:
    """Run `pip install` of the environment, quietly; CalledProcessError when it fails."""
    command = [str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*command, *arguments], check=True, stdin=subprocess.DEVNULL, cwd=ROOT)


def say(line: str) -> None:
    """Print a line at once."""
    print(f"  {line}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]).absolute(), Path(sys.argv[2])))
