"""Named SQL: blocks of ``queries/*.sql``, loaded once, with identifiers substituted the way psql does it.

A block begins with ``-- name: lock_runs`` and ends at the next one. Comment lines directly below the name describe it;
of these, a *mark* has the form ``-- hot: …``, ``-- sorts: …`` or ``-- utility: …``:

- ``-- hot: pruned`` says that the statement may scan no table of records and may read one partition for the ids of one
  month; ``-- hot: pruned 2`` allows two. The plan tests hold it to that on many months of partitions.
- ``-- hot: queue`` says that the statement reads scheduling tables only, by index.
- ``-- hot: queue scan`` allows it to read a whole scheduling table (one that is small by its nature).
- ``-- sorts: why`` lets a hot statement sort rows whose number neither a limit nor the batch bounds.
- ``-- utility: why`` says that the block is no statement PREPARE accepts (DDL, several statements).

Invariant: a name occurs once in all files. ``:"schema"`` (and any other ``:"name"``) becomes a quoted identifier,
``:'name'`` a quoted literal; values are always parameters (``$1``). ``Sql.within`` gives the same blocks, with the same
parameters, on one month's own tables of records (``months`` says when that is right).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from importlib.resources import files
from typing import Final

from partita.domain.ids import Month

RECORDS: Final = (
    "run_endings", "run_history", "run_labels", "task_instances", "workflow_events", "workflow_runs",
)  # fmt: skip  # a line a name says no more
"""The tables of records, which are partitioned by month; what ``partitioned_tables`` finds."""
_RECORD: Final = re.compile(rf""":"schema"\.(?:{"|".join(RECORDS)})\b""")
_MONTHS: Final = 2
"""Months whose texts are kept: the one that ends and the one that begins."""
_NAME: Final = re.compile(r"^-- name: (\w+)\s*$")
_MARK: Final = re.compile(r"^-- (hot|sorts|utility): *(.*)$")
_TOKEN: Final = re.compile(r"""(?<!:):(?:"([A-Za-z_]\w*)"|'([A-Za-z_]\w*)')""")


@dataclass(frozen=True, slots=True)
class Block:
    """One named piece of SQL."""

    name: str
    source: str
    """File and line, for messages."""
    text: str
    """SQL without the leading comments, tokens not yet substituted."""
    marks: dict[str, str] = field(default_factory=dict)
    doc: str = ""

    @property
    def tokens(self) -> frozenset[str]:
        """Names of the identifiers and literals to substitute."""
        return frozenset(match[1] or match[2] for match in _TOKEN.finditer(self.text))


class Sql:
    """The blocks with one installation's schema substituted: ``sql("lock_runs")``."""

    __slots__ = ("_months", "_suffix", "_texts", "parents", "schema")

    def __init__(self, schema: str) -> None:
        self.schema = schema
        self.parents = self
        """The same blocks on all months."""
        self._suffix = ""
        self._texts: dict[str, str] = {}
        self._months: dict[Month, Sql] = {}

    def __call__(self, name: str, **tokens: str) -> str:
        """Text of a block; other tokens than the schema are given by keyword. Raises KeyError for unknown names."""
        if tokens:
            return self.written(blocks()[name].text, **tokens)
        text = self._texts.get(name)
        if text is None:
            text = self._texts[name] = self.written(blocks()[name].text)
        return text

    def written(self, text: str, **tokens: str) -> str:
        """Any text, written like a block: with the schema, the tables and other tokens in it."""
        if self._suffix:
            text = _RECORD.sub(lambda match: match[0] + self._suffix, text)
        return substitute(text, {"schema": self.schema, **tokens})

    def within(self, month: Month) -> Sql:
        """The same blocks on the tables of one month: every run that they name has to be of that month."""
        made = self._months.get(month)
        if made is None:
            made = Sql(self.schema)
            made.parents, made._months, made._suffix = self.parents, self._months, f"_{month.suffix}"
            while len(self._months) >= _MONTHS:
                del self._months[next(iter(self._months))]
            self._months[month] = made
        return made


def quote_identifier(name: str) -> str:
    """A name as a quoted SQL identifier; raises ValueError for what PostgreSQL cannot hold as one."""
    if not name or "\0" in name or len(name.encode()) > 63:
        raise ValueError(f"not an SQL identifier: {name!r}")
    return '"' + name.replace('"', '""') + '"'


def quote_literal(value: str) -> str:
    """A text as a quoted SQL literal (with standard_conforming_strings, the server's default)."""
    if "\0" in value or "\\" in value:
        raise ValueError(f"not a plain SQL literal: {value!r}")
    return "'" + value.replace("'", "''") + "'"


def substitute(text: str, tokens: dict[str, str]) -> str:
    """Replace ``:"name"`` and ``:'name'``; raises KeyError when one is not given."""

    def value(match: re.Match[str]) -> str:
        return quote_identifier(tokens[match[1]]) if match[1] else quote_literal(tokens[match[2]])

    return _TOKEN.sub(value, text)


def parse(text: str, source: str) -> Iterator[Block]:
    """Blocks of one file; raises ValueError for SQL before the first name and for empty blocks."""
    lines: list[str] = []
    name, start = "", 0
    for number, line in enumerate(text.splitlines(), 1):
        match = _NAME.match(line)
        if match:
            if name:
                yield _block(name, f"{source}:{start}", lines)
            name, start, lines = match[1], number, []
        elif name:
            lines.append(line)
        elif line.strip() and not line.startswith("--"):
            raise ValueError(f"{source}:{number}: SQL before the first `-- name:`")
    if name:
        yield _block(name, f"{source}:{start}", lines)


def _block(name: str, source: str, lines: list[str]) -> Block:
    head = 0
    while head < len(lines) and (lines[head].startswith("--") or not lines[head].strip()):
        head += 1
    marks = {match[1]: match[2].strip() for line in lines[:head] if (match := _MARK.match(line))}
    doc = " ".join(line[2:].strip() for line in lines[:head] if not _MARK.match(line)).strip()
    text = "\n".join(lines[head:]).strip().rstrip(";").rstrip()
    if not text:
        raise ValueError(f"{source}: block {name} is empty")
    return Block(name, source, text, marks, doc)


@lru_cache(maxsize=1)
def blocks() -> dict[str, Block]:
    """All blocks by name; raises ValueError when a name occurs twice."""
    found: dict[str, Block] = {}
    folder = files("partita.store").joinpath("queries")
    for entry in sorted(folder.iterdir(), key=lambda entry: entry.name):
        if not entry.name.endswith(".sql"):
            continue
        for block in parse(entry.read_text(encoding="utf-8"), entry.name):
            if block.name in found:
                raise ValueError(f"{block.source}: {block.name} is also at {found[block.name].source}")
            found[block.name] = block
    return found
