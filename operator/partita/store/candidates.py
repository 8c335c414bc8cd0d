"""Which runs may be in a list: streams of ids, newest first, and what several filters have in common.

Purpose: the runs that fit a filter are found by indexes, month by month from the newest, and the rows of others are not
looked at. Invariant: the ids that are handed out for a range hold every run of the range that fits, and perhaps some
that do not (two labels that look alike, an earlier end of a run that was tried again); the run's own row decides.

Method: each filter that has an index is a stream. A window of each is read; the stream that reaches furthest back with
it is the rarest and gives the candidates, the others strike out what they do not have as far as they reach. So a filter
that one run in a million fits costs as little as one that every run fits, beside any other. Trade-off: filters that are
common by themselves and fit no run together are walked side by side to the end, which is why ``lists`` bounds the work
of a page.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from typing import Final
from uuid import UUID

import orjson

from partita.domain.ids import Month
from partita.domain.state.rows import TERMINAL, RunStatus
from partita.store.database import Database
from partita.store.views import RunFilter

LOOKED_AT: Final = 10_000
"""Unfinished runs that are looked at for a window; there is no index over them."""
_GROWTH: Final = 4
_MOST: Final = 1_000
"""Ids of a window."""
_MOST_MERGED: Final = 200
"""Ids of a window that is merged from many places of an index."""
_UNKNOWN: Final = 100
"""Candidates that may be left undecided for another stream before it is read further."""
_LABELS: Final = 5
"""Tags and attributes that are streams of their own; of more the row decides."""
_LAST: Final = UUID(int=(1 << 128) - 1)


@dataclass(slots=True)
class Stream:
    """Ids from one index, newest first."""

    block: str
    """Takes the range, the number of ids, and then ``values``."""
    values: tuple[object, ...] = ()
    size: int = 100
    """Ids of the next window."""
    most: int = _MOST
    monthly: bool = False
    """Whether the block also takes the month's range."""
    ids: list[UUID] = field(default_factory=list)
    known: set[UUID] = field(default_factory=set)
    reach: UUID = _LAST
    """Every id of the stream from here on is known, as far as the last reset."""
    fetched: int = 0
    """Ids that were read in all."""

    def reset(self, high: UUID) -> None:
        """Begin anew below this id."""
        self.ids, self.known, self.reach = [], set(), high

    def drop(self, high: UUID) -> None:
        """Forget ids that have been dealt with: those from ``high`` on."""
        self.ids = [run_id for run_id in self.ids if run_id < high]
        self.known = set(self.ids)
        self.reach = min(self.reach, high)

    async def read(self, database: Database, low: UUID, month: Month | None) -> None:
        """Read the next window, down to ``low`` at most."""
        bounds = (month.lower, month.upper) if self.monthly and month else ()
        rows = await database.fetch(self.block, low, self.reach, self.size, *self.values, *bounds)
        found = [UUID(int=row[0].int) for row in rows]
        self.fetched += len(found)
        self.reach = found[-1] if len(found) >= self.size else low
        self.ids += found
        self.known.update(found)
        self.size = max(self.size, min(self.size * _GROWTH, self.most))


@dataclass(slots=True)
class OpenRuns(Stream):
    """Unfinished runs, of which no more than ``LOOKED_AT`` are looked at for a window."""

    async def read(self, database: Database, low: UUID, month: Month | None) -> None:
        """Read the next window, down to ``low`` at most."""
        del month
        rows = await database.fetch(self.block, low, self.reach, self.size, LOOKED_AT, *self.values)
        found = [UUID(int=row["id"].int) for row in rows]
        fitting = [run_id for run_id, row in zip(found, rows, strict=True) if row["fits"]]
        whole = len(found) < self.size and not any(row["edge"] for row in rows)
        self.fetched += len(found)
        self.reach = low if whole else found[-1]
        self.ids += fitting
        self.known.update(fitting)
        self.size = max(self.size, min(self.size * _GROWTH, self.most))


@dataclass(frozen=True, slots=True)
class Streams:
    """What a list is made of: runs that all of the first streams have, and those that any of the others has."""

    all_of: tuple[Stream, ...]
    any_of: tuple[Stream, ...]
    """What rows move away from, into the first: read before them, so that what moves meanwhile is in both."""

    @property
    def fetched(self) -> int:
        """Ids that were read in all."""
        return sum(stream.fetched for stream in (*self.all_of, *self.any_of))


def streams(query: RunFilter, size: int) -> Streams:
    """The streams of a filter; the first windows have ``size`` ids."""
    if query.parent is not None:
        return Streams((Stream("list_children", (query.parent,), size),), ())
    statuses = frozenset(query.statuses or RunStatus)
    ends = [status.value for status in RunStatus if status in statuses & TERMINAL]
    opened = (_open_runs(query, size),) if statuses - TERMINAL else ()
    ended = _ended(query, ends, size) if ends else ()
    if ends and not ended:
        if not query.statuses:
            return Streams((Stream("list_all", (), size),), ())
        ended = (_merged("list_ended", (ends,), size),)
    indexed = [stream for stream in ended if stream.block in {"list_person", "list_label"}]
    old = (Stream("list_unlisted", (), size),) if indexed else ()
    return Streams(ended, opened + old)


def _open_runs(query: RunFilter, size: int) -> Stream:
    values = (query.namespace, query.definition, query.started_by or None, tags_text(query), attributes_text(query))
    return OpenRuns("list_open_runs", values, size)


def _ended(query: RunFilter, ends: list[str], size: int) -> tuple[Stream, ...]:
    """Streams of ends; none where only the status or nothing is asked for."""
    found: list[Stream] = []
    if query.namespace is not None and query.definition is not None:
        found.append(Stream("list_place", (ends, query.namespace, query.definition), size))
    elif query.namespace is not None:
        found.append(_merged("list_namespace", (ends, query.namespace), size))
    elif query.definition is not None:
        found.append(_merged("list_definition", (ends, query.definition), size))
    if query.started_by:
        found.append(Stream("list_person", (ends, query.started_by), size))
    return (*found, *(Stream("list_label", (ends, label), size) for label in _labels(query)[:_LABELS]))


def _merged(block: str, values: tuple[object, ...], size: int) -> Stream:
    return Stream(block, values, size, max(size, _MOST_MERGED), monthly=True)


def _labels(query: RunFilter) -> list[str]:
    """What is asked for of tags and attributes, as ``run_labels`` has it."""
    tags = [f"#{tag}" for tag in dict.fromkeys(query.tags)]
    return [*tags, *(f"{name}={value}" for name, value in (query.attributes or {}).items())]


def tags_text(query: RunFilter) -> str | None:
    """Tags as ``tags @>`` compares them."""
    return orjson.dumps(query.tags).decode() if query.tags else None


def attributes_text(query: RunFilter) -> str | None:
    """Attributes as ``attributes @>`` compares them."""
    return orjson.dumps(dict(query.attributes)).decode() if query.attributes else None


async def candidates(
    database: Database, chosen: Streams, low: UUID, high: UUID, months: Sequence[Month]
) -> AsyncIterator[tuple[list[UUID], UUID]]:
    """Ids between ``low`` and ``high`` that may be in the list, newest first, and down to where they are complete.

    ``months``: those that have runs, newest first; each step is within one.
    """
    for stream in chosen.any_of:
        stream.reset(high)
    for month in months:
        bottom, top = max(low, month.lower), min(high, month.upper)
        for stream in chosen.all_of:
            stream.reset(top)
        while bottom < top:
            found, top = await _step(database, chosen, (low, bottom, top), month)
            yield found, top


async def _step(
    database: Database, chosen: Streams, limits: tuple[UUID, UUID, UUID], month: Month
) -> tuple[list[UUID], UUID]:
    """The next candidates below the last of ``limits``, and how far down they are complete."""
    low, bottom, top = limits
    reach = bottom
    for stream in chosen.any_of:
        if stream.reach >= top:
            await stream.read(database, low, None)
            for later in chosen.all_of:
                later.reset(top)
        reach = max(reach, stream.reach)
    found: set[UUID] = set()
    if chosen.all_of:
        reach, found = await _common(database, chosen.all_of, (bottom, top, reach), month)
    for stream in chosen.any_of:
        found.update(run_id for run_id in stream.ids if reach <= run_id < top)
    for stream in (*chosen.all_of, *chosen.any_of):
        stream.drop(reach)
    return sorted(found, reverse=True), reach


async def _common(
    database: Database, every: tuple[Stream, ...], limits: tuple[UUID, UUID, UUID], month: Month
) -> tuple[UUID, set[UUID]]:
    """What every stream has, or may have, and how far down; not further than the last of ``limits``."""
    bottom, top, least = limits
    for stream in every:
        if stream.reach >= top:
            await stream.read(database, bottom, month)
    rarest = min(every, key=lambda stream: stream.reach)
    reach = max(rarest.reach, least)
    found = {run_id for run_id in rarest.ids if run_id >= reach}
    for stream in every:
        if stream is not rarest:
            found = await _struck(database, stream, found, (bottom, reach), month)
    return reach, found


async def _struck(
    database: Database, stream: Stream, found: set[UUID], limits: tuple[UUID, UUID], month: Month
) -> set[UUID]:
    """Candidates without those that a stream is known not to have; it is read further while it would decide many."""
    bottom, reach = limits
    for _ in range(_GROWTH):
        found = {run_id for run_id in found if run_id < stream.reach or run_id in stream.known}
        undecided = sum(run_id < stream.reach for run_id in found)
        if undecided <= _UNKNOWN or stream.reach <= reach:
            break
        await stream.read(database, bottom, month)
    return {run_id for run_id in found if run_id < stream.reach or run_id in stream.known}
