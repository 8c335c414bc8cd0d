"""Lists: milliseconds of a page of 50 runs, for every filter and some combinations, on histories of growing size.

    python -m bench lists --sizes 1000000,3000000,10000000 --repeats 200
    python -m bench lists --database URL --database URL        # histories that bench.history has made before

Invariant: pages are read as ``partita list`` reads them, one at a time, on warm connections; ``first`` is the newest
page, ``deep`` begins at a random moment of the twelve months. A figure is the p99 of the slower kind of page of the
slowest filter, of lists with one filter and with several apart. Trade-off: a page's time includes the client's part, so
that the goal is held by what a person waits for and not by the server alone.
"""

from __future__ import annotations

import argparse
import asyncio
import math
import random
import statistics
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

from bench import cpu, history
from bench.figures import Figure, emit, say
from bench.postgres import Base, database, server
from partita.domain.ids import Month, make_id, to_milliseconds
from partita.domain.state.rows import RunStatus
from partita.settings import DatabaseSettings, RetentionSettings, Settings
from partita.store import lists
from partita.store.database import Database
from partita.store.views import RunFilter

_SESSIONS: Final = (
    "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'partita'"
)
GOAL_MS: Final = 20.0
FLAT: Final = 1.5
"""At most so many times longer on the largest history than on the smallest."""
LIMIT: Final = 50
FAILED, CANCELLED = (RunStatus.FAILED,), (RunStatus.CANCELLED,)
_PLACE: Final[Mapping[str, Any]] = {"namespace": "space-1", "definition": "workflow-3"}
_RED: Final = {"team": "team-3"}
FILTERS: Final[Mapping[str, RunFilter]] = {
    "none": RunFilter(),
    "namespace": RunFilter(namespace="space-1"),
    "definition": RunFilter(definition="workflow-3"),
    "place": RunFilter(**_PLACE),
    "failed": RunFilter(statuses=FAILED),
    "failed_or_cancelled": RunFilter(statuses=(*FAILED, *CANCELLED)),
    "running": RunFilter(statuses=(RunStatus.RUNNING,)),
    "person": RunFilter(started_by="person-7"),
    "tag": RunFilter(tags=("tag-3",)),
    "attribute": RunFilter(attributes=_RED),
    "place_failed": RunFilter(**_PLACE, statuses=FAILED),
    "person_failed": RunFilter(started_by="person-7", statuses=FAILED),
    "person_definition": RunFilter(started_by="person-7", definition="workflow-3"),
    "person_namespace": RunFilter(started_by="person-7", namespace="space-1"),
    "tags": RunFilter(tags=("tag-3", "night")),
    "tag_person": RunFilter(tags=("tag-3",), started_by="person-7"),
    "tag_namespace": RunFilter(tags=("tag-3",), namespace="space-1"),
    "tag_definition": RunFilter(tags=("tag-3",), definition="workflow-3"),
    "tag_attribute": RunFilter(tags=("tag-3",), attributes=_RED),
    "tag_place_cancelled": RunFilter(tags=("night",), **_PLACE, statuses=CANCELLED),
    "all_five": RunFilter(tags=("night",), attributes={"tier": "1"}, started_by="person-0", **_PLACE),
    "rare_namespace": RunFilter(namespace="once"),
    "rare_definition": RunFilter(definition="once"),
    "rare_person": RunFilter(started_by="once"),
    "rare_tag": RunFilter(tags=("once",)),
    "rare_attribute": RunFilter(attributes={"case": "once"}),
    "rare_and_common": RunFilter(tags=("once", "tag-0"), statuses=(RunStatus.SUCCEEDED,)),
    "tag_rare_definition": RunFilter(tags=("night",), definition="once"),
    "rare_and_rare": RunFilter(tags=("once",), attributes={"case": "once"}),
    "no_such_tag": RunFilter(tags=("none",), **_PLACE),
    "no_such_namespace": RunFilter(namespace="none", statuses=FAILED),
    "no_such_person": RunFilter(started_by="none", attributes=_RED),
}


def asked(query: RunFilter) -> int:
    """How many things a filter asks for."""
    one = (query.namespace, query.definition, query.started_by, query.statuses or None)
    return sum(each is not None for each in one) + len(query.tags) + len(query.attributes or {})


ONE: Final = tuple(name for name, query in FILTERS.items() if asked(query) <= 1)
SEVERAL: Final = tuple(name for name, query in FILTERS.items() if asked(query) > 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """What is measured."""

    sizes: tuple[int, ...]
    repeats: int
    """Pages of each kind for each filter."""
    months: int
    databases: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Times:
    """Milliseconds of one filter on one history, sorted."""

    first: tuple[float, ...]
    deep: tuple[float, ...]
    rows: int
    """Runs of the newest page."""
    cpu: float
    """Milliseconds of processor time a page, server and client; 0 where the server's processes cannot be seen."""

    @property
    def all(self) -> list[float]:
        """Of both kinds of page."""
        return sorted((*self.first, *self.deep))


def main(arguments: Sequence[str]) -> None:
    """Measure and print."""
    choice = _parse(arguments)
    found: dict[int, dict[str, Times]] = {}
    if choice.databases:
        for url in choice.databases:
            settings = Settings(database=DatabaseSettings(url=url))
            size, times = asyncio.run(_measured(settings, choice))
            found[size] = times
    else:
        with server() as base:
            for runs in choice.sizes:
                with _filled(base, runs, choice.months) as settings:
                    found[runs] = asyncio.run(_measured(settings, choice))[1]
    emit(_figures(found, choice))


def _parse(arguments: Sequence[str]) -> Choice:
    parser = argparse.ArgumentParser(prog="python -m bench lists", description="Milliseconds of a page of 50 runs.")
    parser.add_argument("--quick", action="store_true", help="tiny sizes, to see whether it works")
    parser.add_argument("--sizes", default="", metavar="N,N", help="finished runs of each history (30000,300000)")
    parser.add_argument("--repeats", type=int, default=0, metavar="N", help="pages of each kind and filter (100)")
    parser.add_argument("--months", type=int, default=12, metavar="N", help="months of a history (12)")
    parser.add_argument("--database", action="append", metavar="URL", help="measure these histories instead")
    found = parser.parse_args(arguments)
    sizes = found.sizes or ("1000,3000" if found.quick else "30000,300000")
    return Choice(
        sizes=tuple(int(size) for size in sizes.split(",")),
        repeats=found.repeats or (3 if found.quick else 100),
        months=found.months,
        databases=tuple(found.database or ()),
    )


@contextmanager
def _filled(base: Base, runs: int, months: int) -> Iterator[Settings]:
    """A database with a history."""
    with database(base, RetentionSettings(months_behind=months)) as settings:
        asyncio.run(history.make(settings, history.Work(runs=runs, months=months)))
        yield settings


async def _measured(settings: Settings, choice: Choice) -> tuple[int, dict[str, Times]]:
    """The size of a history, and the times on it."""
    async with await Database.open(settings.database) as found:
        size = await found.read(lambda c: c.fetchval(f'SELECT count(*) FROM "{settings.database.schema}".run_endings'))  # noqa: S608  # a setting's identifier
        say(f"lists: {size:,} finished runs; pages of {LIMIT}, {choice.repeats} of each kind\n{_HEAD}")
        cursors = _cursors(choice, await found.clock())
        times = {}
        for name, query in FILTERS.items():
            times[name] = await _times(found, query, cursors)
            say(_row(name, times[name]))
        return size, times


_WIDTHS: Final = (11, 8, 10, 8, 8)
_HEAD: Final = f"{'':22}{'rows':>6}{'first p50':>11}{'p99':>8}{'deep p50':>10}{'p99':>8}{'cpu':>8}  ms"


def _row(name: str, times: Times) -> str:
    numbers = (_share(times.first, 0.5), _share(times.first, 0.99), _share(times.deep, 0.5), _share(times.deep, 0.99))
    shown = "".join(f"{number:>{width}.1f}" for number, width in zip((*numbers, times.cpu), _WIDTHS, strict=True))
    return f"{name:22}{times.rows:>6}{shown}"


def _cursors(choice: Choice, now: Any) -> list[UUID]:
    """Random moments of the history, the same in every run."""
    chance = random.Random(1)
    begin, end = (to_milliseconds(Month.of(now).plus(months).start) for months in (-choice.months, 0))
    return [make_id(chance.randrange(begin, end), chance.getrandbits(74)) for _ in range(choice.repeats)]


async def _times(found: Database, query: RunFilter, cursors: Sequence[UUID]) -> Times:
    await lists.list_runs(found, query, limit=LIMIT)
    page = await lists.list_runs(found, query, limit=LIMIT)
    before = await _used(found)
    first = [await _page(found, query, None) for _ in cursors]
    deep = [await _page(found, query, cursor) for cursor in cursors]
    after = await _used(found)
    return Times(tuple(sorted(first)), tuple(sorted(deep)), len(page.runs), (after - before) / (2 * len(cursors)))


async def _used(found: Database) -> float:
    """Milliseconds of processor time of the server's processes and this one."""
    rows = await found.read(lambda connection: connection.fetch(_SESSIONS))
    server = sum(cpu.seconds(row["pid"]) for row in rows)
    return 1_000 * (server + time.process_time()) if server else 0.0


async def _page(found: Database, query: RunFilter, cursor: UUID | None) -> float:
    begun = time.perf_counter()
    await lists.list_runs(found, query, limit=LIMIT, cursor=cursor)
    return 1_000 * (time.perf_counter() - begun)


def _share(times: Sequence[float], share: float) -> float:
    """The time that this share of the pages takes at most."""
    return times[math.ceil(share * len(times)) - 1]


def _figures(found: Mapping[int, Mapping[str, Times]], choice: Choice) -> list[Figure]:
    smallest, largest = min(found), max(found)
    figures = [
        _size_figure(title, names, size, times, choice)
        for size, times in found.items()
        for title, names in (("one", ONE), ("several", SEVERAL))
    ]
    return figures + [_growth_figure(name, found, smallest, largest) for name in FILTERS]


def _size_figure(title: str, names: Sequence[str], size: int, times: Mapping[str, Times], choice: Choice) -> Figure:
    """The slowest of these filters on a history."""
    worst = max(names, key=lambda name: _worst(times[name]))
    every = sorted(time for name in names for time in times[name].all)
    setting = {
        "runs": size,
        "months": choice.months,
        "filters": len(names),
        "pages_each": 2 * choice.repeats,
        "worst": worst,
        "p50_of_all": round(_share(every, 0.5), 2),
        "p99_of_all": round(_share(every, 0.99), 2),
    }
    value = _worst(times[worst])
    return Figure(
        figure=f"list_{title}_p99_{size}", value=value, unit="ms", goal=GOAL_MS, better="lower", setting=setting
    )


def _worst(times: Times) -> float:
    return max(_share(times.first, 0.99), _share(times.deep, 0.99))


def _growth_figure(name: str, found: Mapping[int, Mapping[str, Times]], smallest: int, largest: int) -> Figure:
    """How many times longer a page of the largest history takes than one of the smallest."""
    setting = {
        f"{title}_ms": {str(size): round(_share(times[name].all, share), 2) for size, times in found.items()}
        for title, share in (("p50", 0.5), ("p99", 0.99))
    }
    setting["cpu_ms"] = {str(size): round(times[name].cpu, 2) for size, times in found.items()}
    value = statistics.median(found[largest][name].all) / statistics.median(found[smallest][name].all)
    return Figure(figure=f"list_growth_{name}", value=value, unit="x", goal=FLAT, better="lower", setting=setting)
