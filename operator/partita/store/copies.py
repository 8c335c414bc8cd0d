"""Runs that begin like another one of the same transaction: their rows are copied from its rows.

Invariant: as for every start, rows are only inserted, and two transactions that start one run meet at its unique index.
Trade-off: the database repeats what is the same in all of them, so that only what is not has to be sent; a statement
copies one kind of run, with its columns one by one, since a copied row must not depend on the order of columns.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple
from uuid import UUID

import orjson
from asyncpg import UniqueViolationError

from partita.domain.payload import Payload
from partita.store import columns
from partita.store.database import Connection
from partita.store.sql import Sql


class Copy(NamedTuple):
    """What a run has of its own."""

    id: UUID
    start_request_id: UUID
    name: str
    idempotency_key: str | None
    tags: str | None
    """As JSON text, like the attributes."""
    attributes: str | None
    context: str


def labels(tags: Sequence[str], attributes: Mapping[str, str]) -> tuple[str | None, str | None]:
    """Tags and attributes as they are stored; None for none."""
    tags_text = orjson.dumps(list(tags)).decode() if tags else None
    return tags_text, orjson.dumps(dict(attributes)).decode() if attributes else None


def context_text(input_: Payload, config: Payload | None) -> str:
    """What expressions see as input and config, as it is stored."""
    constants = "" if config is None else f',"config":{config.text}'
    return f'{{"input":{input_.text}{constants}}}'


async def insert(
    connection: Connection, sql: Sql, first: UUID, rows: Sequence[Copy], seq: int, *, timers: bool
) -> bool:
    """Copy the rows of the run ``first``; ``seq`` is the position in the queue of the first copied task.

    False when another transaction inserted one of the ids meanwhile; this one is of no more use then.
    """
    own = columns.arrays(rows)
    ids, _, names, _, tags, attributes, _ = own
    try:
        await connection.fetch(sql("copy_runs"), first, *own)
    except UniqueViolationError:
        return False
    await connection.fetch(sql("copy_open_runs"), first, ids, names, tags, attributes)
    await connection.fetch(sql("copy_tasks"), first, ids, seq)
    await connection.fetch(sql("copy_ready"), first, ids, seq)
    if timers:
        await connection.fetch(sql("copy_timers"), first, ids)
    return True
