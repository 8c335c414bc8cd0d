"""Exit codes, and how each error becomes one line and one code.

Invariant: this is the only place that maps errors to exit codes; ``partita --help`` and docs/cli.md print the same
table. A traceback reaches a person only for a defect of Partita itself.
"""

from __future__ import annotations

from enum import IntEnum

from partita.cli.streams import OutputError
from partita.domain.errors import (
    ConflictError,
    ForbiddenError,
    InvalidError,
    NotFoundError,
    OutdatedError,
    PartitaError,
    TimedOutError,
    TooEarlyError,
    UnavailableError,
)


class Exit(IntEnum):
    """What the exit status of a command says."""

    OK = 0
    RUN_FAILED = 1
    USAGE = 2
    NOT_FOUND = 3
    CONFLICT = 4
    UNAVAILABLE = 5
    TIMEOUT = 6
    FORBIDDEN = 7
    DEFECT = 70
    OUTPUT = 74
    INTERRUPTED = 130


MEANING = {
    Exit.OK: "ok",
    Exit.RUN_FAILED: "the run failed or was cancelled",
    Exit.USAGE: "bad usage or bad input",
    Exit.NOT_FOUND: "not found",
    Exit.CONFLICT: "conflicts with what is recorded",
    Exit.UNAVAILABLE: "the database or cluster cannot be reached",
    Exit.TIMEOUT: "a bounded wait ended",
    Exit.FORBIDDEN: "the credentials may not do this",
    Exit.DEFECT: "a defect of Partita",
    Exit.OUTPUT: "the output cannot be written",
    Exit.INTERRUPTED: "interrupted by Ctrl-C",
}

_BY_CLASS: tuple[tuple[type[PartitaError], Exit], ...] = (
    (InvalidError, Exit.USAGE),
    (NotFoundError, Exit.NOT_FOUND),
    (ConflictError, Exit.CONFLICT),
    (OutdatedError, Exit.CONFLICT),
    (ForbiddenError, Exit.FORBIDDEN),
    (TimedOutError, Exit.TIMEOUT),
    (TooEarlyError, Exit.UNAVAILABLE),
    (UnavailableError, Exit.UNAVAILABLE),
    (OutputError, Exit.OUTPUT),
)


def exit_code(error: PartitaError) -> Exit:
    """The exit code of an error; one that is in no class of its own is nothing that a person did."""
    for kind, code in _BY_CLASS:
        if isinstance(error, kind):
            return code
    return Exit.DEFECT


def partita_error(error: BaseException) -> PartitaError | None:
    """The error behind an exception, also inside the groups of tasks that ended together; None for a defect."""
    if isinstance(error, PartitaError):
        return error
    if not isinstance(error, BaseExceptionGroup):
        return None
    found = [partita_error(each) for each in error.exceptions]
    return found[0] if None not in found else None


def epilog() -> str:
    """The table of exit codes as one line of help."""
    return "Exit codes: " + " · ".join(f"{code.value} {text}" for code, text in MEANING.items())
