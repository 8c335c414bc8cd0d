"""The packages that a Dockerfile installs, downloaded beforehand.

Purpose: steps run without a network, and pip's settings and credentials of this machine never enter a root. Invariant:
exactly the pinned files, checked by their hashes here and again inside.
"""

import shutil
import subprocess
import sys
from pathlib import Path

from e2e.cluster.progress import Say, Stopwatch
from e2e.images.cache import Cache, key
from e2e.images.errors import ImageError

FILES = ("runtime.txt", "build.txt")
SECONDS = 900


def wheelhouse(requirements: Path, cache: Cache, say: Say) -> Path:
    """Return a folder with a wheel for every line of the requirement files."""
    contents = [(name, (requirements / name).read_bytes()) for name in FILES]
    return cache.ensure(
        "wheels", key(contents, sys.version_info[:2]), lambda folder: _download(requirements, folder, say)
    )


def _download(requirements: Path, folder: Path, say: Say) -> None:
    watch = Stopwatch()
    say("downloading the pinned packages of the image")
    for name in FILES:
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
        command += ["--require-hashes", "--only-binary", ":all:", "--dest", str(folder), "-r", str(requirements / name)]
        done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=SECONDS)
        if done.returncode:
            shutil.rmtree(folder, ignore_errors=True)
            raise ImageError(f"pip download -r {name} failed; its output ends:\n{done.stderr[-2000:]}")
    say(f"{len(list(folder.iterdir()))} packages are there after {watch}")
