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


class Unspeakable(Exception):
    def __init__(self, text: object) -> None:
        self.text = text

    def __str__(self) -> str:
        if isinstance(self.text, BaseException):
            raise self.text
        return self.text  # type: ignore[return-value]  # that is the point


@pytest.mark.parametrize("text", [RuntimeError("no text"), None, 7, KeyboardInterrupt(), SystemExit(1)])
def test_an_error_without_a_text_is_named_after_its_class(text: object) -> None:
    error = failure_of(Unspeakable(text)).error
    assert (error.type, error.message) == ("unspeakable", "Unspeakable")


class Unseen:
    def __repr__(self) -> str:
        raise RuntimeError("no repr")


class Careless(TaskError):
    def __init__(self, code: int) -> None:  # does not call TaskError's
        self.code = code


def test_details_and_types_that_cannot_be_read_are_replaced() -> None:
    details = failure_of(TaskError("x", details=Unseen())).error.details
    assert details is not None
    assert details.value == {"text": "Unseen"}
    assert failure_of(Careless(7)).error.type == "careless"
    taken = CardDeclined("x")
    taken.error_type = "lease_lost"  # type: ignore[misc]  # an instance that takes a reserved type
    assert failure_of(taken).error.type == "card_declined"


def test_details_are_bounded() -> None:
    kept = failure_of(TaskError("x", details="d" * 60_000)).error.details
    assert kept is not None
    assert kept.value == "d" * 60_000
    left_out = failure_of(TaskError("x", details="d" * 70_000)).error.details
    assert left_out is not None
    assert left_out.value == {"note": "left out: 70,002 bytes; at most 65,536 are kept"}


@pytest.mark.parametrize("error", [SystemExit(3), KeyboardInterrupt(), GeneratorExit(), BaseException("b")])
def test_exceptions_that_are_no_errors_are_described_too(error: BaseException) -> None:
    assert failure_of(error).error.message
