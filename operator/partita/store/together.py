"""Several statements that write different rows, sent as one.

Purpose: a round trip costs a lone run more than the work that it asks for; an ordinary step writes five tables.
Invariant: the statements of a set neither read what another one writes nor write the same row, because all of them see
the moment before the set began; which ones may stand together is decided by ``writes``. Trade-off: a session prepares a
statement for each set of tables that occurs together, about a megabyte each on all 25 months, instead of one a table.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Final, NamedTuple

from partita.store.database import Connection, Record
from partita.store.errors import MovedError
from partita.store.sql import Sql

_PARAMETER: Final = re.compile(r"\$(\d+)")
Places = Mapping[str, Sequence[bytes]]
"""By block, where its rows stand, in the order in which they were sent."""


class Write(NamedTuple):
    """A named block with its parameters."""

    name: str
    values: Sequence[object]
    rows: int
    """Rows that its arrays have."""
    counted: bool = False
    """It has to change as many."""
    placed: bool = False
    """Tell where its rows stand now."""


class Part(NamedTuple):
    """A block within a statement."""

    name: str
    parameters: int
    counted: bool
    placed: bool = False
    single: bool = False
    """Its arrays have one row, and are sent as values (``direct``)."""


async def send(connection: Connection, sql: Sql, writes: Sequence[Write]) -> Places:
    """Execute all of them; raises MovedError when one that is counted changed fewer rows than it has."""
    if not writes:
        return {}
    text = combined(sql, tuple(map(part_of, writes)))
    found = await connection.fetchrow(text, *(value for write in writes for value in write.values))
    if found is None:
        raise AssertionError("a SELECT without FROM has one row")
    counted = [write for write in writes if write.counted]
    for write, changed in zip(counted, found, strict=False):
        if changed != write.rows:
            raise MovedError(f"{write.name}: changed {changed} rows; expected {write.rows} where they were read")
    return places_in(found, writes)


def part_of(write: Write) -> Part:
    """What the text of a statement depends on."""
    return Part(write.name, len(write.values), write.counted, write.placed)


def places_in(found: Record, writes: Iterable[Write]) -> Places:
    """The places that an answer tells; they are its last columns, in this order."""
    placed = [write.name for write in writes if write.placed]
    return dict(zip(placed, list(found)[len(found) - len(placed) :], strict=True)) if placed else {}


@lru_cache(maxsize=256)
def combined(sql: Sql, parts: tuple[Part, ...]) -> str:
    """One statement of blocks: a count for each one that is counted, then the places of those that are placed."""
    clauses = clauses_of([(part, sql(part.name)) for part in parts])
    counts = [f"(SELECT count(*) FROM {part.name})" for part in parts if part.counted]  # noqa: S608  # a block's name
    return f"WITH {', '.join(clauses)}\nSELECT {', '.join([*counts, *places_of(parts)]) or 'NULL'}"


def clauses_of(parts: Iterable[tuple[Part, str]]) -> list[str]:
    """The WITH clauses of blocks and their texts, whose parameters follow each other."""
    first, clauses = 0, []
    for part, text in parts:
        returning = " RETURNING ctid" if part.placed else " RETURNING 1" if part.counted else ""
        clauses.append(f"{part.name} AS (\n{_shifted(text, first)}{returning}\n)")
        first += part.parameters
    return clauses


def places_of(parts: Iterable[Part]) -> list[str]:
    """The columns that tell places."""
    return [f"(SELECT array_agg(ctid) FROM {part.name})" for part in parts if part.placed]  # noqa: S608  # as above


def _shifted(text: str, first: int) -> str:
    """The block with its parameters after others."""
    return _PARAMETER.sub(lambda match: f"${int(match[1]) + first}", text)
