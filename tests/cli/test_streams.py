"""Standard streams that are closed, full, narrow or no longer read, and tables that do not fit."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from rich.console import Console

from partita.cli import output
from partita.cli.exits import Exit
from partita.domain.payload import Payload

ROOT = Path(__file__).parents[2]
ORDER = "examples/order.yaml"
MAIN = "from partita.cli.main import main; main()"


def shell(words: str, redirection: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """One command as a shell starts it."""
    line = f'set -o pipefail; {sys.executable} -c "{MAIN}" {words} {redirection}'
    return subprocess.run(
        ["bash", "-c", line], cwd=ROOT, capture_output=True, text=True, env={**os.environ, **environment}, check=False
    )


@pytest.mark.parametrize("redirection", [">&-", ">&- 2>&-", "<&-", "<&- >&- 2>&-"])
@pytest.mark.parametrize("words", [f"lint {ORDER}", "--help"])
def test_closed_streams_are_no_defect(words: str, redirection: str) -> None:
    done = shell(words, redirection)
    assert (done.returncode, done.stderr) == (Exit.OK, "")


@pytest.mark.parametrize("words", [f"lint {ORDER}", f"lint {ORDER} -o json", "--help", "--version"])
def test_a_full_disk_is_said(words: str) -> None:
    done = shell(words, ">/dev/full")
    assert done.returncode == Exit.OUTPUT
    assert done.stderr == "error: standard output: cannot be written: No space left on device\n"


@pytest.mark.parametrize("words", [f"lint {ORDER}", "--help"])
def test_a_reader_that_has_seen_enough_is_no_failure(words: str) -> None:
    done = shell(words, "| true")
    assert (done.returncode, done.stderr) == (Exit.OK, "")


def test_an_encoding_without_a_character_shows_a_question_mark(tmp_path: Path) -> None:
    file = tmp_path / "ä.yaml"
    file.write_text("kind: Ä", encoding="utf-8")
    environment = {"PYTHONIOENCODING": "ascii"}
    assert shell("--help", "", **environment).returncode == Exit.OK
    shown = shell(f"lint '{file}'", "", **environment)
    assert "document 1: ?" in shown.stdout
    found = shell(f"lint -o json '{file}'", "", **environment)
    assert found.stdout.isascii()
    assert json.loads(found.stdout)[0]["kind"] == "Ä"


def test_payloads_are_json_in_json(capsys: pytest.CaptureFixture[str]) -> None:
    output.print_json([{"details": 1}, (Payload.of({"a": [1]}),)])
    assert json.loads(capsys.readouterr().out) == [{"details": 1}, [{"a": [1]}]]


def test_what_has_no_form_as_json_is_a_defect_and_no_text() -> None:
    with pytest.raises(TypeError):
        output.print_json(object())


def test_a_long_last_column_leaves_the_others_whole(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [("7", "RunStarted", "x" * 700), ("8", "TaskCompleted", "short\nlines"), ("9", "RunFinished", "y" * 5_000)]
    output.print_table(("#", "event", "by and why"), rows, empty="")
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 4
    assert lines[1].split() == ["7", "RunStarted", "x" * 700]
    assert lines[2].split() == ["8", "TaskCompleted", "short", "lines"]
    assert lines[3].split() == ["9", "RunFinished", "y" * 999 + "…"]
    monkeypatch.setattr(output, "stdout", Console(soft_wrap=True, width=60))
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    output.print_table(("#", "event", "by and why"), rows[:2], empty="")
    shown = capsys.readouterr().out
    assert "7   RunStarted      xxx" in shown
    assert "8   TaskCompleted   short lines" in shown
