"""How a task says that it failed, and what is recorded of any exception.

Invariant: every exception of a task becomes exactly one ``{type, message, details}`` whose type a manifest can match,
also one that cannot be turned into text. Types are snake_case: a subclass of TaskError names its own, any other
exception is named after its class. The engine's reserved types cannot be taken by accident. Tracebacks go to the
worker's log, never into the record.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import ClassVar, Final

from partita.domain import error_types
from partita.domain.error_types import OWN
from partita.domain.payload import Json, Payload, encode
from partita.domain.state.rows import ErrorInfo

log = logging.getLogger(__name__)

_LONGEST_NAME: Final = 55
"""Characters of a class's name that are kept, so that a suffix fits behind them."""
_MESSAGE_LIMIT: Final = 4_096
DETAILS_LIMIT: Final = 65_536
"""Bytes of an error's details: they are kept with the node, in the history and, at the end, with the run."""


def _is_ours(kind: type) -> bool:
    """Whether a class belongs to this package, and so may have a reserved type; a subclass elsewhere may not."""
    return kind.__module__.partition(".")[0] == "partita"


class TaskError(Exception):
    """A failure with a type that manifests can match; subclass it and set ``error_type``.

    ``details`` is any JSON value; expressions read it as ``error.details``.
    """

    error_type: ClassVar[str] = "task_error"

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if "error_type" not in cls.__dict__:
            cls.error_type = type_of(cls)
        if not error_types.fits(cls.error_type):
            raise TypeError(
                f"{cls.__name__}: error_type: {cls.error_type!r} is no error type; "
                "expected lower-case letters, digits and underscores, at most 63"
            )
        if cls.error_type in OWN and not _is_ours(cls):
            raise TypeError(f"{cls.__name__}: error_type: {cls.error_type!r} is given by the engine only")

    def __init__(self, message: str = "", *, details: Json = None) -> None:
        super().__init__(message)
        self.message = message
        self.details = details


class Retryable(TaskError):
    """A failure worth another try even where the node's retry policy says nothing.

    ``after`` is the pause before it (seconds or a timedelta). A matching retry tier has priority; without one the
    engine grants a few tries (three by default).
    """

    error_type = "retryable"

    def __init__(self, message: str = "", *, after: float | timedelta | None = None, details: Json = None) -> None:
        super().__init__(message, details=details)
        self.after_ms = _milliseconds(after)


class Fatal(TaskError):
    """A failure that no retry tier takes, unless it names ``fatal``."""

    error_type = "fatal"


class BuiltinError(TaskError):
    """A failure of a built-in task, of any type, also a reserved or a computed one (``http_404``).

    ``after_ms`` asks for no retry; it is the pause before the one that a tier grants.
    """

    error_type = "builtin"

    def __init__(self, kind: str, message: str, *, details: Json = None, after_ms: int | None = None) -> None:
        super().__init__(message, details=details)
        self.kind = kind
        self.after_ms = after_ms


@dataclass(frozen=True, slots=True)
class Failure:
    """What is reported of a failed attempt."""

    error: ErrorInfo
    retryable: bool = False
    retry_after_ms: int | None = None


def failure_of(error: BaseException) -> Failure:
    """The record of an exception that a task raised; never raises itself."""
    try:
        return _described(error)
    except Exception:  # noqa: BLE001  # attributes of a task's own class can be anything
        return Failure(ErrorInfo("task_error", f"{type(error).__name__}: cannot be described"))


def _described(error: BaseException) -> Failure:
    if isinstance(error, BuiltinError):
        return Failure(ErrorInfo(error.kind, _message(error), _details(error.details)), False, error.after_ms)
    if isinstance(error, TaskError):
        # a subclass may have an __init__ that does not call ours
        info = ErrorInfo(_own_type(error), _message(error), _details(getattr(error, "details", None)))
        after = getattr(error, "after_ms", None) if isinstance(error, Retryable) else None
        return Failure(info, isinstance(error, Retryable), after)
    return Failure(ErrorInfo(type_of(type(error)), _message(error)))


def _own_type(error: TaskError) -> str:
    """The type that the error names, unless an instance took one that its class could not."""
    name = error.error_type
    if not isinstance(name, str) or not error_types.fits(name):
        return type_of(type(error))
    return name if name not in OWN or isinstance(error, Fatal) or _is_ours(type(error)) else type_of(type(error))


def type_of(kind: type[BaseException]) -> str:
    """Error type of an exception class: its name in snake_case (``CardDeclined`` → ``card_declined``)."""
    name = error_types.snake_case(kind.__name__)[:_LONGEST_NAME]
    if not error_types.fits(name):
        return "task_error"
    return f"{name}_error" if name in OWN else name


def _message(error: BaseException) -> str:
    return _storable(_text(str, error) or type(error).__name__)


def _text(how: Callable[[object], str], value: object) -> str:
    """``str`` or ``repr`` of anything; empty when its own method fails."""
    try:
        return str.__str__(how(value))  # a plain str, whatever subclass it was
    except BaseException as error:  # noqa: BLE001  # a task's own code: whatever it raises, the failure is reported
        log.warning("%s cannot be turned into text: %s", type(value).__name__, type(error).__name__)
        return ""


def _storable(text: str) -> str:
    return text[:_MESSAGE_LIMIT].replace("\0", "").encode("utf-8", "replace").decode()


def _details(value: Json) -> Payload | None:
    """Details as JSON; what JSON cannot hold is replaced by its text, and what is too large by a note, so that the
    failure itself is never lost."""
    if value is None:
        return None
    try:
        payload = Payload.parse(encode(value, "details"))
    except Exception:  # noqa: BLE001  # InvalidError, or what a task's own object raises while it is looked at
        return Payload.of({"text": _storable(_text(repr, value) or type(value).__name__)})
    if (size := payload.size()) > DETAILS_LIMIT:
        return Payload.of({"note": f"left out: {size:,} bytes; at most {DETAILS_LIMIT:,} are kept"})
    return payload


def _milliseconds(after: float | timedelta | None) -> int | None:
    if after is None:
        return None
    seconds = after.total_seconds() if isinstance(after, timedelta) else float(after)
    if not 0 <= seconds <= 365 * 86_400:
        raise ValueError(f"Retryable: after: {after!r} is out of range; expected 0 seconds to 365 days")
    return round(seconds * 1000)
