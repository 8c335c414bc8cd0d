"""Progress of something long, as lines that also read well in the log of a CI run."""

import sys
import time
from collections.abc import Callable

Say = Callable[[str], None]
"""Takes one line for the person who waits."""


def to_stderr(line: str) -> None:
    """Print a line at once, apart from what a program's standard output means."""
    print(f"  {line}", file=sys.stderr, flush=True)


def quietly(_line: str) -> None:
    """Say nothing."""


class Stopwatch:
    """Elapsed time since it was made, as people write it."""

    def __init__(self) -> None:
        self._begin = time.monotonic()

    def __str__(self) -> str:
        minutes, seconds = divmod(round(self.seconds), 60)
        return f"{minutes}:{seconds:02}"

    @property
    def seconds(self) -> float:
        """Seconds since the stopwatch was made."""
        return time.monotonic() - self._begin
