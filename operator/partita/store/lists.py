"""Lists of runs: pages that cost what they show, whatever the database holds.

Invariant: a page begins below the last id of the one before, so that nothing is skipped or counted to get there, and
what happens to runs meanwhile neither repeats nor hides one: the order is that of ids, which never change. Ids begin
with their time, and those of one millisecond are ordered by their other bits. Trade-off: a page looks at a bounded
number of rows; where filters that are common by themselves fit no run together, it is short or empty, with a cursor.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Final
from uuid import UUID

from partita.domain.ids import make_id, time_of, to_milliseconds
from partita.store.candidates import attributes_text, candidates, streams, tags_text
from partita.store.database import Database
from partita.store.reads import run_view
from partita.store.streams import SIDE_BY_SIDE
from partita.store.views import RunCount, RunFilter, RunPage, RunView

ROWS: Final = 1_000
"""Rows of runs that a page looks at; of children 10,000, as each belongs to the run that is asked about."""
CHILD_ROWS: Final = 10_000
IDS: Final = 8_000
"""Entries of indexes that a page reads; with so many rows, what 20 ms suffice for."""
_AHEAD_MS: Final = 32 * 86_400_000
"""Runs are dated at most so far ahead of the database's clock."""
_COUNTED: Final = 1_000
"""Ids that are counted at a time."""
_SPARE: Final = 2
"""Ids that are read beyond a page, for those that turn out not to fit."""
_SLICE: Final = 10
"""Rows that are not worth a second connection."""
_FIRST: Final = UUID(int=0)
_LAST: Final = UUID(int=(1 << 128) - 1)


async def list_runs(database: Database, query: RunFilter, *, limit: int = 50, cursor: UUID | None = None) -> RunPage:
    """The next page of runs, newest first, at most ``limit``."""
    found: list[RunView] = []
    waiting: list[UUID] = []
    rows, most = 0, max(CHILD_ROWS if query.parent else ROWS, 2 * limit)
    low, high = _range(query, cursor)
    chosen = streams(query, limit + _SPARE)
    async for ids, reach in candidates(database, chosen, low, high):
        waiting += ids
        last = reach <= low or chosen.fetched >= max(IDS, 2 * limit)
        if not last and len(waiting) < limit - len(found):
            continue
        for part in _parts(waiting, limit + _SPARE):
            found += await _rows(database, query, part)
            rows += len(part)
            if len(found) >= limit:
                return RunPage(tuple(found[:limit]), found[limit - 1].id)
            if rows >= most:
                return RunPage(tuple(found), part[-1])
        waiting = []
        if last and reach > low:
            return RunPage(tuple(found), reach)
    return RunPage(tuple(found), None)


async def count_runs(database: Database, query: RunFilter, *, most: int = 10_000) -> RunCount:
    """How many runs fit, counted up to ``most``, and no further than that takes ten times as many rows."""
    found = rows = 0
    low, high = _range(query, None)
    chosen = streams(query, _COUNTED, scan=False)
    async for ids, _ in candidates(database, chosen, low, high):
        for part in _parts(ids, _COUNTED):
            found += await database.fetchval("list_count", part, *_filters(query))
            rows += len(part)
        if found > most or max(rows, chosen.fetched // 10) > 10 * most:
            return RunCount(min(found, most), exact=False)
    return RunCount(min(found, most), exact=found <= most)


def _range(query: RunFilter, cursor: UUID | None) -> tuple[UUID, UUID]:
    """Ids from the first (included) to the last (excluded) that can be in the list."""
    low = make_id(to_milliseconds(query.created_from), 0) if query.created_from else _FIRST
    high = make_id(to_milliseconds(query.created_before), 0) if query.created_before else _LAST
    if query.parent is not None:  # its children are younger, but its own id may be dated ahead of the clock
        low = max(low, make_id(max(0, to_milliseconds(time_of(query.parent)) - _AHEAD_MS), 0))
    return low, high if cursor is None else min(high, UUID(int=cursor.int))


def _parts(ids: list[UUID], size: int) -> Iterator[list[UUID]]:
    """The ids in pieces that become larger, as a page may need only the first."""
    while ids:
        yield ids[:size]
        ids, size = ids[size:], size * 4


async def _rows(database: Database, query: RunFilter, ids: list[UUID]) -> list[RunView]:
    """The rows of these ids that fit, in order."""
    size = len(ids) if database.settings.pooled else max(_SLICE, -(-len(ids) // SIDE_BY_SIDE))
    filters = _filters(query)
    slices = [ids[at : at + size] for at in range(0, len(ids), size)]
    read = await asyncio.gather(*(database.fetch("list_rows", each, *filters) for each in slices))
    return [run_view(row) for rows in read for row in rows]


def _filters(query: RunFilter) -> tuple[object, ...]:
    """What the run's own row is compared with."""
    statuses = [status.value for status in query.statuses] or None
    labels = (tags_text(query), attributes_text(query))
    return (query.namespace, query.definition, statuses, *labels, query.started_by, query.parent)
