"""Every command that a message tells people to try exists, with the options that it names."""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import partita
from tests.cli.commands import commands

SOURCE = Path(partita.__file__).parent
_COMMAND = re.compile(r"(?:^|try: |, and |`)(partita(?: [^;`)]*)?)")
"""Where a message names a command: at its beginning, after ``try:`` or in backquotes."""
_HOLE = "\0"
"""Stands for what is filled in when the message is made."""


def texts() -> Iterator[tuple[str, str]]:
    """Every text of the program that is no docstring, with its place."""
    for path in sorted(SOURCE.rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        inner = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
        prose = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
        for node in ast.walk(tree):
            place = f"{path.relative_to(SOURCE)}:{getattr(node, 'lineno', 0)}"
            if isinstance(node, ast.JoinedStr):
                parts = (part.value if isinstance(part, ast.Constant) else _HOLE for part in node.values)
                yield place, "".join(map(str, parts))
            elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in inner | prose:
                yield place, node.value


def named() -> list[tuple[str, list[str]]]:
    """The commands that texts name, as words."""
    return [
        (place, shlex.split(match[1].replace("'", "").replace(",", " "))[1:])
        for place, text in texts()
        for match in _COMMAND.finditer(text)
    ]


def test_every_command_of_a_hint_exists() -> None:
    known = dict(commands())
    groups = {words[:-1] for words in known}
    hints = [(place, words) for place, words in named() if words and not words[0].startswith(("-", _HOLE))]
    assert len(hints) >= 15, "the scan no longer sees the hints"
    for place, words in hints:
        if tuple(words) in groups:
            continue
        length = next((n for n in (2, 1) if tuple(words[:n]) in known), 0)
        assert length, f"{place}: partita {' '.join(words)}: there is no such command"
        options = {option for parameter in known[tuple(words[:length])].params for option in parameter.opts}
        unknown = [word for word in words[length:] if re.match(r"--?[a-z]", word) and word not in options | {"--help"}]
        assert unknown == [], f"{place}: partita {' '.join(words)}: there is no {unknown}"
