"""docs/settings.md says what the code reads, and the code reads everything that can be set."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import get_type_hints

from partita.settings import Settings

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "operator" / "partita"
HOLDERS = {"settings", "direct"}
"""What holds a section's fields besides a variable or attribute of the section's own name."""


def test_the_page_is_current() -> None:
    command = [sys.executable, str(ROOT / "scripts" / "settings_page.py"), "--check"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_no_setting_is_accepted_and_ignored() -> None:
    used = {place for file in SOURCE.rglob("*.py") if file.name != "settings.py" for place in _reads(file)}
    ignored = [
        f"{section}.{item.name}"
        for section, kind in get_type_hints(Settings).items()
        for item in fields(kind)
        if not {(holder, item.name) for holder in (section, *HOLDERS)} & used
    ]
    assert ignored == []


def _reads(file: Path) -> Iterator[tuple[str, str]]:
    """(holder, field) of every ``holder.field`` in a module, the holder without its underscore."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
            yield _last_name(node.value), node.attr


def _last_name(node: ast.expr) -> str:
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name.lstrip("_")
        case ast.Call(func=function):
            return _last_name(function)
        case _:
            return ""
