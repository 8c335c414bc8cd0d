"""Runs an image's program as the first process of a root that cannot be written to, without a container runtime.

Purpose: what a pod's security context asks for (user, read-only root, writable folders by name), seen in seconds.
Invariant: mounts and processes live in namespaces that end with the program. Trade-off: it shares the machine's network
and has no limits; a real node shows the rest.
"""

import contextlib
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from e2e.images.build import Image
from e2e.images.errors import ImageError

_ISOLATED = ("unshare", "--mount", "--pid", "--ipc", "--fork", "--kill-child", "--propagation", "private")
_START = """set -e
mount -t overlay overlay -o "lowerdir=$LOWERS" "$ROOT"
mount -t proc proc "$ROOT/proc"
mount -t tmpfs -o mode=1777 tmpfs "$ROOT/tmp"
mount -t tmpfs tmpfs "$ROOT/dev"
for name in null zero random urandom; do touch "$ROOT/dev/$name"; mount --bind "/dev/$name" "$ROOT/dev/$name"; done
mkdir -m 1777 "$ROOT/dev/shm"
mount -t tmpfs -o mode=1777 tmpfs "$ROOT/dev/shm"
for pair in $BINDS; do mount --bind "${pair%%:*}" "$ROOT${pair#*:}"; done
exec env -i "$@"
"""
_POLL = 0.05


@dataclass(frozen=True, slots=True)
class Running:
    """A program of an image: the process around it, and the file that takes its output."""

    process: subprocess.Popen[bytes]
    log: Path

    @property
    def output(self) -> str:
        """What it has printed so far."""
        return self.log.read_text("utf-8", errors="replace")

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the program, which is the first process of its namespace."""
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text("utf-8").split()
        os.kill(int(children[0]), number)

    def wait(self, seconds: float) -> int:
        """Return the exit code; ImageError when it has not ended in time."""
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired as error:
            raise ImageError(f"still runs after {seconds} s; its output ends:\n{self.output[-2000:]}") from error

    def wait_for(self, text: str, seconds: float, *, times: int = 1) -> None:
        """Wait until it has printed a text so many times; ImageError when it ends before, or takes too long."""
        deadline = time.monotonic() + seconds
        while self.output.count(text) < times:
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise ImageError(
                    f"never printed {text!r}; exit code {self.process.poll()}; output:\n{self.output[-3000:]}"
                )
            time.sleep(_POLL)


@contextlib.contextmanager
def running(
    image: Image,
    arguments: Sequence[str],
    *,
    variables: Mapping[str, str] | None = None,
    writable: Mapping[str, Path] | None = None,
    user: str | None = None,
) -> Iterator[Running]:
    """Start the entry point with `arguments` as the image's user (or `user`), and kill what is left at the end.

    `writable` binds folders of this machine over folders of the image.
    """
    with tempfile.TemporaryDirectory(prefix="partita-run-") as folder:
        root, empty, log = Path(folder) / "root", Path(folder) / "empty", Path(folder) / "log"
        root.mkdir()
        empty.mkdir()
        lowers = ":".join(str(lower) for lower in (*reversed(image.state.lowers), empty))
        binds = " ".join(f"{path}:{place}" for place, path in (writable or {}).items())
        settings = {"LOWERS": lowers, "ROOT": str(root), "BINDS": binds, "PATH": "/usr/sbin:/usr/bin:/sbin:/bin"}
        with log.open("wb") as file:
            process = subprocess.Popen(
                [*_ISOLATED, "/bin/sh", "-c", _START, "sh", *_program(image, root, arguments, variables or {}, user)],
                stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.STDOUT, env=settings,
            )  # fmt: skip
            try:
                yield Running(process, log)
            finally:
                process.kill()
                process.wait(30)


def _program(
    image: Image, root: Path, arguments: Sequence[str], variables: Mapping[str, str], user: str | None
) -> list[str]:
    environment = [f"{name}={value}" for name, value in {**image.state.environment, **variables}.items()]
    account = user or image.state.user or "0:0"
    command = [*image.state.entrypoint, *(arguments or image.state.command)]
    return [*environment, "/usr/sbin/chroot", f"--userspec={account}", "--groups=", str(root), *command]
