#!/usr/bin/env python3
"""Makes docs/settings.md from operator/partita/settings.py.

usage: settings_page.py [--check]        writes the page; --check only says whether it is current (exit code 1 if not)

Names, variables, defaults, bounds and explanations come from the code that reads them, so that the page cannot say
something else.
"""

import ast
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import Field, fields
from pathlib import Path
from typing import Any, get_type_hints

from partita import settings
from partita.environment import variable

PAGE = Path(__file__).resolve().parents[1] / "docs" / "settings.md"
HEAD = """# Settings

Every process (operator, worker, command line) reads the same settings from its environment, once, when it starts. A
variable that is unknown, unreadable or out of bounds stops it, with every such variable named. Sizes are bytes; lists
are separated by commas. (`python scripts/settings_page.py` writes this page from the code.)

`PARTITA_LOG_LEVEL` (`INFO` by default) says how much the operator and the workers log.
"""
KINDS = {int: "number", bool: "true or false", str: "text"}


def page() -> str:
    """Return the text of the page."""
    parts = [HEAD]
    explained = dict(docstrings())
    for section, kind in get_type_hints(settings.Settings).items():
        names = {item.name: name(section, item.name) for item in fields(kind)}
        rows = ["| variable | default | values | meaning |", "|---|---|---|---|"]
        for item in fields(kind):
            meaning = _prose(explained[f"{kind.__name__}.{item.name}"], names)
            rows.append(_row(names[item.name], _default(item), _values(kind, item), meaning))
        parts.append(f"## {section}\n\n{kind.__doc__}\n\n" + "\n".join(rows) + "\n")
    return "\n".join(parts)


def name(section: str, field: str) -> str:
    """Return the variable that a field is read from."""
    fixed = {place: alias for alias, place in settings.FIXED.items()}
    return fixed.get((section, field)) or variable(section, field)


def _row(variable: str, *cells: str) -> str:
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in (f'`{variable}`', *cells))} |"


def _default(item: Field[Any]) -> str:
    value = item.default
    if value in ("", ()):
        return "empty"
    text = (
        ",".join(value) if isinstance(value, tuple) else str(value).lower() if isinstance(value, bool) else str(value)
    )
    return f"`{text}`"


def _values(kind: type, item: Field[Any]) -> str:
    if "low" in item.metadata:
        return f"{item.metadata['low']} to {item.metadata['high']}"
    if "expected" in item.metadata:
        return str(item.metadata["expected"])
    return KINDS.get(get_type_hints(kind)[item.name], "list")


def docstrings() -> Iterator[tuple[str, str]]:
    """Yield ``Class.field`` and the string that stands below it."""
    for node in ast.parse(Path(settings.__file__).read_text(encoding="utf-8")).body:
        if not isinstance(node, ast.ClassDef):
            continue
        for item, after in zip(node.body, node.body[1:], strict=False):
            if (
                isinstance(item, ast.AnnAssign)
                and isinstance(after, ast.Expr)
                and isinstance(after.value, ast.Constant)
            ):
                yield f"{node.name}.{ast.unparse(item.target)}", str(after.value.value)


def _prose(text: str, names: Mapping[str, str]) -> str:
    """Turn a docstring into one line of Markdown that calls the other fields by their variables."""
    words = re.sub(r"``(.+?)``", lambda quoted: f"`{names.get(quoted[1], quoted[1])}`", text)
    return " ".join(words.split())


def main(arguments: list[str]) -> int:
    """Write or check the page; returns the exit code."""
    if arguments == ["--check"]:
        current = PAGE.is_file() and PAGE.read_text(encoding="utf-8") == page()
        print(
            "docs/settings.md: current" if current else "docs/settings.md: out of date; try: scripts/settings_page.py"
        )
        return 0 if current else 1
    PAGE.write_text(page(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
