"""Which runs may be in a list: streams of ids, newest first, and how they join.

Purpose: the runs that fit a filter are found by indexes, from the newest month on, and the rows of others are not
looked at, unless many of them fit. Invariant: the ids that are handed out for a range hold every run of the range that
fits, and perhaps some that do not (two labels that look alike, an earlier end of a run that was tried again); the
run's own row decides.

A list is made of ended runs, which are one stream, and of what rows move away from into it: unfinished runs, and ends
from before whose labels are not written down. Trade-off: these are read first and the ended ones anew after each such
window, so that what moves meanwhile is in both.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Final
from uuid import UUID

import orjson

from partita.domain.state.rows import TERMINAL, RunStatus
from partita.store.common import Asked, Common
from partita.store.database import Database
from partita.store.streams import FEW, MOST, Id, Indexed, Merged, OpenRuns, Scanned, Stream
from partita.store.views import RunFilter

_LABELS: Final = 5
"""Tags and attributes that are looked up in their index; of more the row decides."""
_FIRST: Final = 4
"""With several filters the first window is so many times as large: one run in many has all of them."""


@dataclass(frozen=True, slots=True)
class Streams:
    """What a list is made of."""

    ended: Stream | None
    moving: tuple[Stream, ...] = ()
    """What rows move away from, into the first."""

    @property
    def every(self) -> tuple[Stream, ...]:
        """In the order in which they are read."""
        return self.moving if self.ended is None else (*self.moving, self.ended)

    @property
    def fetched(self) -> int:
        """Entries that were read in all."""
        return sum(stream.fetched for stream in self.every)


def streams(query: RunFilter, size: int, *, scan: bool = True) -> Streams:
    """The streams of a filter; the first windows have ``size`` ids.

    ``scan``: rows of runs may be looked at as they come, which is best for a page, and not for many of them.
    """
    if query.parent is not None:
        return Streams(Indexed("list_children", (query.parent,), size=size))
    statuses = frozenset(query.statuses or RunStatus)
    asked = _asked(query, [status.value for status in RunStatus if status in statuses & TERMINAL])
    opened = (_open_runs(query, size),) if statuses - TERMINAL else ()
    if not asked.statuses:
        return Streams(None, opened)
    labelled = asked.labels or asked.person is not None
    if not labelled and not query.statuses and asked.namespace is None and asked.definition is None:
        return Streams(Indexed("list_all", size=size))
    old = (Indexed("list_unlisted", size=size),) if labelled else ()
    ended = _ended(asked, size)
    if scan and isinstance(ended, Merged):
        values = ([status.value for status in query.statuses] or None, asked.namespace, asked.definition)
        ended = Scanned(values, ended, size, size=FEW)
    return Streams(ended, (*opened, *old))


def _asked(query: RunFilter, ends: list[str]) -> Asked:
    tags = [f"#{tag}" for tag in dict.fromkeys(query.tags)]
    labels = [*tags, *(f"{name}={value}" for name, value in (query.attributes or {}).items())]
    return Asked(ends, tuple(labels[:_LABELS]), query.started_by or None, query.namespace, query.definition)


def _open_runs(query: RunFilter, size: int) -> Stream:
    values = (query.namespace, query.definition, query.started_by or None, tags_text(query), attributes_text(query))
    return OpenRuns(values, size=size)


def _ended(asked: Asked, size: int) -> Stream:
    """Ended runs: the index of the one filter, or what several have in common."""
    merged = _merged(asked, size)
    filters = len(asked.labels) + (asked.person is not None) + (asked.placed or merged is not None)
    if filters > 1:
        first = min(MOST, _FIRST * size)
        return Common(asked, _merged(asked, first), size, size=first)
    if asked.labels:
        return Indexed("list_label", (asked.statuses, asked.labels[0]), size=size)
    if asked.person is not None:
        return Indexed("list_person", (asked.statuses, asked.person), size=size)
    if asked.placed:
        return Indexed("list_place", (asked.statuses, asked.namespace, asked.definition), size=size)
    return merged or Merged("list_ended", (asked.statuses,), size=size)


def _merged(asked: Asked, size: int) -> Merged | None:
    """Runs of a namespace or of a definition, where only one of them is asked for."""
    if (asked.namespace is None) == (asked.definition is None):
        return None
    if asked.namespace is not None:
        return Merged("list_namespace", (asked.statuses, asked.namespace), size=size)
    return Merged("list_definition", (asked.statuses, asked.definition), size=size)


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
    for stream in chosen.every:
        stream.reset(top)
    while bottom < top:
        found, top = await _step(database, chosen, bottom, top)
        yield [UUID(bytes=run_id) for run_id in sorted(found, reverse=True)], UUID(bytes=top)


async def _step(database: Database, chosen: Streams, bottom: Id, top: Id) -> tuple[set[Id], Id]:
    """The next candidates below ``top``, and how far down they are complete."""
    reach = bottom
    for stream in chosen.every:
        if stream.reach >= top:
            await stream.read(database, bottom)
            if chosen.ended is not None and stream is not chosen.ended:
                chosen.ended.reset(top)
        reach = max(reach, stream.reach)
    return {run_id for stream in chosen.every for run_id in stream.take(reach)}, reach
