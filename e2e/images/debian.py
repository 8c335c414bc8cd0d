"""What stands for the public base images: a small Debian with Python, unpacked by debootstrap.

Purpose: `FROM python:3.11-slim-bookworm` where no registry is reachable. Invariant: it offers what the Dockerfiles use
of that image: `python` with pip and venv, certificates, the C.UTF-8 locale. Trade-off: Debian's build of the same minor
version of Python, at /usr instead of /usr/local.
"""

import subprocess
from pathlib import Path

from e2e.cluster.progress import Say, Stopwatch
from e2e.images.cache import Cache, key
from e2e.images.errors import ImageError

SUITE = "bookworm"
PACKAGES = ("busybox-static", "ca-certificates", "python3", "python3-venv")
STANDS_FOR = ("python:3.11-slim-bookworm",)
TOOLS = "/usr/local"
"""Where the public image has its `python` and pip; here a virtual environment."""
SECONDS = 900
UNUSED = (
    "usr/share/doc-base",
    "usr/share/info",
    "usr/share/locale",
    "usr/share/man",
    "var/cache/apt",
    "var/lib/apt/lists",
)


def base(image: str, cache: Cache, say: Say) -> Path:
    """Return the root that stands for a public image; ImageError for an image that nothing stands for."""
    if image not in STANDS_FOR:
        raise ImageError(f"FROM {image}: nothing stands for it here; expected one of {', '.join(STANDS_FOR)}")
    return cache.ensure("bases", key(SUITE, PACKAGES, UNUSED, TOOLS), lambda folder: _make(folder, say))


def _make(folder: Path, say: Say) -> None:
    watch = Stopwatch()
    say(f"unpacking Debian {SUITE} with Python (one to three minutes, once)")
    _run(["debootstrap", "--variant=minbase", f"--include={','.join(PACKAGES)}", SUITE, str(folder)])
    _run(["chroot", str(folder), "/usr/bin/python3", "-m", "venv", TOOLS])
    _run(["rm", "-rf", *(str(folder / name) for name in UNUSED)])
    say(f"Debian is unpacked after {watch}")


def _run(command: list[str]) -> None:
    done = subprocess.run(
        command, check=False, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        errors="replace", timeout=SECONDS,
    )  # fmt: skip
    if done.returncode:
        raise ImageError(
            f"{command[0]} ended with exit code {done.returncode}; its output ends:\n{done.stdout[-2000:]}"
        )
