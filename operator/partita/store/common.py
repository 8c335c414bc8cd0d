"""Runs that several filters have in common: entries of one filter, checked for the others where they are read.

Invariant: what is given for a range holds every ended run of it that has all the filters and whose labels are written
down. Method: entries of labels say by themselves what else lists ask for, and entries of a person have namespace and
definition; how far back the newest few entries of each filter reach says which filter costs least. Its entries are
read by windows in the server, and only those that fit travel. So a filter that one run in a million fits costs as
little as one that every run fits, beside any other. Namespaces and definitions that are asked for by themselves have no
index of their own: to find out how rare one is costs as much as a window, and is done only where a window of the others
gave next to nothing. Trade-off: filters that are common alone and fit hardly any run together are walked through to the
end, which is why ``lists`` bounds the work of a page.
"""

from __future__ import annotations

import asyncio
import itertools
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from partita.store.database import Database, Record
from partita.store.streams import SIDE_BY_SIDE, Id, Merged, Stream, split

_FITS: Final = {"label": "list_label_fits", "person": "list_person_fits", "place": "list_place_fits"}
"""What reads each kind of filter."""
EDGE: Final = 100
"""Entries of each filter by which the rarest is found."""
_POOR: Final = 40
"""Where fewer than one entry in so many fits, another filter may be rarer after all."""
_LOOKUP: Final = 8
"""To look something up for an entry takes as long as to read so many."""
_UNSURE: Final = 16
"""Rather than such entries, which are looked up all over the disk, so many times more of others are read."""
_LOOKUPS: Final = 1_200
"""Entries of a window for which something is looked up."""
_AT_ONCE: Final = 1_200
"""Entries of the first window where nothing is."""
WIDE: Final = 7_000
"""Entries of a later window where nothing is."""
ALONE: Final = 2_000
"""Entries that are not worth a second connection."""
_ENDLESS: Final = b"\xff"
"""No id of a run is so large."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What ended runs are asked for; None asks for nothing."""

    statuses: list[str]
    labels: tuple[str, ...] = ()
    """Tags and attributes, as ``run_labels`` has them."""
    person: str | None = None
    namespace: str | None = None
    definition: str | None = None

    @property
    def placed(self) -> bool:
        """Whether namespace and definition are both asked for, which is what an index begins with."""
        return self.namespace is not None and self.definition is not None

    @property
    def indexed(self) -> tuple[str, ...]:
        """The filters that have an index, as ``list_newest`` calls them."""
        person = () if self.person is None else ("person",)
        return (*self.labels, *person, *(("place",) if self.placed else ()))


@dataclass(slots=True)
class Common(Stream):
    """What several filters have in common."""

    asked: Asked
    merged: Merged | None = None
    """Runs of the namespace or the definition that is asked for without the other."""
    wanted: int = 60
    """Ids that are to be found in all."""
    kind: str = ""
    """Whose entries are read: label, person, place or merged; empty while it is not known."""
    labels: tuple[str, ...] = ()
    """The rarest first."""
    unsure: bool = False
    """Whether something had to be looked up for the entries of the last window."""
    pace: float | None = None
    """Milliseconds between two entries of the last window; None where it is not known."""
    passed: int = 0
    """Entries that fit, of all that were looked at."""
    looked_at: int = 0

    def reset(self, high: Id) -> None:
        """Begin anew below this id."""
        Stream.reset(self, high)
        if self.merged is not None:
            self.merged.reset(high)

    async def read(self, database: Database, low: Id) -> None:
        """Read the next window, down to ``low`` at most."""
        if not self.kind:
            await self._choose(database, low)
        await (self._read_merged if self.kind == "merged" else self._read_indexed)(database, low)

    async def _choose(self, database: Database, low: Id) -> None:
        """Find the filter to read."""
        tried, names = self.merged if self.looked_at else None, self.asked.indexed
        if len(names) == 1 and tried is None:
            self._take(names[0])
            return
        bounds = (*self._window(low)[:2], EDGE if tried is None else tried.size)
        rows = await database.fetch("list_newest", *bounds, *self._values(self.asked.labels))
        newest = {row["filter"]: split(row["ids"]) for row in rows}
        edges = {name: ids[bounds[2] - 1] if len(ids) >= bounds[2] else low for name, ids in newest.items()}
        self.labels = tuple(sorted(self.asked.labels, key=edges.__getitem__))
        top = max((_time(ids[0]) for ids in newest.values() if ids), default=0)
        costs = {name: 1 if self._says_all(name) else _UNSURE for name in edges}
        self._take(min(edges, key=lambda name: costs[name] / (1 + max(0, top - _time(edges[name])))))
        if tried is not None:
            await self._try(tried, database, low, min(edges.values()))

    def _take(self, name: str) -> None:
        self.labels = self.labels or self.asked.labels
        self.kind = "label" if name in self.labels else name
        self.unsure = not self._says_all(name)
        if not self.unsure and not self.looked_at:
            self.size = max(self.size, min(WIDE, _AT_ONCE))

    def _says_all(self, name: str) -> bool:
        """Whether entries of a filter have what the others ask for."""
        return name in self.asked.labels or (name == "person" and not self.asked.labels)

    async def _try(self, merged: Merged, database: Database, low: Id, edge: Id) -> None:
        """See whether the namespace or the definition that is asked for is rarer than what reaches to ``edge``."""
        merged.reset(self.reach)
        await merged.read(database, low)
        if merged.reach < edge:
            self.kind = "merged"
        else:
            self.merged = None

    def _values(self, labels: tuple[str, ...]) -> tuple[object, ...]:
        asked = self.asked
        return asked.statuses, labels, asked.person, asked.namespace, asked.definition

    async def _read_indexed(self, database: Database, low: Id) -> None:
        rows = await asyncio.gather(*(self._fits(database, *bounds) for bounds in self._slices(database, low)))
        found: list[Id] = []
        reach, self.unsure = self.reach, False
        for bottom, row in rows:
            found += split(row["ids"])
            reach = row["reach"]
            self.unsure = self.unsure or row["unsure"]
            if reach > bottom:
                break
        if self.unsure:
            self._know(await self._looked_up(database, found), reach, len(found))
        else:
            self._know(found, reach, self.size)

    def _slices(self, database: Database, low: Id) -> list[tuple[Id, Id]]:
        """The range from ``low`` on, or what of it probably has as many entries as a large window, in equal parts."""
        if self.unsure or self.pace is None or self.size < ALONE or database.settings.pooled:
            return [(low, self.reach)]
        top, step = _time(self.reach), max(1, round(self.pace * self.size / SIDE_BY_SIDE))
        ends = [max(top - step * place, 0).to_bytes(6).ljust(16, b"\0") for place in range(1, SIDE_BY_SIDE + 1)]
        edges = [self.reach, *(end for end in ends if end > low)]
        edges += [low] if len(edges) <= SIDE_BY_SIDE else []
        return [(bottom, high) for high, bottom in itertools.pairwise(edges)]

    async def _fits(self, database: Database, low: Id, high: Id) -> tuple[Id, Record]:
        bounds = (UUID(bytes=low), UUID(bytes=high), self.size)
        enough = self.size if self.unsure else self._missing
        row = await database.fetchrow(_FITS[self.kind], *bounds, *self._values(self.labels), enough)
        assert row is not None  # noqa: S101  # for the type checker: the block always gives one row
        return low, row

    async def _read_merged(self, database: Database, low: Id) -> None:
        assert self.merged is not None  # noqa: S101  # for the type checker: it has been read
        if self.merged.reach >= self.reach:
            await self.merged.read(database, low)
        ids, reach = self.merged.ids, self.merged.reach
        self.merged.reset(reach)
        self.unsure = True
        self._know(await self._looked_up(database, ids), reach, len(ids))

    async def _looked_up(self, database: Database, ids: list[Id]) -> list[Id]:
        """Those of them that have all that is asked for."""
        return split(
            await database.fetchval("list_ids_fit", [UUID(bytes=each) for each in ids], *self._values(self.labels))
        )

    @property
    def _missing(self) -> int:
        """Ids that the next window needs not go beyond."""
        return max(self.wanted - self.passed, self.wanted // 4, 1)

    def _know(self, found: list[Id], reach: Id, looked_at: int) -> None:
        """Take a window of so many entries at most, and go by what it gave."""
        self.ids += found
        span = _time(self.reach) - _time(reach)
        self.pace = span / max(1, looked_at) if self.reach < _ENDLESS else None
        self.reach = reach
        self.passed += len(found)
        self.looked_at += looked_at
        self.fetched += looked_at * (_LOOKUP if self.unsure else 1)
        expected = self._missing * self.looked_at // max(1, self.passed)
        self.size = min(_LOOKUPS if self.unsure else WIDE, max(EDGE, expected * 3 // 2))
        untried = self.merged is not None and self.kind != "merged"
        if untried and len(found) * _POOR < looked_at:
            self.kind = ""


def _time(run_id: Id) -> int:
    """Milliseconds, which an id begins with."""
    return int.from_bytes(run_id[:6])
