"""The standard streams of this process, whatever the shell made of them.

Invariant: a stream that is closed, full, of a narrow encoding or no longer read never looks like a defect, nor like a
failed run. A closed one is opened as the null device, so that no connection takes its number.
"""

from __future__ import annotations

import errno
import io
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from partita.domain.errors import PartitaError

T = TypeVar("T")


class OutputError(PartitaError):
    """Standard output takes nothing more."""

    reason = "Output"

    def __init__(self, error: OSError) -> None:
        super().__init__(f"standard output: cannot be written: {error.strerror or error}")
        self.has_reader = error.errno != errno.EPIPE
        """False where whoever read the output has seen enough of it, such as ``head``."""


def open_closed() -> None:
    """Open the standard streams that were closed, in the order of their numbers."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open(mode, encoding="utf-8"))  # noqa: SIM115  # open as long as the process


@contextmanager
def guarded() -> Iterator[None]:
    """Raise OutputError for what standard output does not take; what was printed in the block is out at its end.

    Characters that an encoding does not have become question marks.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    original = sys.stdout
    output: Any = _Output(original)
    sys.stdout = output
    try:
        yield
    finally:
        sys.stdout = original
        if output.refused is not None:  # once more, since libraries swallow errors of their own probing
            raise output.refused
        output.flush()


class _Output:
    """Standard output with errors of our own: the libraries in between make exit codes of the system's."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self.refused: OutputError | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: Any) -> Any:
        """Write, or raise OutputError."""
        return self._tried(lambda: self._stream.write(text))

    def flush(self) -> None:
        """Flush, or raise OutputError."""
        self._tried(self._stream.flush)

    def _tried(self, work: Callable[[], T]) -> T:
        try:
            return work()
        except OSError as error:
            self.refused = OutputError(error)
            _abandon(self._stream)
            raise self.refused from error


def _abandon(stream: Any) -> None:
    """Drop what could not be written, or the interpreter would try again at its end."""
    with Path(os.devnull).open("w", encoding="utf-8") as nothing:
        os.dup2(nothing.fileno(), stream.fileno())
