"""Which runs may be in a list: streams of ids, newest first, and what several filters have in common.

Purpose: the runs that fit a filter are found by indexes, from the newest month on, and the rows of others are not
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
from dataclasses import dataclass, field, replace
from typing import Final, TypeAlias
from uuid import UUID

import orjson

from partita.domain.ids import Month
from partita.domain.state.rows import TERMINAL, RunStatus
from partita.store.database import Database
from partita.store.views import RunFilter

LOOKED_AT: Final = 10_000
"""Unfinished runs that are looked at for a window; there is no index over them."""
_GROWTH: Final = 4
_MOST: Final = 2_000
"""Ids of a window."""
_FEW: Final = 100
"""So many candidates are looked up one by one rather than compared with a further window of another stream."""
_DENSE: Final = 8
"""A stream of so many times as many ids as the rarest is not read on: to look a run up costs as much as so many ids."""
_DENSE_MERGED: Final = 6
"""The same for a stream that is merged from many places of an index."""
_LABELS: Final = 5
"""Tags and attributes that are streams of their own; of more the row decides."""
Id: TypeAlias = bytes
"""Of a run. Bytes order as ids do, and cost a fifth."""


def split(window: bytes | None, most: int) -> list[Id]:
    """The newest ids of a window, in order."""
    found = [window[at : at + 16] for at in range(0, len(window), 16)] if window else []
    found.sort(reverse=True)
    return found[:most]


def before(ids: Sequence[Id], edge: Id) -> int:
    """How many of these ids, which are in order, are as new as ``edge`` or newer."""
    low, high = 0, len(ids)
    while low < high:
        middle = (low + high) // 2
        low, high = (middle + 1, high) if ids[middle] >= edge else (low, middle)
    return low


@dataclass(slots=True)
class Stream:
    """Ids from one index, newest first."""

    block: str
    """Takes the range, the number of ids, and then ``values``."""
    values: tuple[object, ...] = ()
    size: int = 100
    """Ids of the next window."""
    merged: bool = False
    """Whether it comes from many places of an index."""
    ids: list[Id] = field(default_factory=list)
    known: set[Id] = field(default_factory=set)
    """The same, and others that have been dealt with."""
    reach: Id = b""
    """Every id of the stream from here on is known, as far as the last reset."""
    dense: bool = False
    """Whether it is left to the runs' rows."""
    fetched: int = 0
    """Ids that were read in all."""

    def reset(self, high: Id) -> None:
        """Begin anew below this id."""
        self.ids, self.known, self.reach = [], set(), high

    def drop(self, high: Id) -> None:
        """Forget ids that have been dealt with: those from ``high`` on."""
        del self.ids[: before(self.ids, high)]
        self.reach = min(self.reach, high)

    async def read(self, database: Database, low: Id) -> None:
        """Read the next window, down to ``low`` at most."""
        found = split(await database.fetchval(self.block, *self._window(low), *self.values), self.size)
        self._add(found)
        self.reach = found[-1] if len(found) >= self.size else low
        self._grow()

    def _window(self, low: Id) -> tuple[UUID, UUID, int]:
        return UUID(bytes=low), UUID(bytes=self.reach), self.size

    def _add(self, found: list[Id]) -> None:
        self.ids += found
        self.known.update(found)
        self.fetched += len(found)

    def _grow(self) -> None:
        self.size = max(self.size, min(self.size * _GROWTH, _MOST))


@dataclass(slots=True)
class OpenRuns(Stream):
    """Unfinished runs, of which no more than ``LOOKED_AT`` are looked at for a window."""

    async def read(self, database: Database, low: Id) -> None:
        """Read the next window, down to ``low`` at most."""
        rows = await database.fetch(self.block, *self._window(low), LOOKED_AT, *self.values)
        self._add([row["id"] for row in rows if row["fits"]])
        whole = len(rows) < self.size and not any(row["edge"] for row in rows)
        self.reach = low if whole else rows[-1]["id"]
        self._grow()


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


def streams(query: RunFilter, size: int, months: Sequence[Month]) -> Streams:
    """The streams of a filter; the first windows have ``size`` ids. ``months``: those that have runs, newest first."""
    if query.parent is not None:
        return Streams((Stream("list_children", (query.parent,), size),), ())
    statuses = frozenset(query.statuses or RunStatus)
    ends = [status.value for status in RunStatus if status in statuses & TERMINAL]
    opened = (_open_runs(query, size),) if statuses - TERMINAL else ()
    ended = _ended(query, ends, size, months) if ends else ()
    if ends and not ended:
        if not query.statuses:
            return Streams((Stream("list_all", (), size),), ())
        ended = (_merged("list_ended", (ends,), size, months),)
    if len(ended) > 1:  # of which one run in many has what the others have
        ended = tuple(replace(stream, size=max(size, min(_MOST, size * _GROWTH))) for stream in ended)
    indexed = [stream for stream in ended if stream.block in {"list_person", "list_label"}]
    old = (Stream("list_unlisted", (), size),) if indexed else ()
    return Streams(ended, opened + old)


def needs_months(query: RunFilter) -> bool:
    """Whether a stream of the filter walks through the months by itself."""
    walked = query.namespace is None or query.definition is None
    alone = query.started_by or query.tags or query.attributes or not query.statuses
    some = not query.statuses or not TERMINAL.isdisjoint(query.statuses)
    named = query.namespace is not None or query.definition is not None
    return query.parent is None and some and walked and (named or not alone)


def _open_runs(query: RunFilter, size: int) -> Stream:
    values = (query.namespace, query.definition, query.started_by or None, tags_text(query), attributes_text(query))
    return OpenRuns("list_open_runs", values, size)


def _ended(query: RunFilter, ends: list[str], size: int, months: Sequence[Month]) -> tuple[Stream, ...]:
    """Streams of ends, those first that tend to be rare; none where only the status or nothing is asked for."""
    found = [Stream("list_label", (ends, label), size) for label in _labels(query)[:_LABELS]]
    if query.started_by:
        found.append(Stream("list_person", (ends, query.started_by), size))
    if query.namespace is not None and query.definition is not None:
        found.append(Stream("list_place", (ends, query.namespace, query.definition), size))
    elif query.namespace is not None:
        found.append(_merged("list_namespace", (ends, query.namespace), size, months))
    elif query.definition is not None:
        found.append(_merged("list_definition", (ends, query.definition), size, months))
    return tuple(found)


def _merged(block: str, values: tuple[object, ...], size: int, months: Sequence[Month]) -> Stream:
    bounds = ([month.lower for month in months], [month.upper for month in months])
    return Stream(block, (*values, *bounds), size, merged=True)


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
    database: Database, chosen: Streams, low: UUID, high: UUID
) -> AsyncIterator[tuple[list[UUID], UUID]]:
    """Ids between ``low`` and ``high`` that may be in the list, newest first, and down to where they are complete."""
    bottom, top = low.bytes, high.bytes
    for stream in (*chosen.all_of, *chosen.any_of):
        stream.reset(top)
    while bottom < top:
        found, top = await _step(database, chosen, bottom, top)
        yield [UUID(bytes=run_id) for run_id in sorted(found, reverse=True)], UUID(bytes=top)


async def _step(database: Database, chosen: Streams, bottom: Id, top: Id) -> tuple[set[Id], Id]:
    """The next candidates below ``top``, and how far down they are complete."""
    reach = bottom
    for stream in chosen.any_of:
        if stream.reach >= top:
            await stream.read(database, bottom)
            for later in chosen.all_of:
                later.reset(top)
        reach = max(reach, stream.reach)
    found: set[Id] = set()
    if chosen.all_of:
        rarest = await _rarest(database, chosen.all_of, bottom, top)
        reach = max(reach, rarest.reach)
        found = await _common(database, chosen.all_of, rarest, bottom, reach)
    for stream in chosen.any_of:
        found.update(stream.ids[before(stream.ids, top) : before(stream.ids, reach)])
    for stream in (*chosen.all_of, *chosen.any_of):
        stream.drop(reach)
    return found, reach


async def _rarest(database: Database, every: tuple[Stream, ...], bottom: Id, top: Id) -> Stream:
    """The stream that reaches furthest down. Once one has few ids down to the end, no other needs to be read."""
    rarest = None
    for stream in every:
        if stream.dense:
            continue
        if stream.reach >= top:
            await stream.read(database, bottom)
        if rarest is None or (stream.reach, len(stream.ids)) < (rarest.reach, len(rarest.ids)):
            rarest = stream
        if rarest.reach <= bottom and len(rarest.ids) <= _FEW:
            break
    assert rarest is not None  # noqa: S101  # for the type checker: the rarest is never dense
    return rarest


async def _common(database: Database, every: tuple[Stream, ...], rarest: Stream, bottom: Id, reach: Id) -> set[Id]:
    """What the rarest stream has down to ``reach`` and every other one has, or may have."""
    found = set(rarest.ids[: before(rarest.ids, reach)])
    for stream in sorted(every, key=lambda each: each.reach):  # the rarer, the more an entry strikes out
        if stream is rarest:
            continue
        decided = {run_id for run_id in found if run_id >= stream.reach}
        for _ in range(_DENSE):
            if len(found) - len(decided) <= _FEW or stream.reach <= reach or stream.dense:
                break
            most = _DENSE_MERGED if stream.merged else _DENSE
            stream.dense = bool(stream.ids) and len(decided) * most < len(found)
            if not stream.dense:
                await stream.read(database, bottom)
                decided = {run_id for run_id in found if run_id >= stream.reach}
        found -= decided - stream.known
    return found
