"""Several statements that write different rows, sent as one.

Purpose: a round trip costs a lone run more than the work that it asks for; an ordinary step writes five tables.
Invariant: the statements of a set neither read what another one writes nor write the same row, because all of them see
the moment before the set began; which ones may stand together is decided by ``writes``. Trade-off: a session prepares a
statement for each set of tables that occurs together, about a megabyte each on all 25 months, instead of one a table.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Final, NamedTuple

from partita.store.database import Connection
from partita.store.errors import MovedError
from partita.store.sql import Sql

_PARAMETER: Final = re.compile(r"\$(\d+)")


class Write(NamedTuple):
    """A named block with its parameters."""

    name: str
    values: Sequence[object]
    rows: int = 0
    """Rows that it has to change; 0: any number."""


async def send(connection: Connection, sql: Sql, writes: Sequence[Write]) -> None:
    """Execute all of them; raises MovedError when one with ``rows`` changed fewer."""
    if not writes:
        return
    counted = [write for write in writes if write.rows]
    text = combined(sql, tuple((write.name, len(write.values), write.rows > 0) for write in writes))
    found = await connection.fetchrow(text, *(value for write in writes for value in write.values))
    if found is None:
        raise AssertionError("a SELECT without FROM has one row")
    for write, changed in zip(counted, found, strict=False):
        if changed != write.rows:
            raise MovedError(f"{write.name}: changed {changed} rows; expected {write.rows} where they were read")


@lru_cache(maxsize=256)
def combined(sql: Sql, parts: tuple[tuple[str, int, bool], ...]) -> str:
    """One statement of blocks (name, number of parameters, counted): a count for each one that is counted."""
    first, clauses, counts = 0, [], []
    for name, parameters, counted in parts:
        clauses.append(f"{name} AS (\n{_shifted(sql(name), first)}{' RETURNING 1' if counted else ''}\n)")
        counts += [f"(SELECT count(*) FROM {name})"] if counted else []  # noqa: S608  # the name of a block
        first += parameters
    return f"WITH {', '.join(clauses)}\nSELECT {', '.join(counts) or 'NULL'}"


def _shifted(text: str, first: int) -> str:
    """The block with its parameters after others."""
    return _PARAMETER.sub(lambda match: f"${int(match[1]) + first}", text)
