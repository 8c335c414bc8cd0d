"""Makes docs/state-machine.md from the table that the tests prove: ``python -m tests.unit.state.render``."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from partita.domain.error_types import RESERVED
from tests.unit.state.table import NODE_LINES, RUN_LINES, Line

DOCUMENT = Path(__file__).parents[3] / "docs" / "state-machine.md"


def document() -> str:
    """The text of the document."""
    text = (Path(__file__).parent / "state-machine.in.md").read_text(encoding="utf-8")
    return (
        text.replace("{{node lines}}", _table(NODE_LINES))
        .replace("{{run lines}}", _table(RUN_LINES))
        .replace("{{error types}}", _error_types())
    )


def _table(lines: Iterable[Line]) -> str:
    rows = ["| state | event | when | then | also written |", "|---|---|---|---|---|"]
    rows += [
        f"| {line.before} | {line.event} | {line.condition} | {line.after} | {', '.join(line.effects) or '-'} |"
        for line in lines
    ]
    return "\n".join(rows)


def _error_types() -> str:
    rows = ["| type | meaning | taken by `any` |", "|---|---|---|"]
    rows += [
        f"| `{one.name}` | {'reserved for a later version: ' if one.later else ''}{one.meaning} | "
        f"{'yes' if one.any_matches else 'no'} |"
        for one in RESERVED
    ]
    return "\n".join(rows)


if __name__ == "__main__":
    DOCUMENT.write_text(document(), encoding="utf-8")
