"""The error tree that people and programs see.

Every error names the object, the field, what is wrong, what would be right and the next command to try. The store
translates SQLSTATEs into this tree at one boundary; the CLI maps the classes to exit codes, and nothing else does.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from partita.domain.places import LONGEST, LONGEST_NAME, shortened

LONGEST_MESSAGE: Final = 2_048
"""Characters of a message; what somebody sent is never repeated to them by the megabyte."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong with an input: where it stands and how it would be right."""

    path: str
    """Place of the value, such as ``spec.nodes[2].wait.duration``; empty for the whole object."""
    message: str
    """What is wrong and what would be right, in one sentence."""
    lint: bool = False
    """A definition with it can be executed as it stands: it keeps a new version out, and no stored one from running."""

    def __post_init__(self) -> None:
        """Keep both short, whatever they repeat."""
        if len(self.path) > LONGEST + LONGEST_NAME:
            object.__setattr__(self, "path", shortened(self.path, LONGEST + LONGEST_NAME))
        if len(self.message) > LONGEST_MESSAGE:
            object.__setattr__(self, "message", shortened(self.message, LONGEST_MESSAGE))

    def __str__(self) -> str:
        return f"{self.path}: {self.message}" if self.path else self.message


class PartitaError(Exception):
    """Base of every error that Partita raises on purpose.

    ``hint`` is the next command or action to try; it is shown after the message.
    """

    reason = "Error"
    """CamelCase word used as a condition's reason and as the ``type`` of a problem document."""

    def __init__(self, message: str, *, hint: str = "") -> None:
        if not isinstance(self, InvalidError):  # its problems are short already, and all of them are shown
            message = shortened(message, LONGEST_MESSAGE)
        super().__init__(message)
        self.message = message
        self.hint = shortened(hint, LONGEST)

    def __str__(self) -> str:
        return f"{self.message}; try: {self.hint}" if self.hint else self.message


class InvalidError(PartitaError):
    """An input breaks the rules; ``problems`` lists every violation found."""

    reason = "Invalid"

    def __init__(self, subject: str, problems: tuple[Problem, ...], *, hint: str = "") -> None:
        super().__init__(
            f"{shortened(subject, LONGEST)}: " + "; ".join(str(problem) for problem in problems), hint=hint
        )
        self.subject = shortened(subject, LONGEST)
        self.problems = problems


class InvalidInputError(InvalidError):
    """A run's input breaks its definition's ``inputSchema`` or a limit."""

    reason = "InvalidInput"


class NotFoundError(PartitaError):
    """The named object does not exist (or its month was dropped)."""

    reason = "NotFound"


class DefinitionNotFoundError(NotFoundError):
    """No definition of that name (and version) is deployed; a CR's run waits for it."""

    reason = "DefinitionNotFound"


class ConflictError(PartitaError):
    """The request contradicts the recorded state, and sending it again will not help."""

    reason = "Conflict"


class IdempotencyKeyInUseError(ConflictError):
    """Another run holds this idempotency key, or the same key came with another input."""

    reason = "IdempotencyKeyInUse"


class ExpiredError(ConflictError):
    """The run id lies below the retention floor, so the run is never started."""

    reason = "Expired"


class TooEarlyError(PartitaError):
    """The run id lies further ahead than the partitions; try again later."""

    reason = "TooEarly"


class UnavailableError(PartitaError):
    """The database or the Kubernetes API cannot be reached now; trying again may help."""

    reason = "Unavailable"


class OverloadedError(UnavailableError):
    """A bounded queue inside this process is full; back off and try again."""

    reason = "Overloaded"


class ForbiddenError(PartitaError):
    """The credentials may not do this in the Kubernetes API."""

    reason = "Forbidden"


class TimedOutError(PartitaError):
    """A bounded wait ended before its condition came true."""

    reason = "TimedOut"


class OutdatedError(PartitaError):
    """The schema demands a newer engine protocol than this program speaks: only another version of it helps."""

    reason = "Outdated"


class EngineError(PartitaError):
    """An event could not be decided or stored although its neighbours could (a poisoned event)."""

    reason = "EngineError"
