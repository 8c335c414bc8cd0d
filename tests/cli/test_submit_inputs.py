"""``partita submit NAME --inputs``: a run a line, each answered by itself, and a file that may be sent again."""

from __future__ import annotations

import io
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from partita.cli.exits import Exit
from partita.domain.errors import UnavailableError
from partita.engine import Engine
from tests.cli.commands import Cli
from tests.cli.test_submit import SCHEMA, definition


@pytest.fixture
def deployed(on_database: Cli, tmp_path: Path) -> Cli:
    """The command line, on a database with the definition ``small``."""
    path = tmp_path / "definition.yaml"
    path.write_text(yaml.safe_dump(definition(inputSchema=SCHEMA)))
    assert on_database("submit", str(path)).code == Exit.OK
    return on_database


@pytest.fixture
def lines(tmp_path: Path) -> Any:
    """Writes lines into a file, and says its name."""

    def write(*texts: str) -> str:
        path = tmp_path / "inputs.jsonl"
        path.write_text("".join(f"{text}\n" for text in texts))
        return str(path)

    return write


def listed(partita: Cli) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = partita("list", "-o", "json", "--limit", "500").json["runs"]
    return found


def test_each_line_starts_a_run(deployed: Cli, lines: Any) -> None:
    done = deployed("submit", "small", "--inputs", lines('{"count": 1}', "", '{"count": 2}'), "--tag", "bulk")
    assert done.code == Exit.OK, done.err
    assert [line.split()[:2] for line in done.out.splitlines()] == [
        ["LINE", "RESULT"],
        ["1", "created"],
        ["3", "created"],
    ]
    assert "2 created, 0 unchanged, 0 refused" in done.err
    assert {run["definition"] for run in listed(deployed)} == {"small"}
    assert len(deployed("list", "--tag", "bulk", "-o", "json").json["runs"]) == 2


def test_a_bad_line_stops_no_other(deployed: Cli, lines: Any) -> None:
    file = lines('{"count": 1}', '{"count": "x"}', "{not json", "[1]", '{"count": 5}')
    done = deployed("submit", "small", "--inputs", file, "-o", "json")
    assert done.code == Exit.USAGE
    assert [(each["line"], each["result"]) for each in done.json] == [
        (1, "created"), (2, "refused"), (3, "refused"), (4, "refused"), (5, "created"),
    ]  # fmt: skip
    assert "spec.input.count" in done.json[1]["error"]
    assert "is not JSON" in done.json[2]["error"]
    assert "2 created, 0 unchanged, 3 refused" in done.err
    assert "line 2: " in done.err
    assert len(listed(deployed)) == 2


def test_a_file_that_is_sent_twice_starts_nothing_twice(deployed: Cli, lines: Any) -> None:
    words = ("submit", "small", "--idempotency-prefix", "may-", "-o", "json", "--inputs")
    first = deployed(*words, lines('{"count": 1}', '{"count": "x"}', '{"count": 3}'))
    again = deployed(*words, lines('{"count": 1}', '{"count": 2}', '{"count": 3}', '{"count": 4}'))
    assert [each["result"] for each in again.json] == ["unchanged", "created", "unchanged", "created"]
    assert (again.json[0]["id"], again.json[2]["id"]) == (first.json[0]["id"], first.json[2]["id"])
    changed = deployed(*words, lines('{"count": 9}'))
    assert (changed.code, changed.json[0]["result"]) == (Exit.CONFLICT, "refused")
    assert len(listed(deployed)) == 4


def test_lines_come_from_standard_input_in_any_number(deployed: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    text = b"".join(b'{"count": %d}\n' % number for number in range(2_500)) + b"null"
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text)))
    done = deployed("submit", "small", "--inputs", "-")
    assert done.code == Exit.OK, done.err
    assert "2,501 created" in done.err
    assert done.out == ""


def test_nothing_more_is_sent_once_the_database_is_away(
    deployed: Cli, lines: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[int] = []

    async def away(self: Engine, requests: Any) -> Any:
        del self
        calls.append(len(requests))
        return [UnavailableError("database: gone")] * len(requests)

    monkeypatch.setattr(Engine, "start_many", away)  # a server that goes between two calls cannot be had from outside
    file = lines(*['{"count": 1}'] * 2_500)
    done = deployed("submit", "small", "--inputs", file, "--idempotency-prefix", "p-")
    assert (done.code, calls) == (Exit.UNAVAILABLE, [1_000])
    assert "send the same file again with --idempotency-prefix p-" in done.err
    assert "900 more lines were refused: -o json has them all" in done.err


@pytest.mark.parametrize(
    ("words", "code", "expected"),
    [
        (("submit", "nothing", "--inputs", "FILE"), Exit.NOT_FOUND, "default/nothing: does not exist"),
        (("submit", "No_Name", "--inputs", "FILE"), Exit.USAGE, "NAME"),
        (("submit", "small", "--inputs", "/nonexistent/file"), Exit.USAGE, "cannot be read"),
        (("submit", "small", "--inputs", "FILE", "--idempotency-prefix", "x" * 201), Exit.USAGE, "at most 200"),
        (("submit", "small", "--inputs", "FILE", "--context", "c"), Exit.USAGE, "in a database only"),
        (("submit", "FILE", "--tag", "t"), Exit.USAGE, "--inputs: is not given"),
    ],
)
def test_what_cannot_be_is_said(deployed: Cli, lines: Any, words: tuple[str, ...], code: Exit, expected: str) -> None:
    file = lines("{}")
    done = deployed(*(file if word == "FILE" else word for word in words))
    assert (done.code, expected in done.err) == (code, True), done.err
    assert listed(deployed) == []


def test_an_empty_file_starts_nothing(deployed: Cli, lines: Any) -> None:
    done = deployed("submit", "small", "--inputs", lines(""))
    assert (done.code, done.out) == (Exit.OK, "")
    assert "nothing to submit" in done.err
