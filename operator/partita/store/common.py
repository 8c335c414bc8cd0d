"""Runs that several filters have in common: the rarest filter's entries, checked for the others where they are read.

Invariant: what is given for a range holds every ended run of it that has all the filters and whose labels are written
down. Method: how far back the newest few entries of each filter reach says which is the rarest; its entries are read
by windows in the server, which looks each up in the indexes of the others and sends only those that fit. So a filter
that one run in a million fits costs as little as one that every run fits, beside any other, and what does not fit does
not travel. Namespaces and definitions that are asked for by themselves have no index of their own: to find out how
rare one is costs as much as a window, and is done only where a window of the others gave next to nothing. Trade-off:
each entry of the rarest filter costs a lookup or two, so that filters that are common alone and fit hardly any run
together are walked through to the end, which is why ``lists`` bounds the work of a page.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final
from uuid import UUID

from partita.store.database import Database
from partita.store.streams import MOST, Id, Merged, Stream, split

_FITS: Final = {"label": "list_label_fits", "person": "list_person_fits", "place": "list_place_fits"}
"""What reads each kind of filter."""
EDGE: Final = 100
"""Entries of each filter by which the rarest is found; fewer than so many are given as they are."""
_POOR: Final = 40
"""Where fewer than one entry in so many fits, another filter may be rarer after all."""
_LOOKUP: Final = 8
"""To look one entry up costs as much as to read so many."""
_LOOKUPS: Final = 1_200
"""Entries of a window of which each is looked up."""
_NEAR: Final = 6
"""A filter of fewer than so many times as many entries as the rarest is read along with it before any is looked up."""


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


@dataclass(slots=True)
class Common(Stream):
    """What several filters have in common."""

    asked: Asked
    merged: Merged | None = None
    """Runs of the namespace or the definition that is asked for without the other."""
    wanted: int = 60
    """Ids that are to be found in all."""
    kind: str = ""
    """The rarest filter: label, person, place or merged; empty while it is not known."""
    labels: tuple[str, ...] = ()
    """The rarest first."""
    near: str = ""
    """A filter that is read along with the rarest one, as it is not much denser: a label or person."""
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
        if not self.kind and (few := await self._choose(database, low)) is not None:
            self._know(few, low, len(few))
            return
        read = self._read_merged if self.kind == "merged" else self._read_indexed
        found, looked_at, reach = await read(database, low)
        self._know(found, reach, looked_at)

    async def _choose(self, database: Database, low: Id) -> list[Id] | None:
        """Find the rarest filter; where it has few entries down to the end, these, unchecked."""
        tried = self.merged if self.looked_at else None
        size = EDGE if tried is None else tried.size
        newest = await self._newest(database, low, size)
        edges = {name: ids[size - 1] if len(ids) >= size else low for name, ids in newest.items()}
        rarest = min(edges, key=lambda name: (edges[name], len(newest[name])))
        if edges[rarest] <= low:
            return newest[rarest]
        self.labels = tuple(sorted(self.asked.labels, key=edges.__getitem__))
        self.kind = "label" if rarest in self.labels else rarest
        self.near = _near(rarest, newest, edges)
        if tried is not None:
            await self._try(tried, database, low, edges[rarest])
        return None

    async def _newest(self, database: Database, low: Id, size: int) -> dict[str, list[Id]]:
        """The newest entries of each filter that has an index: at least so many, unless it has fewer."""
        bounds = (UUID(bytes=low), UUID(bytes=self.reach), size)
        rows = await database.fetch("list_newest", *bounds, *self._values(self.asked.labels))
        return {row["filter"]: split(row["ids"]) for row in rows}

    async def _try(self, merged: Merged, database: Database, low: Id, edge: Id) -> None:
        """See whether the namespace or the definition that is asked for is rarer than what reaches to ``edge``."""
        merged.reset(self.reach)
        await merged.read(database, low)
        if merged.reach < edge:
            self.kind, self.near = "merged", ""
        else:
            self.merged = None

    def _values(self, labels: tuple[str, ...]) -> tuple[object, ...]:
        asked = self.asked
        return asked.statuses, labels, asked.person, asked.namespace, asked.definition

    async def _read_indexed(self, database: Database, low: Id) -> tuple[list[Id], int, Id]:
        block, values = _FITS[self.kind], self._values(self.labels)
        near = (self.near if self.near in self.labels else None, self.asked.person if self.near == "person" else None)
        row = await database.fetchrow(block, *self._window(low), *values, self._missing, *near)
        assert row is not None  # noqa: S101  # for the type checker: the block always gives one row
        return split(row["ids"]), row["looked_at"], row["reach"]

    async def _read_merged(self, database: Database, low: Id) -> tuple[list[Id], int, Id]:
        assert self.merged is not None  # noqa: S101  # for the type checker: it has been read
        if self.merged.reach >= self.reach:
            await self.merged.read(database, low)
        ids, reach = self.merged.ids, self.merged.reach
        self.merged.reset(reach)
        values = (self.asked.statuses, self.labels, self.asked.person)
        fitting = await database.fetchval("list_ids_fit", [UUID(bytes=each) for each in ids], *values)
        return split(fitting), len(ids), reach

    @property
    def _missing(self) -> int:
        """Ids that the next window needs not go beyond."""
        return max(self.wanted - self.passed, self.wanted // 4, 1)

    def _know(self, found: list[Id], reach: Id, looked_at: int) -> None:
        """Take a window, and go by what it gave."""
        self.ids += found
        self.reach = reach
        self.passed += len(found)
        self.looked_at += looked_at
        cheap = bool(self.near) or (self.kind == "person" and not self.labels)
        self.fetched += looked_at * (2 if cheap else _LOOKUP)
        expected = self._missing * self.looked_at // max(1, self.passed)
        self.size = min(MOST if cheap else _LOOKUPS, MOST, max(EDGE, expected * 3 // 2))
        untried = self.merged is not None and self.kind != "merged"
        if not found or (untried and len(found) * _POOR < looked_at):
            self.kind = ""


def _near(rarest: str, newest: dict[str, list[Id]], edges: dict[str, Id]) -> str:
    """The rarest of the other filters, where it is hardly denser: the label or person."""
    others = [name for name in edges if name not in {rarest, "place"}]
    if not others:
        return ""
    second = min(others, key=edges.__getitem__)
    top = max(_time(ids[0]) for ids in newest.values())
    return second if top - _time(edges[rarest]) < _NEAR * (top - _time(edges[second])) else ""


def _time(run_id: Id) -> int:
    """Milliseconds, which an id begins with."""
    return int.from_bytes(run_id[:6])
