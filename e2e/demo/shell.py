"""Runs commands in front of the person: each is printed as one could type it, then run exactly so."""

import os
import shlex
import subprocess
import sys
import threading
from collections.abc import Mapping
from pathlib import Path

from e2e.cluster.errors import ClusterError

ROOT = Path(__file__).resolve().parents[2]
COMMAND_SECONDS = 120.0
STOP_SECONDS = 20.0


def say(text: str = "") -> None:
    """Print a line at once, in order with what commands print."""
    print(text, flush=True)


def heading(text: str) -> None:
    """Print the title of a step."""
    say(f"\n\033[1m── {text}\033[0m" if sys.stdout.isatty() else f"\n── {text}")


def explain(text: str) -> None:
    """Print what a newcomer has to know about the next command."""
    say(f"\033[2m# {text}\033[0m" if sys.stdout.isatty() else f"# {text}")


class Shell:
    """A terminal with the demo's own PATH and KUBECONFIG."""

    def __init__(self, environment: Mapping[str, str], kubectl: Path | None) -> None:
        self._environment = {**os.environ, **environment}
        folders = [Path(sys.executable).parent, *([kubectl.parent] if kubectl is not None else [])]
        self._environment["PATH"] = os.pathsep.join([*map(str, folders), self._environment.get("PATH", "")])
        self._environment["PYTHONUNBUFFERED"] = "1"

    def run(self, command: str, *, seconds: float = COMMAND_SECONDS) -> None:
        """Print and run a command; raises ClusterError when it fails."""
        say(f"$ {command}")
        try:
            code = subprocess.run(
                shlex.split(command),
                env=self._environment,
                cwd=ROOT,
                stdin=subprocess.DEVNULL,
                timeout=seconds,
                check=False,
            ).returncode
        except subprocess.TimeoutExpired as error:
            raise ClusterError(f"{command}: no end after {seconds:g} s") from error
        if code != 0:
            raise ClusterError(f"{command}: exit code {code}")

    def output(self, command: str, *, seconds: float = COMMAND_SECONDS) -> str:
        """Run a command that the person need not see; its output, or an empty text when it fails."""
        done = subprocess.run(
            shlex.split(command),
            env=self._environment,
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=seconds,
            check=False,
        )
        return done.stdout.strip() if done.returncode == 0 else ""

    def background(self, command: str, log: Path) -> "Background":
        """Print and start a long-running command whose output goes to a log."""
        say(f"$ {command} &")
        with log.open("wb") as file:
            process = subprocess.Popen(
                shlex.split(command),
                env=self._environment,
                cwd=ROOT,
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        say(f"  pid {process.pid}, log {log}")
        return Background(command, process, log)

    def streaming(self, command: str) -> "Streaming":
        """Print and start a command that goes on telling, such as a watch."""
        say(f"$ {command}")
        return Streaming(
            subprocess.Popen(
                shlex.split(command),
                env=self._environment,
                cwd=ROOT,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                text=True,
            )
        )


class Background:
    """A process that runs beside the story."""

    def __init__(self, command: str, process: "subprocess.Popen[bytes]", log: Path) -> None:
        self.command = command
        self.pid = process.pid
        self._process = process
        self._log = log

    def check(self) -> None:
        """Raise ClusterError with the end of its log when it has ended."""
        if self._process.poll() is not None:
            tail = "\n    ".join(self._log.read_text(errors="replace").splitlines()[-15:])
            raise ClusterError(f"{self.command}: ended with code {self._process.returncode}; its log ends:\n    {tail}")

    def stop(self) -> None:
        """Ask it to end in good order, and end it when it does not."""
        if self._process.poll() is not None:
            return
        self._process.terminate()
        try:
            self._process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait(STOP_SECONDS)


class Streaming:
    """A command whose lines are printed as they come; ``wait_for`` waits for one of them."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process
        self._lines: list[str] = []
        self._changed = threading.Condition()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def wait_for(self, *words: str, seconds: float) -> None:
        """Wait until a line holds all the words; raises ClusterError when none does in time."""

        def seen() -> bool:
            return any(all(word in line for word in words) for line in self._lines)

        with self._changed:
            if not self._changed.wait_for(seen, seconds):
                raise ClusterError(f"no line with {' '.join(words)} after {seconds:g} s")

    def stop(self) -> None:
        """End the command."""
        self._process.terminate()
        self._process.wait(STOP_SECONDS)
        self._reader.join(STOP_SECONDS)

    def _read(self) -> None:
        for line in self._process.stdout or ():
            say(f"  {line.rstrip()}")
            with self._changed:
                self._lines.append(line)
                self._changed.notify_all()
