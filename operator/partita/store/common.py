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

EDGE: Final = 100
"""Entries of each filter by which the rarest is found."""
_POOR: Final = 40
"""Where fewer than one entry in so many fits, another filter may be rarer after all."""
_MORE: Final = 1.25
"""A window is so many times as large as the one before suggests."""


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
    def kinds(self) -> list[str]:
        """Kinds of filters that have an index."""
        given = {"label": bool(self.labels), "person": self.person is not None, "place": self.placed}
        return [kind for kind, asked in given.items() if asked]


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
        read = self._read_merged if self.kind == "merged" else self._read_indexed
        found, looked_at, reach = await read(database, low)
        self._add(found, reach)
        self._note(len(found), looked_at)

    async def _choose(self, database: Database, low: Id) -> None:
        """Find the rarest filter."""
        tried = self.merged if self.looked_at else None
        edges = await self._edges(database, low, tried.size if tried is not None else EDGE)
        self.labels = tuple(sorted(self.asked.labels, key=edges.__getitem__))
        ranked = {kind: edges[self.labels[0] if kind == "label" else kind] for kind in self.asked.kinds}
        self.kind = min(ranked, key=ranked.__getitem__)
        if tried is not None and ranked[self.kind] > low:
            tried.reset(self.reach)
            await tried.read(database, low)
            if tried.reach < ranked[self.kind]:
                self.kind = "merged"
            else:
                self.merged = None

    async def _edges(self, database: Database, low: Id, size: int) -> dict[str, Id]:
        """How far back so many entries of each filter reach; those of the rarest furthest."""
        bounds = (UUID(bytes=low), UUID(bytes=self.reach), size)
        rows = await database.fetch("list_edges", *bounds, *self._values(self.asked.labels))
        return {row["filter"]: row["edge"] or low for row in rows}

    def _values(self, labels: tuple[str, ...]) -> tuple[object, ...]:
        asked = self.asked
        return asked.statuses, labels, asked.person, asked.namespace, asked.definition

    async def _read_indexed(self, database: Database, low: Id) -> tuple[list[Id], int, Id]:
        block, values = f"list_{self.kind}_fits", self._values(self.labels)
        row = await database.fetchrow(block, *self._window(low), *values)
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

    def _note(self, found: int, looked_at: int) -> None:
        """Go by what the windows gave."""
        self.passed += found
        self.looked_at += looked_at
        self.fetched = 2 * self.looked_at
        missing = max(self.wanted - self.passed, self.wanted // 4)
        share = self.looked_at / max(1, self.passed)
        self.size = min(MOST, max(self.size // 2, int(_MORE * missing * share), 1))
        if found == 0 or (self.merged is not None and self.kind != "merged" and found * _POOR < looked_at):
            self.kind = ""
