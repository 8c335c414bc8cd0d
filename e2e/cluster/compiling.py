"""One `go build` of several programs, with what it is doing.

All programs are built by one command: packages that they share compile once, and linking one overlaps compiling others.
"""

import os
import subprocess
import threading
from collections import deque
from collections.abc import Mapping
from pathlib import Path
from typing import IO

from e2e.cluster.bundles import Bundle
from e2e.cluster.errors import BuildError
from e2e.cluster.progress import Say, Stopwatch

REPORT_SECONDS = 10.0
LIMIT_SECONDS = 40 * 60
KEPT_LINES = 30


def compile_packages(bundle: Bundle, folder: Path, say: Say) -> None:
    """Compile a bundle's programs into `folder`; raises BuildError."""
    packages = bundle.packages
    say(f"building the {bundle.title} {bundle.version()} from source (once; some minutes): {', '.join(packages)}")
    watch = Stopwatch()
    environment = os.environ | {"CGO_ENABLED": "0", "GOWORK": "off", "GOFLAGS": "", "GOTOOLCHAIN": "local"}
    process = subprocess.Popen(
        ["go", "build", "-v", "-mod=readonly", *bundle.flags(), "-o", f"{folder}{os.sep}", *packages.values()],
        cwd=bundle.module,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    with process:
        try:
            output = _follow(process, folder, packages, watch, say)
        except BaseException:
            process.kill()
            raise
    if process.returncode != 0:
        raise BuildError("go build failed; its last lines:\n" + "\n".join(f"    {line}" for line in output))
    _rename(folder, packages)
    say(f"built {', '.join(packages)} in {watch}")


def _follow(
    process: subprocess.Popen[str], folder: Path, packages: Mapping[str, str], watch: Stopwatch, say: Say
) -> list[str]:
    """Report at intervals until the build ends; returns the last lines that it wrote."""
    assert process.stderr is not None
    last: deque[str] = deque(maxlen=KEPT_LINES)
    counts = {"downloaded": 0, "compiled": 0}
    reader = threading.Thread(target=_read, args=(process.stderr, last, counts), daemon=True)
    reader.start()
    while reader.is_alive():
        reader.join(REPORT_SECONDS)
        if watch.seconds > LIMIT_SECONDS:
            raise BuildError(f"go build: not done after {watch}")
        if reader.is_alive():
            done = [name for name, package in packages.items() if (folder / _output(package)).exists()]
            say(
                f"{watch}  {counts['downloaded']} modules fetched, {counts['compiled']} packages compiled"
                + (f", done: {', '.join(done)}" if done else "")
            )
    return list(last)


def _read(stream: IO[str], last: deque[str], counts: dict[str, int]) -> None:
    for line in stream:
        last.append(line.rstrip())
        counts["downloaded" if line.startswith("go: downloading") else "compiled"] += 1


def _rename(folder: Path, packages: Mapping[str, str]) -> None:
    for name, package in packages.items():
        (folder / _output(package)).rename(folder / name)


def _output(package: str) -> str:
    """Return the file that `go build` makes of a package: its last element that is no major version."""
    *rest, last = package.split("/")
    return rest[-1] if last[:1] == "v" and last[1:].isdigit() else last
