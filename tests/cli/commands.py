"""Runs the command line inside the test process: the real entry point, with its output and its exit code."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any

import orjson
import pytest

from partita.cli.main import main


@dataclass(frozen=True, slots=True)
class Result:
    """What a person and a script see of one command."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """Standard output as JSON."""
        return orjson.loads(self.out)


@dataclass(frozen=True, slots=True)
class Cli:
    """Calls ``partita`` with a database in its environment, or without one."""

    monkeypatch: pytest.MonkeyPatch
    capsys: pytest.CaptureFixture[str]

    def __call__(self, *words: str) -> Result:
        """Run one command."""
        self.monkeypatch.setattr(sys, "argv", ["partita", *words])
        code = 0
        try:
            main()
        except SystemExit as error:
            code = error.code if isinstance(error.code, int) else 1
        captured = self.capsys.readouterr()
        return Result(code, captured.out, captured.err)
