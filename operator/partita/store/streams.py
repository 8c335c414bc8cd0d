"""Streams of ids: what one index has of a list, newest first, read a window at a time.

Invariant: every id of the stream from ``reach`` on is in ``ids`` or has been dealt with, as far as the last reset. A
window moves the reach down by at least one id. Trade-off: ids travel as 16 bytes each in one value and stay bytes:
they order as ids do, and cost a fifth.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias
from uuid import UUID

from partita.domain.ids import Month
from partita.store.database import Database

LOOKED_AT: Final = 10_000
"""Unfinished runs that are looked at for a window; there is no index over them."""
MOST: Final = 2_000
"""Ids of a window."""
_GROWTH: Final = 4
SIDE_BY_SIDE: Final = 4
"""Connections that a page reads with: what it shows is all over the disk, if nobody has looked at it lately. Behind a
proxy, where each statement is planned anew, it is one."""
_SPARSE: Final = 100
"""Where fewer than one run in so many fits, they are not looked at one by one."""
FEW: Final = 400
"""Runs that are looked at at first."""
Id: TypeAlias = bytes
"""Of a run."""


def split(window: bytes | None) -> list[Id]:
    """The ids of a window, newest first."""
    found = [window[at : at + 16] for at in range(0, len(window), 16)] if window else []
    found.sort(reverse=True)
    return found


def before(ids: Sequence[Id], edge: Id) -> int:
    """How many of these ids, which are in order, are as new as ``edge`` or newer."""
    low, high = 0, len(ids)
    while low < high:
        middle = (low + high) // 2
        low, high = (middle + 1, high) if ids[middle] >= edge else (low, middle)
    return low


@dataclass(slots=True, kw_only=True)
class Stream(ABC):
    """Ids, newest first."""

    size: int = 100
    """Ids of the next window."""
    ids: list[Id] = field(default_factory=list)
    reach: Id = b""
    """Every id of the stream from here on is known, as far as the last reset."""
    fetched: int = 0
    """Entries that were read in all."""

    def reset(self, high: Id) -> None:
        """Begin anew below this id."""
        self.ids, self.reach = [], high

    def take(self, edge: Id) -> list[Id]:
        """The ids from ``edge`` on, which are forgotten."""
        count = before(self.ids, edge)
        taken = self.ids[:count]
        del self.ids[:count]
        self.reach = min(self.reach, edge)
        return taken

    @abstractmethod
    async def read(self, database: Database, low: Id) -> None:
        """Read the next window, down to ``low`` at most."""

    def _window(self, low: Id) -> tuple[UUID, UUID, int]:
        return UUID(bytes=low), UUID(bytes=self.reach), self.size

    def _add(self, found: list[Id], reach: Id) -> None:
        self.ids += found
        self.reach = reach
        self.fetched += len(found)

    def _grow(self) -> None:
        self.size = max(self.size, min(self.size * _GROWTH, MOST))


@dataclass(slots=True)
class Indexed(Stream):
    """What one block finds."""

    block: str
    """Takes the range, the number of ids, and then ``values``."""
    values: tuple[object, ...] = ()

    async def read(self, database: Database, low: Id) -> None:
        """Read the next window, down to ``low`` at most."""
        found = split(await database.fetchval(self.block, *self._window(low), *self.values))[: self.size]
        self._add(found, found[-1] if len(found) >= self.size else low)
        self._grow()


@dataclass(slots=True)
class Merged(Indexed):
    """What a block finds that is told the months, as it goes through the places of each."""

    bounded: bool = False
    """Whether the months are known."""

    async def read(self, database: Database, low: Id) -> None:
        """Read the next window, down to ``low`` at most."""
        if not self.bounded:
            months = [Month.parse(row["month"]) for row in await database.fetch("list_months", database.sql.schema)]
            bounds = [month.lower for month in months], [month.upper for month in months]
            self.values, self.bounded = (*self.values, *bounds), True
        await Indexed.read(self, database, low)


@dataclass(slots=True)
class Scanned(Stream):
    """Runs as they come, compared by their rows; where few of them fit, what goes through the places of each month.

    Rows of runs that were started one after the other are neighbours, so that a look at a thousand costs less than
    going through a hundred places.
    """

    values: tuple[object, ...]
    """What is asked for. Not only of ended runs: one that ran when the unfinished ones were read may have ended."""
    merged: Merged
    """The same, of ended runs."""
    wanted: int = 60
    """Ids that are to be found in all."""
    looked_at: int = 0
    fitting: int = 0
    sparse: bool = False
    """Whether few fit."""

    async def read(self, database: Database, low: Id) -> None:
        """Read the next window, down to ``low`` at most."""
        await (self._merge if self.sparse else self._scan)(database, low)

    async def _merge(self, database: Database, low: Id) -> None:
        self.merged.reset(self.reach)
        await self.merged.read(database, low)
        self._add(self.merged.ids, self.merged.reach)

    async def _scan(self, database: Database, low: Id) -> None:
        row = await database.fetchrow("list_scan", *self._window(low), *self.values)
        assert row is not None  # noqa: S101  # for the type checker: the block always gives one row
        found = split(row["ids"])
        self._add(found, row["floor"] or low)
        self.fetched += self.size
        self.looked_at += self.size
        self.fitting += len(found)
        self.sparse = self.looked_at >= MOST and self.fitting * _SPARSE < self.looked_at
        missing = max(self.wanted - self.fitting, self.wanted // 4)
        self.size = min(MOST, max(FEW, missing * self.looked_at * 3 // (2 * max(1, self.fitting))))


@dataclass(slots=True)
class OpenRuns(Stream):
    """Unfinished runs, of which no more than ``LOOKED_AT`` are looked at for a window."""

    values: tuple[object, ...] = ()
    """What is asked for."""

    async def read(self, database: Database, low: Id) -> None:
        """Read the next window, down to ``low`` at most."""
        rows = await database.fetch("list_open_runs", *self._window(low), LOOKED_AT, *self.values)
        whole = len(rows) < self.size and not any(row["edge"] for row in rows)
        self._add([row["id"] for row in rows if row["fits"]], low if whole else rows[-1]["id"])
        self._grow()
