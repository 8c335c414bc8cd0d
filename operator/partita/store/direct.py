"""A lone transition as one statement: proof, fence and everything that is written, in a transaction of its own.

Purpose: a process that remembers a run needs no transaction to read it first: four round trips become one. Invariant:
every row is written because one row was found, ``proved``:

- For a report it is the lease, which is deleted only if the run's row is the version that this process remembers and
  could be locked. A version is told by its place and the transaction that wrote it. Whoever changes a record of a run
  writes the run's row as well (``Writes.add``), so that the same version means that all records are as they were.
- For a start it is the state of the engine, which is as the process remembers it, and the definition's version, which
  may still be started. That the run is new is what its primary key sees to.

Without the proof nothing is written, and the caller does it the usual way. Tasks stand where they were left unless
their table was rewritten meanwhile; one that does not is an error, which undoes everything, as a count that arrives
after the commit could not. What the proof reads and what is written see one moment, which begins after the statement
has its locks on tables. The first of these is ``guard``: with it the exchange of a month's tables conflicts, which
begins with the same one (``months``).

Trade-off: a process that is wrong about a run has paid a round trip for nothing; a lost answer leaves it unknown
whether the statement took effect, and the second try finds out by the fences, since the transaction's id is not known.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Final, NamedTuple
from uuid import UUID

from partita.store import together
from partita.store.database import Dedicated
from partita.store.fences import LeaseFence
from partita.store.slices import AskedVersion
from partita.store.sql import Sql, blocks
from partita.store.together import Part, Places, Write

_CONDITION: Final = re.compile(r"/\* (AND|WHERE) proved \*/")
_DERIVED: Final = frozenset({"insert_labels", "insert_endings"})
"""Blocks that write what ``ended_runs`` yields, which has the condition."""
_CHECK: Final = (
    "CASE WHEN (SELECT count(*) FROM {0}) <> {1} * proof.rows"
    " THEN ('{0}: not all of ' || {1} * proof.rows || ' rows stand where they were left')::int END"
)
_ARRAY: Final = re.compile(r"unnest\(\$(\d+)::(\w+)\[\]\)")
"""A column of the rows that a block writes."""
CLOCK_MS: Final = 250
"""By how much a process may be wrong about the database's clock."""


class RunVersion(NamedTuple):
    """A version of a run's row."""

    place: bytes
    run_id: UUID
    xid: int
    """The transaction that wrote it."""


class Belief(NamedTuple):
    """What a process thinks of the engine."""

    protocol: int
    """Its own."""
    now: datetime
    floor: datetime


@dataclass(frozen=True, slots=True)
class Wrote:
    """What a statement that took effect says."""

    now: datetime
    """The database's clock."""
    xid: int
    places: Places


REPORT: Final = (Part("run_proof", 6, counted=False), Part("lease_proof", 5, counted=False))
START: Final = (Part("start_proof", 8, counted=False),)


class Proof(NamedTuple):
    """What a statement rests on."""

    parts: tuple[Part, ...]
    values: tuple[object, ...]
    session: object = None
    """The connection over which the run was left as it is remembered."""


def of_report(belief: Belief, run: RunVersion, lease: LeaseFence, session: object) -> Proof:
    """That the run is as remembered, over this connection, and its lease ends."""
    return Proof(REPORT, (*run, belief.protocol, belief.now, CLOCK_MS, *lease[:5]), session)


def of_start(belief: Belief, version: AskedVersion, *, decided: bool) -> Proof:
    """That the engine is as remembered and the version may be started."""
    asked = (version.definition_id, version.version, version.exact, decided)
    return Proof(START, (belief.protocol, belief.now, CLOCK_MS, belief.floor, *asked))


async def send(
    connection: Dedicated, sql: Sql, proof: Proof, writes: Sequence[Write], patience_ms: int
) -> Wrote | None:
    """Write, if the proof holds; else None, and nothing has changed.

    Raises the database's errors as they are; after one for which ``is_disconnect`` holds the outcome is unknown.
    """
    rows = tuple(write.rows for write in writes if write.counted)
    text = _text(sql, proof.parts, tuple(map(part_of, writes)), rows)
    values = (value for write in writes for value in _values(write))
    found = await connection.fetchrow(text, *proof.values, *values, patience_ms=patience_ms, session=proof.session)
    if found is None or not found[0]:
        return None
    return Wrote(found[1], found[2], together.places_in(found, writes))


def part_of(write: Write) -> Part:
    """What the text of a statement depends on."""
    return together.part_of(write)._replace(single=write.rows == 1)


def _values(write: Write) -> Sequence[object]:
    """Of a single row, its values instead of arrays of one."""
    if write.rows != 1:
        return write.values
    columns, values = _columns(write.name), write.values
    return [
        value if number not in columns else value[0] if value else None  # type: ignore[index]  # an array, empty for null
        for number, value in enumerate(values, 1)
    ]


@lru_cache(maxsize=64)
def _columns(name: str) -> frozenset[int]:
    """The parameters of a block that are arrays, one a column."""
    return frozenset(int(match[1]) for match in _ARRAY.finditer(blocks()[name].text))


@lru_cache(maxsize=256)
def _text(sql: Sql, proof: tuple[Part, ...], parts: tuple[Part, ...], rows: tuple[int, ...]) -> str:
    """The last part of the proof is ``proved``; what is counted has to be so many rows, if it holds."""
    *conditions, last = proof
    proved = [(part, sql(part.name)) for part in conditions] + [(last._replace(name="proved"), sql(last.name))]
    clauses = together.clauses_of([*proved, *((part, conditional(sql, part)) for part in parts)])
    counted = zip((part.name for part in parts if part.counted), rows, strict=True)
    checks = [_CHECK.format(name, many) for name, many in counted]
    columns = ["proof.rows", "clock_timestamp()", "CASE WHEN proof.rows > 0 THEN pg_current_xact_id()::xid END"]
    return (
        f"WITH guard AS MATERIALIZED ({sql.parents('direct_guard')}), {', '.join(clauses)}\n"  # noqa: S608  # of blocks
        f"SELECT {', '.join([*columns, *checks, *together.places_of(parts)])}\n"
        "FROM (SELECT count(*) AS rows FROM proved) AS proof WHERE NOT EXISTS (SELECT FROM guard)"
    )


def conditional(sql: Sql, part: Part) -> str:
    """A block that writes only if there is proof; of a single row without arrays."""
    text, found = _CONDITION.subn(r"\1 EXISTS (SELECT FROM proved)", sql(part.name))
    if found != (0 if part.name in _DERIVED else 1):
        raise AssertionError(f"{part.name}: has no condition to write under")
    return _ARRAY.sub(r"$\1::\2", text) if part.single else text
