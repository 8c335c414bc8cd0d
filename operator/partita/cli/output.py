"""Rendering: tables for people, JSON for programs.

Invariant: standard output carries only the result, in the form that was asked for; progress and errors go to standard
error. Colours appear only on a terminal.
"""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

import orjson
from rich.console import Console
from rich.table import Table
from rich.text import Text

_WIDE = 400
"""Columns of a table that goes to a file or a pipe, where nothing may be cut off."""

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
    text = orjson.dumps(_plain(value), option=options, default=str).decode()
    stdout.file.write(text + "\n")


def print_table(columns: Sequence[str], rows: Iterable[Sequence[object]], *, empty: str) -> None:
    """Print rows under headings, in the plain style of kubectl; ``empty`` says what to do when there are none."""
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 3, 0, 0))
    for column in columns:
        table.add_column(column.upper(), no_wrap=True, overflow="fold")
    count = 0
    for row in rows:
        table.add_row(*(cell if isinstance(cell, Text) else Text(str(cell)) for cell in row))
        count += 1
    if count:
        stdout.print(table)
    else:
        stderr.print(empty, highlight=False)


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
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value


def _camel(name: str) -> str:
    head, *tail = name.split("_")
    return head + "".join(word.capitalize() for word in tail)
