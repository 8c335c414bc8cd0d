"""Rendering: tables for people, JSON for programs.

Invariant: standard output carries only the result, in the form that was asked for; progress and errors go to standard
error. Colours appear only on a terminal.
"""

from __future__ import annotations

import dataclasses
import io
import json
import sys
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

import orjson
from rich.cells import cell_len
from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from partita.cli import streams
from partita.domain.payload import Payload
from partita.domain.places import shortened

_WIDE = 400
"""Columns of what goes to a file or a pipe, where lines are not folded."""
_GAP = 3
"""Blanks between columns."""
_LONGEST_CELL = 1_000
"""Characters of a cell: every row is as wide as the widest."""

streams.open_closed()
stdout = Console(soft_wrap=True, width=None if sys.stdout.isatty() else _WIDE)
stderr = Console(stderr=True, soft_wrap=True)


class Format(StrEnum):
    """How a result is printed."""

    TABLE = "table"
    JSON = "json"


_COLOURS = {
    "Succeeded": "green",
    "Completed": "green",
    "Running": "cyan",
    "Queued": "blue",
    "Waiting": "yellow",
    "Suspended": "yellow",
    "Pending": "bright_black",
    "Skipped": "bright_black",
    "Failed": "red",
    "Cancelled": "magenta",
}


def state(text: str) -> Text:
    """A run's or node's state in its colour."""
    return Text(text, style=_COLOURS.get(text, ""))


def print_json(value: object) -> None:
    """Print a record, or a list of records, as indented JSON."""
    options = orjson.OPT_INDENT_2 | orjson.OPT_UTC_Z | orjson.OPT_NON_STR_KEYS
    text = orjson.dumps(_plain(value), option=options).decode()
    try:
        text.encode(stdout.encoding)
    except UnicodeEncodeError:
        text = json.dumps(orjson.loads(text), indent=2)  # escapes what is not ASCII
    stdout.file.write(text + "\n")


def print_table(columns: Sequence[str], rows: Iterable[Sequence[object]], *, empty: str) -> None:
    """Print rows under headings, in the plain style of kubectl; ``empty`` says what to do when there are none.

    Where a terminal is too narrow the last column is folded, since it holds the words of people and programs.
    """
    cells = [[cell if isinstance(cell, Text) else Text(_one_line(str(cell))) for cell in row] for row in rows]
    if not cells:
        note(empty)
        return
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, _GAP, 0, 0))
    widths = [max(map(cell_len, (name, *(row[at].plain for row in cells)))) for at, name in enumerate(columns)]
    for name in columns:
        table.add_column(name.upper(), no_wrap=name != columns[-1], overflow="fold")
    for row in cells:
        table.add_row(*row)
    print_shown(table, width=sum(widths) + _GAP * len(widths))


def print_shown(shown: RenderableType, *, width: int = _WIDE) -> None:
    """Print a table or a picture; in a file or a pipe without blanks at the ends of lines, ``width`` columns wide."""
    if sys.stdout.isatty():
        stdout.print(shown)
        return
    text = io.StringIO()
    Console(soft_wrap=True, file=text, width=width).print(shown)
    stdout.file.write("".join(f"{line.rstrip()}\n" for line in text.getvalue().splitlines()))


def note(text: str) -> None:
    """Tell the person something that is not the result."""
    stderr.print(text, highlight=False, markup=False)


def age(moment: datetime | None, now: datetime | None = None) -> str:
    """Time since a moment as kubectl writes it: ``45s``, ``12m``, ``3h``, ``8d``; empty when there is none."""
    if moment is None:
        return ""
    seconds = int(((now or datetime.now(UTC)) - moment).total_seconds())
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "m")):
        if seconds >= size:
            return f"{seconds // size}{unit}"
    return f"{max(seconds, 0)}s"


def _plain(value: object) -> Any:
    """Dataclasses as objects with camelCase keys, as the manifests spell them."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {_camel(field.name): _plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, Payload):
        return value.value
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value


def _one_line(text: str) -> str:
    """A cell as one line of bounded length; -o json has it whole."""
    return shortened(" ".join(text.split()) if "\n" in text else text, _LONGEST_CELL)


def _camel(name: str) -> str:
    head, *tail = name.split("_")
    return head + "".join(word.capitalize() for word in tail)
