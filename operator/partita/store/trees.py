"""Reads below a node: items of a loop, what they gave so far, and the children of a run.

Invariant: everything is read in pages by key, so that a loop of ten thousand items costs only what is looked at; only
``loop_output`` reads a whole loop, since it is asked for a whole output. Trade-off: a page is of its own moment, and a
loop that goes on may have moved between two of them.
"""

from __future__ import annotations

from typing import Final
from uuid import UUID

import orjson

from partita.domain.errors import NotFoundError
from partita.domain.ids import make_id
from partita.domain.payload import Json, Payload
from partita.store.database import Connection, Database, Record
from partita.store.details import detail_of
from partita.store.reads import node_view, payload_of, run_view
from partita.store.views import NodeView, RunView

PAGE: Final = 1_000
_LAST: Final = UUID(int=(1 << 128) - 1)
_DAY_MS: Final = 86_400_000
"""A run's id may be dated up to ``accept_ahead_ms`` later than its first child's, which is of the database's clock."""


async def items(
    database: Database, run_id: UUID, node: str, *, after: int = -1, limit: int = 100
) -> tuple[NodeView, ...]:
    """Rows of one node after an index, in their order, without its group row: the items or iterations of a loop, or
    of ``<name>~undo`` what reverses them."""
    return tuple(map(node_view, await database.fetch("run_items", run_id, node, after, limit)))


async def children(
    database: Database, run_id: UUID, *, after: UUID | None = None, limit: int = 100
) -> tuple[RunView, ...]:
    """Children that a run started and waits or waited for, oldest first, the runs of subflows too."""
    first = after or make_id(max((run_id.int >> 80) - 31 * _DAY_MS, 0), 0)
    return tuple(map(run_view, await database.fetch("run_children", run_id, first, _LAST, limit)))


async def loop_output(database: Database, run_id: UUID, node: str) -> Payload | None:
    """The output of a loop, or what it has so far: one value for each item, null for those that did not complete.

    None for a repeat that has completed no iteration. Raises NotFoundError when the node is no loop that has begun.
    """

    async def load(connection: Connection) -> Payload | None:
        group = await connection.fetchrow(database.sql("loop_group"), run_id, node)
        if group is None:
            raise NotFoundError(f"run {run_id}: {node}: is no loop that has begun", hint=f"partita get {run_id}")
        if group["output"] is not None:
            return payload_of(group["output"])
        rows: list[Record] = []
        text = database.sql("loop_outputs")
        while page := await connection.fetch(text, run_id, node, rows[-1]["index"] if rows else -1, PAGE):
            rows += page
        return _so_far(group, rows)

    return await database.read(load, snapshot=True)


def _so_far(group: Record, rows: list[Record]) -> Payload | None:
    """A list or an object, as the items are; a repeat has what it collects, else its last output."""
    over = orjson.loads(group["input"] or "{}").get("items")
    if over is None:
        return _iterated(rows)
    done: dict[int, Json] = {row["index"]: orjson.loads(row["output"] or "null") for row in rows}
    if isinstance(over, dict):
        return Payload.of({key: done.get(index) for index, key in enumerate(sorted(over))})
    return Payload.of([done.get(index) for index in range(len(over))])


def _iterated(rows: list[Record]) -> Payload | None:
    details = [detail_of(row["detail"]) for row in rows]
    collected = [detail.collected.value for detail in details if detail is not None and detail.collected is not None]
    if collected:
        return Payload.of(collected)
    return payload_of(rows[-1]["output"]) if rows else None
