"""The namespaces of a node, and the process that holds them.

`unshare` makes them and waits for the holder, which is process 1 inside. Invariant: whatever runs in the node is a
descendant of the holder, for the kernel at least, which kills all of them when the holder is killed.
"""

import os
import signal
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from e2e.cluster import processes
from e2e.cluster.contract import run
from e2e.cluster.errors import ClusterError
from e2e.cluster.processes import Running
from e2e.cluster.waiting import log_tail, wait_until

NAME = "holder"
READY_SECONDS = 20.0
END_SECONDS = 30.0
COMMAND_SECONDS = 60.0
INIT = Path(__file__).with_name("init.py")
NAMESPACES = ("--pid", "--fork", "--kill-child=KILL", "--mount-proc", "--mount", "--net", "--uts", "--ipc")


@dataclass(frozen=True, slots=True)
class Holder:
    """The holder of the node whose folder is `home`; `program` is its `unshare`."""

    program: Running

    @classmethod
    def start(cls, home: Path) -> Self:
        """Make the namespaces; they are usable after `wait`."""
        _ready_file(home).unlink(missing_ok=True)
        command = ["unshare", *NAMESPACES, "--", sys.executable, "-I", str(INIT), str(home), str(_ready_file(home))]
        return cls(processes.start_command(home, NAME, command))

    def wait(self) -> None:
        """Return when mounts and network are set up inside."""
        ready = _ready_file(self.program.home)

        def check() -> bool:
            self.program.check()
            return ready.exists()

        wait_until(check, "the node's namespaces: set up", seconds=READY_SECONDS, log=self.program.log)

    @property
    def init_pid(self) -> int:
        """The pid outside of process 1 inside."""
        child = child_of(self.program.pid) if self.program.alive() else None
        if child is None:
            raise ClusterError(f"the node's holder has ended; the end of its log:\n{log_tail(self.program.log)}")
        return child

    def enter(self, *command: str) -> list[str]:
        """Return the command that runs another inside all namespaces."""
        return [
            "nsenter",
            "--target",
            str(self.init_pid),
            "--mount",
            "--net",
            "--pid",
            "--uts",
            "--ipc",
            "--",
            *command,
        ]

    def enter_network(self, *command: str) -> list[str]:
        """Return the command that runs another in the network of the node, but with the files and processes outside."""
        return ["nsenter", "--target", str(self.init_pid), "--net", "--", *command]

    def run(self, *command: str, seconds: float = COMMAND_SECONDS, stdin: str = "") -> str:
        """Run a command inside and return what it prints; raises ClusterError with its message when it fails."""
        return run(self.enter(*command), seconds=seconds, stdin=stdin, shown=" ".join(command))

    def kill(self) -> None:
        """End everything inside; returns when the last process is gone."""
        if self.program.alive() and (child := child_of(self.program.pid)) is not None:
            os.kill(child, signal.SIGKILL)
            wait_until(lambda: not Path(f"/proc/{child}").exists(), "the node's processes: ended", seconds=END_SECONDS)
        self.program.kill()


def child_of(pid: int) -> int | None:
    """Return the first child of a process, or None when it has none."""
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()
    except OSError:
        return None
    return int(children[0]) if children else None


def _ready_file(home: Path) -> Path:
    return home / "holder.ready"
