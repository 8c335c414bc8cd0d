"""Bounded waiting: every wait has a deadline and says what it waited for."""

import time
from collections.abc import Callable
from pathlib import Path

from e2e.cluster.errors import ClusterError

LOG_TAIL_LINES = 15


def wait_until(
    ready: Callable[[], bool], what: str, *, seconds: float, every: float = 0.05, log: Path | None = None
) -> None:
    """Poll `ready` until it is true; ClusterError naming `what`, with the end of `log`, after `seconds`.

    `ready` itself must return promptly: the deadline is looked at between two calls.
    """
    deadline = time.monotonic() + seconds
    while not ready():
        if time.monotonic() > deadline:
            explanation = "" if log is None else f"; the end of {log}:\n{log_tail(log)}"
            raise ClusterError(f"{what}: not so after {seconds:g} s{explanation}")
        time.sleep(every)


def log_tail(log: Path, lines: int = LOG_TAIL_LINES) -> str:
    """Return the last lines of a log, each indented; a word about it when there is none."""
    try:
        text = log.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return f"    ({log} could not be read)"
    return "\n".join(f"    {line}" for line in text.splitlines()[-lines:]) or f"    ({log} is empty)"
