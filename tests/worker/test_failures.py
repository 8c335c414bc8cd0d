"""How exceptions become errors that manifests match."""

from __future__ import annotations

from datetime import timedelta

import pytest

from partita.worker import Fatal, Retryable, TaskError
from partita.worker.failures import failure_of, type_of


class CardDeclined(TaskError):
    """Named after its class."""


class Gateway(TaskError):
    """Names its type itself."""

    error_type = "gateway"


def test_a_subclass_gives_its_own_type_and_details() -> None:
    failure = failure_of(CardDeclined("no money", details={"status": 402}))
    assert (failure.error.type, failure.error.message) == ("card_declined", "no money")
    assert failure.error.details is not None
    assert failure.error.details.value == {"status": 402}
    assert not failure.retryable
    assert failure_of(Gateway("busy")).error.type == "gateway"


def test_any_other_exception_is_named_after_its_class() -> None:
    class HTTPServerError(Exception):
        pass

    assert failure_of(ValueError("bad")).error.type == "value_error"
    assert failure_of(HTTPServerError("bad")).error.type == "http_server_error"
    assert failure_of(KeyError()).error.message == "KeyError"


def test_retryable_carries_its_pause() -> None:
    assert failure_of(Retryable("busy", after=1.5)).retry_after_ms == 1500
    assert failure_of(Retryable("busy", after=timedelta(minutes=1))).retry_after_ms == 60_000
    failure = failure_of(Retryable("busy"))
    assert (failure.error.type, failure.retryable, failure.retry_after_ms) == ("retryable", True, None)


def test_a_pause_out_of_range_is_refused() -> None:
    with pytest.raises(ValueError, match="expected 0 seconds to 365 days"):
        Retryable(after=-1)


def test_fatal_is_fatal() -> None:
    failure = failure_of(Fatal("no such account"))
    assert (failure.error.type, failure.retryable) == ("fatal", False)


def test_reserved_types_cannot_be_taken() -> None:
    with pytest.raises(TypeError, match="given by the engine only"):
        type("Lost", (TaskError,), {"error_type": "lease_lost", "__module__": "elsewhere"})
    assert type_of(type("Timeout", (Exception,), {})) == "timeout_error"


def test_a_type_that_is_no_word_is_refused() -> None:
    with pytest.raises(TypeError, match="is no error type"):
        type("Odd", (TaskError,), {"error_type": "Card Declined"})


def test_what_cannot_be_stored_is_replaced_and_the_failure_kept() -> None:
    failure = failure_of(TaskError("a\0b\ud800", details={"open": object()}))
    assert failure.error.message == "ab?"
    assert failure.error.details is not None
    assert "object" in failure.error.details.value["text"]
    assert len(failure_of(ValueError("x" * 10_000)).error.message) == 4_096
