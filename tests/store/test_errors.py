"""The table of SQLSTATEs: what happens to a batch, what people are told."""

from __future__ import annotations

import ssl

import asyncpg
import pytest

from partita.domain.errors import (
    ConflictError,
    EngineError,
    InvalidError,
    NotFoundError,
    PartitaError,
    TimedOutError,
    UnavailableError,
)
from partita.store.errors import (
    PartitionMissingError,
    PrivilegeMissingError,
    SchemaMissingError,
    Verdict,
    boundary,
    is_disconnect,
    translate,
    verdict,
)

RETRY, POISON, DEFECT = Verdict.RETRY, Verdict.POISON, Verdict.DEFECT

TABLE: list[tuple[str, Verdict, bool, type[PartitaError]]] = [
    ("08000", RETRY, True, UnavailableError),
    ("08006", RETRY, True, UnavailableError),
    ("0A000", DEFECT, False, EngineError),
    ("22001", POISON, False, InvalidError),
    ("22021", POISON, False, InvalidError),
    ("22P05", POISON, False, InvalidError),
    ("23502", POISON, False, ConflictError),
    ("23505", POISON, False, ConflictError),
    ("23514", POISON, False, PartitionMissingError),
    ("25006", RETRY, True, UnavailableError),
    ("25P03", RETRY, True, UnavailableError),
    ("28P01", RETRY, True, UnavailableError),
    ("3D000", RETRY, True, UnavailableError),
    ("3F000", DEFECT, False, SchemaMissingError),
    ("40001", RETRY, False, UnavailableError),
    ("40P01", RETRY, False, UnavailableError),
    ("42501", RETRY, False, PrivilegeMissingError),
    ("42601", DEFECT, False, EngineError),
    ("42703", DEFECT, False, SchemaMissingError),
    ("42P01", DEFECT, False, SchemaMissingError),
    ("53100", RETRY, False, UnavailableError),
    ("53300", RETRY, False, UnavailableError),
    ("54000", POISON, False, InvalidError),
    ("55P03", RETRY, False, UnavailableError),
    ("57014", RETRY, False, TimedOutError),
    ("57P01", RETRY, True, UnavailableError),
    ("57P03", RETRY, True, UnavailableError),
    ("58030", RETRY, False, UnavailableError),
    ("P0001", POISON, False, ConflictError),
    ("XX000", DEFECT, False, EngineError),
]


@pytest.mark.parametrize(("code", "what", "disconnect", "kind"), TABLE)
def test_sqlstates(code: str, what: Verdict, disconnect: bool, kind: type[PartitaError]) -> None:
    error = asyncpg.PostgresError.new({"C": code, "M": "the server's words", "S": "ERROR"})
    assert error.sqlstate == code
    assert (verdict(error), is_disconnect(error), type(translate(error))) == (what, disconnect, kind)
    assert "the server's words" in str(translate(error))


def test_a_proxy_that_refuses_options_is_told_apart() -> None:
    words = "unsupported startup parameter: plan_cache_mode"
    known = translate(asyncpg.PostgresError.new({"C": "08P01", "M": words, "S": "FATAL"}))
    assert words in str(known)
    assert "PARTITA_DATABASE_POOLED=true" in known.hint


@pytest.mark.parametrize(
    ("error", "what", "disconnect", "kind"),
    [
        (ConnectionRefusedError(111, "refused"), RETRY, True, UnavailableError),
        (ConnectionResetError(), RETRY, True, UnavailableError),
        (TimeoutError(), RETRY, True, UnavailableError),
        (asyncpg.InterfaceError("connection is closed"), RETRY, True, UnavailableError),
        (asyncpg.InternalClientError("cannot switch to state 12"), RETRY, True, UnavailableError),
        (asyncpg.DataError("invalid input for query argument $1"), POISON, False, InvalidError),
        (asyncpg.ConnectionDoesNotExistError("connection was closed"), RETRY, True, UnavailableError),
        (asyncpg.CannotConnectNowError("the database system is starting up"), RETRY, True, UnavailableError),
        (asyncpg.InvalidCachedStatementError("cached plan must not change"), RETRY, True, UnavailableError),
        (asyncpg.OutdatedSchemaCacheError("schema changed"), RETRY, True, UnavailableError),
        (ZeroDivisionError(), DEFECT, False, EngineError),
    ],
)
def test_errors_without_a_sqlstate(error: Exception, what: Verdict, disconnect: bool, kind: type[PartitaError]) -> None:
    assert (verdict(error), is_disconnect(error), type(translate(error))) == (what, disconnect, kind)


def test_a_check_with_a_name_is_no_missing_partition() -> None:
    error = asyncpg.PostgresError.new({"C": "23514", "M": "violates check constraint", "n": "x_check", "S": "ERROR"})
    assert type(translate(error)) is ConflictError


def test_the_boundary_translates_the_databases_errors_and_no_others() -> None:
    with pytest.raises(UnavailableError) as caught, boundary():
        raise ConnectionRefusedError(111, "refused")
    assert isinstance(caught.value.__cause__, ConnectionRefusedError)
    with pytest.raises(ZeroDivisionError), boundary():
        raise ZeroDivisionError
    ours = NotFoundError("run: does not exist")
    with pytest.raises(NotFoundError) as kept, boundary():
        raise ours
    assert kept.value is ours


def test_messages_are_one_line() -> None:
    error = asyncpg.PostgresError.new(
        {"C": "23505", "M": "duplicate key", "D": "Key (id)=(1) already exists.", "S": "ERROR"}
    )
    assert str(translate(error)) == "database: duplicate key; DETAIL:  Key (id)=(1) already exists"


def test_a_refused_certificate_says_what_to_look_at() -> None:
    error = ssl.SSLCertVerificationError(1, "certificate verify failed: Hostname mismatch")
    told = str(translate(error))
    assert verdict(error) is RETRY
    assert told.startswith("database: the server's certificate is refused (")
    assert "Hostname mismatch" in told
    assert "PGSSLROOTCERT" in told
