"""Where a worker serves its probes, as a setting says it."""

from __future__ import annotations

import pytest

from partita.domain.errors import InvalidError
from partita.listening import listening_problem, place_of
from partita.settings import Settings


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("0.0.0.0:8080", ("0.0.0.0", 8080)),  # noqa: S104 - a text
        ("[::]:1", ("::", 1)),
        ("[fe80::1]:65535", ("fe80::1", 65535)),
        ("localhost:9090", ("localhost", 9090)),
    ],
)
def test_places(text: str, place: tuple[str, int]) -> None:
    assert listening_problem(text) == ""
    assert place_of(text) == place


@pytest.mark.parametrize(
    "text",
    ["8080", ":8080", "0.0.0.0", "0.0.0.0:0", "0.0.0.0:65536", ":::80", "a b:1", "tcp://a:1"],  # noqa: S104 - texts
)
def test_what_is_no_place(text: str) -> None:
    assert "expected ADDRESS:PORT" in listening_problem(text)
    with pytest.raises(InvalidError, match="PARTITA_WORKER_HEALTH_BIND"):
        Settings.load({"PARTITA_WORKER_HEALTH_BIND": text})


def test_nowhere() -> None:
    assert place_of(Settings().worker.health_bind)[1] == 0
