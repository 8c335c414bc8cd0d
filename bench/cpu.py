"""Processor time and memory of processes and of PostgreSQL, which say more than seconds on a busy machine.

Invariant: times grow; a difference of two readings is what was used between them, children that have ended included.
Trade-off: it is read from /proc, so that elsewhere, and for a server that is not on this machine, there is no figure.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_TICK: Final = os.sysconf("SC_CLK_TCK")
_PROC: Final = Path("/proc")


@dataclass(frozen=True, slots=True)
class Cpu:
    """Seconds used so far."""

    python: float
    postgres: float
    """0 when the server's processes cannot be seen."""

    def __sub__(self, other: Cpu) -> Cpu:
        return Cpu(self.python - other.python, self.postgres - other.postgres)


def used(postmaster: int | None, workers: Iterable[int] = ()) -> Cpu:
    """Time of this process and the workers, and of the server with this process id."""
    return Cpu(time.process_time() + sum(map(_own, workers)), 0.0 if postmaster is None else _family(postmaster))


def memory(pid: int) -> tuple[float, float]:
    """MiB that a process holds, and held at most; zeros when it cannot be seen."""
    try:
        lines = (_PROC / str(pid) / "status").read_text().splitlines()
    except OSError:
        return 0.0, 0.0
    sizes = {
        name: int(rest.split()[0]) / 1024 for name, _, rest in (line.partition(":") for line in lines) if "kB" in rest
    }
    return sizes.get("VmRSS", 0.0), sizes.get("VmHWM", 0.0)


def seconds(pid: int) -> float:
    """Processor time and memory of one process."""
    return _own(pid)


def _own(pid: int) -> float:
    fields = _fields(pid)
    return sum(map(int, fields[11:13])) / _TICK if fields else 0.0


def _family(parent: int) -> float:
    """A process, its living children, and those that it has waited for."""
    fields = _fields(parent)
    total = sum(map(int, fields[11:15])) / _TICK if fields else 0.0
    return total + sum(map(_own, _children(parent)))


def _children(parent: int) -> list[int]:
    pids = [int(entry.name) for entry in _PROC.iterdir() if entry.name.isdigit()] if _PROC.exists() else []
    return [pid for pid in pids if (fields := _fields(pid)) and int(fields[1]) == parent]


def _fields(pid: int) -> list[str]:
    """Fields of /proc/PID/stat after the name: state, parent, …; empty when there is no such process."""
    try:
        return (_PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []
