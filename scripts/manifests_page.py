#!/usr/bin/env python3
"""Fills the tables of docs/manifests.md from the code.

usage: manifests_page.py [--check]       writes the tables; --check only says whether they are current (exit code 1 if
                                         not)

The page is written by hand around blocks between ``<!-- table: name -->`` and ``<!-- end -->``; their content comes
from the tables that parsing, validation and evaluation use.
"""

import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from partita.domain.error_types import RESERVED
from partita.domain.expressions import limits as expression_limits
from partita.domain.expressions.analysis import NODE_FIELDS, RUN_FIELDS
from partita.domain.expressions.functions import FUNCTIONS
from partita.domain.manifest import limits, refusals, shapes
from partita.domain.manifest.shapes import Shape

PAGE = Path(__file__).resolve().parents[1] / "docs" / "manifests.md"
BLOCK = re.compile(r"(<!-- table: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)


def page(text: str) -> str:
    """Return the page with its tables filled in."""
    return BLOCK.sub(lambda block: f"{block[1]}\n{TABLES[block[2]]()}\n\n{block[3]}", text)


def _table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    lines = [head, tuple("---" for _ in head), *rows]
    return "\n".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |" for line in lines)


def _shapes(*wanted: Shape) -> str:
    parts = []
    for shape in wanted:
        rows = [(f"`{field.name}`", field.shape, field.summary) for field in shape.fields]
        parts.append(f"**{shape.title}**\n\n{_table(('field', 'value', 'meaning'), rows)}")
    return "\n\n".join(parts)


def _functions() -> str:
    rows = [
        (f"`{one.name}({one.parameters})`", one.summary) for one in sorted(FUNCTIONS.values(), key=lambda one: one.name)
    ]
    return _table(("function", "result"), rows)


def _refusals(table: dict[tuple[Shape, str], str]) -> str:
    rows = [(shape.title, f"`{name}`", hint) for (shape, name), hint in table.items()]
    return _table(("where", "field", "instead"), rows)


def _limits() -> str:
    rows = [
        ("a definition's spec as JSON", f"{limits.SPEC_BYTES // 1024} KiB"),
        ("a run's input as JSON", f"{limits.INPUT_BYTES // 1024} KiB"),
        ("nodes, those of subflows included", f"{limits.NODES:,}"),
        ("subflows", f"{limits.SUBFLOWS}"),
        ("nodes of a `finally`", f"{limits.FINALLY_NODES}"),
        ("`maxParallel`, `maxFailures` and `joinCount` of forEach", f"{limits.PARALLEL:,}"),
        ("`maxIterations` of repeat", f"{limits.ITERATIONS:,}"),
        ("error types in a `match`", f"{limits.MATCHES}"),
        ("`dependsOn`, `next`, cases of a switch", f"{limits.DEPENDS_ON}"),
        ("one expression", f"{expression_limits.SOURCE_LENGTH:,} characters"),
        ("an expression in a duration or a signal's name", f"{expression_limits.SHORT_SOURCE_LENGTH:,} characters"),
        ("parentheses, brackets and calls inside each other", f"{expression_limits.NESTING}"),
        ("`map`, `filter`, `all`, `exists` inside each other", f"{expression_limits.COMPREHENSIONS}"),
        ("steps of all expressions of a field", f"{expression_limits.VISITS:,}"),
        ("a text that an expression makes", f"{expression_limits.STRING_LENGTH:,} characters"),
        ("a list made by range, split or flatten", f"{expression_limits.LIST_LENGTH:,} items"),
    ]
    return _table(("what", "at most"), rows)


def _errors() -> str:
    rows = [(f"`{one.name}`", one.meaning, "yes" if one.any_matches else "no") for one in RESERVED if not one.later]
    return _table(("type", "when", "matched by `any`"), rows)


def _names(names: tuple[str, ...]) -> str:
    return ", ".join(f"`{name}`" for name in names)


TABLES: dict[str, Callable[[], str]] = {
    "definition": lambda: _shapes(*shapes.ALL),
    "run": lambda: _shapes(*shapes.ALL_OF_RUN),
    "functions": _functions,
    "later": lambda: _refusals(refusals.LATER),
    "refused": lambda: _refusals(refusals.REFUSED),
    "limits": _limits,
    "errors": _errors,
    "node_fields": lambda: _names(NODE_FIELDS),
    "run_fields": lambda: _names(RUN_FIELDS),
}


def main() -> int:
    """Write or check the page."""
    written = PAGE.read_text("utf-8")
    wanted = page(written)
    if "--check" in sys.argv[1:]:
        current = wanted == written
        print(
            "docs/manifests.md: current"
            if current
            else "docs/manifests.md: out of date; try: scripts/manifests_page.py"
        )
        return 0 if current else 1
    PAGE.write_text(wanted, "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
