"""The one boundary where PostgreSQL's errors become ours.

Purpose: SQLSTATE → what to do with the batch (``Verdict``) and what people are told (``domain.errors``).
Invariant: every exception that asyncpg or the socket raises has exactly one meaning here. Trade-off: the mapping goes
by class of SQLSTATE, so that a code nobody thought of is still treated like its relatives.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import Enum
from typing import Final

import asyncpg

from partita.domain.errors import (
    ConflictError,
    EngineError,
    InvalidError,
    PartitaError,
    Problem,
    TimedOutError,
    UnavailableError,
)


class SchemaMissingError(UnavailableError):
    """The schema is not there, or older or newer than this program."""

    reason = "SchemaMissing"


class PrivilegeMissingError(UnavailableError):
    """The role may not do this; somebody has to grant it."""

    reason = "PrivilegeMissing"


class PartitionMissingError(UnavailableError):
    """No month partition exists for a run id."""

    reason = "PartitionMissing"


class Verdict(Enum):
    """What a failed transaction means for the events in it."""

    RETRY = "retry"
    """Nothing is wrong with the events: send all of them again, after the connection has recovered."""
    POISON = "poison"
    """One of the events cannot be stored: bisect the batch, answer that one."""
    DEFECT = "defect"
    """The statement or the schema is wrong: the same events will fail again, whole and alone."""


_REACH: Final = 'pg_isready -d "$PARTITA_DATABASE_URL"'
_AUTHORITY: Final = (
    "set PGSSLROOTCERT to the authority that issued it, and name the server in the URL as the certificate does; "
    "openssl s_client -starttls postgres -connect HOST:5432 shows it"
)
_RETRY_CLASSES: Final = ("08", "40", "53", "57", "58", "25", "28", "3D")
_RETRY_CODES: Final = {"55P03", "55006", "42501"}
_DISCONNECT_CLASSES: Final = {"08", "25", "28", "3D"}
_DISCONNECT_CODES: Final = {"57P01", "57P02", "57P03", "57P04", "57P05"}
_POISON_CLASSES: Final = ("22", "23", "54", "P0")
_SCHEMA_CODES: Final = {"3F000", "42P01", "42703", "42883", "42704"}
_CONNECTION: Final = (
    OSError,
    TimeoutError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,
    asyncpg.PostgresConnectionError,
)
"""InterfaceError: asyncpg's word for a connection that is closed or was closed in the middle of an operation.
InternalClientError: its protocol lost its way, such as between the server's FATAL and the end of the socket ("cannot
switch to state"). Nothing that was sent is at fault in either, and the connection cannot be used again."""
_STALE: Final = (asyncpg.InvalidCachedStatementError, asyncpg.OutdatedSchemaCacheError)
"""A migration changed what a prepared statement returns; a new connection prepares it anew."""
DATABASE_ERRORS: Final = (asyncpg.PostgresError, *_CONNECTION)
"""Everything that the driver raises."""


class MovedError(asyncpg.SerializationError):
    """A row that this transaction has read is no longer in its place: to be tried again, as after a serialization
    failure. The locks of the transaction forbid it; should a month ever be swapped under it, nothing is lost."""


def sqlstate(error: BaseException) -> str:
    """SQLSTATE of a server error; empty for others."""
    return str(getattr(error, "sqlstate", None) or "")


def is_store_error(error: BaseException) -> bool:
    """Whether an exception comes from the database or the way to it."""
    return isinstance(error, DATABASE_ERRORS)


def verdict(error: BaseException) -> Verdict:
    """What to do with the events of a transaction that failed with this error."""
    code = sqlstate(error)
    if isinstance(error, _STALE):
        return Verdict.RETRY
    if code[:2] in _POISON_CLASSES:
        return Verdict.POISON
    if code[:2] in _RETRY_CLASSES or code in _RETRY_CODES:
        return Verdict.RETRY
    if code:
        return Verdict.DEFECT
    if isinstance(error, asyncpg.DataError):
        return Verdict.POISON
    return Verdict.RETRY if isinstance(error, _CONNECTION) else Verdict.DEFECT


def is_timeout(error: BaseException) -> bool:
    """Whether the server ended a statement because it took too long (or was asked to end it)."""
    return sqlstate(error) == "57014"


def is_locked(error: BaseException) -> bool:
    """Whether a lock was not to be had within ``lock_timeout``."""
    return sqlstate(error) == "55P03"


def is_disconnect(error: BaseException) -> bool:
    """Whether the connection on which it happened can no longer be used, or should not be (a failed-over standby)."""
    code = sqlstate(error)
    if isinstance(error, _STALE):
        return True
    if isinstance(error, asyncpg.ClientConfigurationError):
        return False
    if code:
        return code[:2] in _DISCONNECT_CLASSES or code in _DISCONNECT_CODES
    return isinstance(error, _CONNECTION) and not isinstance(error, asyncpg.DataError)


def is_refused_login(error: BaseException) -> bool:
    """Whether the server is there and does not know the role or the database: waiting rarely helps."""
    return sqlstate(error)[:2] in {"28", "3D"}


def is_refused_certificate(error: BaseException) -> bool:
    """Whether the server's certificate was refused here: waiting does not help."""
    return isinstance(error, ssl.SSLCertVerificationError)


def translate(error: BaseException) -> PartitaError:
    """The error for people of an exception of asyncpg or the socket; ours are returned as they are."""
    if isinstance(error, PartitaError):
        return error
    code = sqlstate(error) or ("22000" if isinstance(error, asyncpg.DataError) else "")
    message = "; ".join(line.rstrip(".") for line in str(error).splitlines()) or type(error).__name__
    if isinstance(error, asyncpg.ClientConfigurationError):
        return InvalidError("database", (Problem("url", message),))
    if is_refused_certificate(error):
        return UnavailableError(f"database: the server's certificate is refused ({message})", hint=_AUTHORITY)
    for prefixes, make in _MEANINGS:
        if code.startswith(prefixes):
            return make(error, message)
    if verdict(error) is Verdict.RETRY:
        return UnavailableError(f"database: {message}", hint=_REACH)
    return EngineError(f"database: {message}{f' (SQLSTATE {code})' if code else ''}")


def _schema(_: BaseException, message: str) -> PartitaError:
    return SchemaMissingError(f"database: the schema does not fit this program ({message})", hint="partita migrate")


def _privilege(_: BaseException, message: str) -> PartitaError:
    hint = "partita migrate --roles, as the schema's owner; months need the owner's PARTITA_MIGRATIONS_URL"
    return PrivilegeMissingError(f"database: the role lacks a privilege ({message})", hint=hint)


def _cancelled(_: BaseException, message: str) -> PartitaError:
    return TimedOutError(f"database: the statement took too long ({message})")


def _value(_: BaseException, message: str) -> PartitaError:
    return InvalidError("database", (Problem("", f"cannot store the value: {message}"),))


def _raised(_: BaseException, message: str) -> PartitaError:
    return ConflictError(f"database: {message}")


def _integrity(error: BaseException, message: str) -> PartitaError:
    if sqlstate(error) == "23514" and not getattr(error, "constraint_name", None):
        return PartitionMissingError(f"database: {message}", hint="partita partitions ensure")
    return ConflictError(f"database: {message}")


def _pooler(_: BaseException, message: str) -> PartitaError:
    hint = "set PARTITA_DATABASE_POOLED=true where a transaction-pooling proxy stands in between"
    return UnavailableError(f"database: {message}", hint=hint if "startup parameter" in message else _REACH)


_MEANINGS: Final[tuple[tuple[tuple[str, ...], Callable[[BaseException, str], PartitaError]], ...]] = (
    (tuple(_SCHEMA_CODES), _schema),
    (("42501",), _privilege),
    (("57014",), _cancelled),
    (("08P01",), _pooler),
    (("23",), _integrity),
    (("22", "54"), _value),
    (("P0",), _raised),
)


@contextmanager
def boundary() -> Iterator[None]:
    """Translate what escapes the block; anything that is not the database's passes through unchanged."""
    try:
        yield
    except DATABASE_ERRORS as error:
        raise translate(error) from error
