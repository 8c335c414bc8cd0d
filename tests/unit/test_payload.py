"""What becomes JSON text, and what is refused rather than changed."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum

import pytest

from partita.domain.errors import InvalidError
from partita.domain.payload import Payload, encode

NAN, INFINITY = float("nan"), float("inf")


@dataclass
class Reading:
    value: float


class Level(Enum):
    TOP = INFINITY


@pytest.mark.parametrize(
    "value",
    [NAN, INFINITY, -INFINITY, [1, [NAN]], {"a": {"b": (None, INFINITY)}}, Reading(NAN), [Level.TOP], 1e308 * 10],
)
def test_what_is_no_number_is_refused_and_not_made_null(value: object) -> None:
    with pytest.raises(InvalidError, match="output: contains NaN or an infinity"):
        encode(value, "output")
    with pytest.raises(InvalidError):
        Payload.of(value).size()


def test_null_itself_and_the_word_are_kept() -> None:
    when = datetime(2030, 1, 31, tzinfo=UTC)
    value = {"a": None, "b": [None, 1.5, "null"], "null": Reading(1.0), "t": when}
    text = '{"a":null,"b":[null,1.5,"null"],"null":{"value":1.0},"t":"2030-01-31T00:00:00+00:00"}'
    assert encode(value) == text


@pytest.mark.parametrize("value", ["a\0b", {"a\0": 1}, "\ud800", {"\udfff": 1}, 2**64, b"x", {1}, object(), {1: 2}])
def test_what_cannot_be_stored_is_refused(value: object) -> None:
    with pytest.raises(InvalidError):
        encode(value)


def test_an_escape_in_the_text_is_no_nul() -> None:
    assert encode("\\u0000") == r'"\\u0000"'


def test_documents_are_joined_without_being_parsed() -> None:
    parts = [Payload.parse('{"b": 1.0}'), None, Payload.of("x")]
    assert Payload.joined(parts).text == '[{"b": 1.0},null,"x"]'
    assert Payload.joined([]).text == "[]"
    assert Payload.keyed(["a", '"', "é"], parts).text == '{"a":{"b": 1.0},"\\"":null,"é":"x"}'
    assert Payload.keyed(["a", '"', "é"], parts).value == {"a": {"b": 1.0}, '"': None, "é": "x"}
    assert Payload.keyed([], []).value == {}
