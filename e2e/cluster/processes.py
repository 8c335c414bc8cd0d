"""Programs that run on after the call that started them, known by pid.

Invariant: a pid is signalled only while its command line still names the cluster's folder, so that a pid which the
system has given to another program is never touched. Every program is started with its folder in its arguments.
"""

import contextlib
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from e2e.cluster.errors import ClusterError
from e2e.cluster.waiting import log_tail, wait_until

STOP_SECONDS = 10.0
KILL_SECONDS = 10.0

_children: dict[int, subprocess.Popen[bytes]] = {}
"""Programs that this very process started: it must reap them, else they stay as zombies."""


@dataclass(frozen=True, slots=True)
class Running:
    """A program that was started for the cluster whose folder is `home`."""

    name: str
    pid: int
    home: Path

    @property
    def log(self) -> Path:
        """The file with the program's output, of all its starts."""
        return log_path(self.home, self.name)

    def alive(self) -> bool:
        """Return whether the program runs still."""
        child = _children.get(self.pid)
        if child is not None:
            return child.poll() is None
        return str(self.home) in _command_line(self.pid)

    def check(self) -> None:
        """Raise ClusterError with the end of the log unless the program runs."""
        if not self.alive():
            raise ClusterError(f"{self.name} has ended; the end of {self.log}:\n{log_tail(self.log)}")

    def stop(self) -> None:
        """End the program: asked first, killed after ten seconds; returns when it is gone."""
        self._signal(signal.SIGTERM)
        with contextlib.suppress(ClusterError):
            self._wait(STOP_SECONDS)
        self.kill()

    def kill(self) -> None:
        """End the program at once, as a crash would; returns when it is gone."""
        self._signal(signal.SIGKILL)
        self._wait(KILL_SECONDS)
        _children.pop(self.pid, None)

    def _signal(self, number: signal.Signals) -> None:
        if self.alive():
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def _wait(self, seconds: float) -> None:
        wait_until(lambda: not self.alive(), f"{self.name} (pid {self.pid}): ended", seconds=seconds)


def log_path(home: Path, name: str) -> Path:
    """Name the log of a program."""
    return home / "logs" / f"{name}.log"


def start(home: Path, name: str, program: Path, options: Mapping[str, str], arguments: Sequence[str] = ()) -> Running:
    """Start `program --option=value… arguments…` in a session of its own, so that Ctrl-C in a terminal spares it."""
    return start_command(home, name, command_line(program, options, arguments))


def command_line(program: Path, options: Mapping[str, str], arguments: Sequence[str] = ()) -> list[str]:
    """Return `program --option=value… arguments…`."""
    return [str(program), *(f"--{option}={value}" for option, value in options.items()), *arguments]


def start_command(home: Path, name: str, command: Sequence[str], pass_fds: Sequence[int] = ()) -> Running:
    """Start a command, which must name `home`, in a session of its own; `pass_fds` stay open in it."""
    if not any(str(home) in part for part in command):
        raise ClusterError(f"{name}: its arguments must name {home}, by which it is recognised later")
    log = log_path(home, name)
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("ab") as output:
        child = subprocess.Popen(
            command,
            cwd=home,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
            pass_fds=pass_fds,
        )
    _children[child.pid] = child
    return Running(name, child.pid, home)


def _command_line(pid: int) -> str:
    """Return a process's command line; empty for none and for a zombie."""
    if Path("/proc/self/cmdline").exists():
        try:
            return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            return ""
    asked = subprocess.run(["ps", "-o", "command=", "-p", str(pid)], capture_output=True, text=True, check=False)
    return asked.stdout
