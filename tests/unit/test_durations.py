"""Durations as people write them."""

from __future__ import annotations

import pytest

from partita.domain.durations import parse_duration


@pytest.mark.parametrize(
    ("text", "milliseconds"),
    [
        ("0s", 0),
        ("500ms", 500),
        ("1s", 1_000),
        ("1h30m", 5_400_000),
        ("1m1m", 120_000),
        ("7d", 604_800_000),
        ("1d1ms", 86_400_001),
    ],
)
def test_parse(text: str, milliseconds: int) -> None:
    assert parse_duration(text) == milliseconds


@pytest.mark.parametrize("text", ["", "1", "s", "1.5s", "-1s", "1 s", "1S", "1w", "1s\n", "\u0661s", "1" * 100 + "s"])
def test_what_is_none(text: str) -> None:
    with pytest.raises(ValueError, match="is not a duration; expected numbers with ms, s, m, h or d, such as 1h30m"):
        parse_duration(text)


def test_a_century_is_enough() -> None:
    with pytest.raises(ValueError, match="is longer than 100 years"):
        parse_duration("99999999d")
