"""Runs the command line inside the test process: the real entry point, with its output and its exit code."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import orjson
import pytest
import typer

from partita.cli.main import build, main


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


def commands() -> list[tuple[tuple[str, ...], Any]]:
    """Every command by its words, those of groups too."""

    def walk(path: tuple[str, ...], command: Any) -> Iterator[tuple[tuple[str, ...], Any]]:
        below = getattr(command, "commands", {})
        if not below:
            yield path, command
        for name, child in below.items():
            yield from walk((*path, name), child)

    return list(walk((), typer.main.get_command(build())))


@dataclass(frozen=True, slots=True)
class Cli:
    """Calls ``partita`` with a database in its environment, or without one."""

    monkeypatch: pytest.MonkeyPatch
    capsys: pytest.CaptureFixture[str]
    program: str = "partita"

    def named(self, program: str) -> Cli:
        """The same command line, started under another name."""
        return replace(self, program=program)

    def __call__(self, *words: str) -> Result:
        """Run one command."""
        self.monkeypatch.setattr(sys, "argv", [self.program, *words])
        code = 0
        try:
            main()
        except SystemExit as error:
            code = error.code if isinstance(error.code, int) else 1
        captured = self.capsys.readouterr()
        return Result(code, captured.out, captured.err)
