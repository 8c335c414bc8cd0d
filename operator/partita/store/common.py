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
"""To look something up for an entry costs as much as to read so many."""
_LOOKUPS: Final = 1_200
"""Entries of a window for which something is looked up."""
_AT_ONCE: Final = 600
"""Entries of the first window where nothing is."""


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
            self._know(few, low, len(few), 0)
        elif self.kind == "merged":
            await self._read_merged(database, low)
        else:
            await self._read_indexed(database, low)

    async def _choose(self, database: Database, low: Id) -> list[Id] | None:
        """Find the filter to read; where one has few entries down to the end, these, unchecked."""
        tried, names = self.merged if self.looked_at else None, self.asked.indexed
        if len(names) == 1 and tried is None:
            self._take(names[0])
            return None
        size = EDGE if tried is None else tried.size
        newest = await self._newest(database, low, size)
        edges = {name: ids[size - 1] if len(ids) >= size else low for name, ids in newest.items()}
        rarest = min(edges, key=lambda name: (edges[name], len(newest[name])))
        if edges[rarest] <= low:
            return newest[rarest]
        self.labels = tuple(sorted(self.asked.labels, key=edges.__getitem__))
        self._take(self._cheapest(newest, edges))
        if tried is not None:
            await self._try(tried, database, low, edges[rarest])
        return None

    def _take(self, name: str) -> None:
        self.labels = self.labels or self.asked.labels
        self.kind = "label" if name in self.labels else name
        if self._says_all(name) and not self.looked_at:
            self.size = max(self.size, min(MOST, _AT_ONCE))

    def _cheapest(self, newest: dict[str, list[Id]], edges: dict[str, Id]) -> str:
        """Rare entries are few to read; of some it has to be looked up what else they have."""
        top = max(_time(ids[0]) for ids in newest.values())
        costs = {name: 1 if self._says_all(name) else _LOOKUP for name in edges}
        return min(edges, key=lambda name: costs[name] / (1 + top - _time(edges[name])))

    def _says_all(self, name: str) -> bool:
        """Whether entries of a filter have what the others ask for."""
        return name in self.asked.labels or (name == "person" and not self.asked.labels)

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
            self.kind = "merged"
        else:
            self.merged = None

    def _values(self, labels: tuple[str, ...]) -> tuple[object, ...]:
        asked = self.asked
        return asked.statuses, labels, asked.person, asked.namespace, asked.definition

    async def _read_indexed(self, database: Database, low: Id) -> None:
        row = await database.fetchrow(_FITS[self.kind], *self._window(low), *self._values(self.labels), self._missing)
        assert row is not None  # noqa: S101  # for the type checker: the block always gives one row
        self._know(split(row["ids"]), row["reach"], row["looked_at"], row["looked_up"])

    async def _read_merged(self, database: Database, low: Id) -> None:
        assert self.merged is not None  # noqa: S101  # for the type checker: it has been read
        if self.merged.reach >= self.reach:
            await self.merged.read(database, low)
        ids, reach = self.merged.ids, self.merged.reach
        self.merged.reset(reach)
        values = (self.asked.statuses, self.labels, self.asked.person)
        fitting = await database.fetchval("list_ids_fit", [UUID(bytes=each) for each in ids], *values)
        self._know(split(fitting), reach, len(ids), len(ids))

    @property
    def _missing(self) -> int:
        """Ids that the next window needs not go beyond."""
        return max(self.wanted - self.passed, self.wanted // 4, 1)

    def _know(self, found: list[Id], reach: Id, looked_at: int, looked_up: int) -> None:
        """Take a window, and go by what it gave; for ``looked_up`` entries something was looked up."""
        self.ids += found
        self.reach = reach
        self.passed += len(found)
        self.looked_at += looked_at
        self.fetched += looked_at + looked_up * (_LOOKUP - 1)
        expected = self._missing * self.looked_at // max(1, self.passed)
        self.size = min(_LOOKUPS if looked_up else MOST, MOST, max(EDGE, expected * 3 // 2))
        untried = self.merged is not None and self.kind != "merged"
        if not found or (untried and len(found) * _POOR < looked_at):
            self.kind = ""


def _time(run_id: Id) -> int:
    """Milliseconds, which an id begins with."""
    return int.from_bytes(run_id[:6])
