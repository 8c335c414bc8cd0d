"""Lists of runs against a plain search through the same runs, and what happens to pages meanwhile."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from random import Random
from typing import Any
from uuid import UUID, uuid4

import orjson
import pytest

from partita.domain.ids import Month, make_id, time_of, to_milliseconds
from partita.domain.state.rows import TERMINAL, RunStatus
from partita.settings import Settings
from partita.store import candidates, common, list_fill, lists, streams
from partita.store.database import Database
from partita.store.views import RunFilter
from tests.store.records import end_run, insert, insert_run, open_run

LABELS = """
WITH ended_runs AS (
    SELECT $1::uuid AS run_id, $2::text AS status, $3::text AS namespace, $4::text AS definition,
           $5::text AS started_by, $6::jsonb AS tags, $7::jsonb AS attributes
)
"""
UNKNOWN = "UPDATE partita.run_labels SET origin = NULL, labels = NULL WHERE run_id = $1 AND status = $2"
TOAST = """
SELECT sum(toast_blks_read + toast_blks_hit) FROM pg_statio_user_tables WHERE relname ~ '^workflow_runs_[0-9]{6}$'
"""
MANY = ((), (), (), (), tuple(f"tag-{n}" for n in range(12)))
"""Some runs have so many labels that their bits say little."""
ENDS = [status.value for status in TERMINAL]


@pytest.fixture
async def now(database: Database) -> datetime:
    """The database's clock, somewhat later than the month's start so that the hour before belongs to the month."""
    return max(await database.clock(), Month.of(await database.clock()).start + timedelta(hours=2))


@dataclass(frozen=True, slots=True)
class Run:
    """A run as a list should see it."""

    id: UUID
    status: str = "Succeeded"
    namespace: str = "shop"
    definition: str = "order"
    started_by: str = ""
    tags: tuple[str, ...] = ()
    attributes: dict[str, str] = field(default_factory=dict)
    parent: UUID | None = None
    subflow: str | None = None
    earlier: tuple[str, ...] = ()
    """How it ended before it was tried again."""
    version: int = 4
    """Of the schema of the process that wrote it."""

    @property
    def old(self) -> bool:
        """Whether its end has to be filled in."""
        return self.version == 2


async def write(database: Database, run: Run) -> None:
    """The rows that the engine writes for such a run."""
    tags = orjson.dumps(run.tags).decode() if run.tags else None
    attributes = orjson.dumps(run.attributes).decode() if run.attributes else None
    labels = {"tags": tags, "attributes": attributes}
    place = {"namespace": run.namespace, "definition": run.definition}
    kin = {} if run.parent is None else {"parent_node": "n", "parent_index": 0, "parent_attempt": 1}
    fixed = {"started_by": run.started_by, "subflow": run.subflow, "parent_id": run.parent}
    await insert_run(database, run.id, status=run.status, **fixed, **place, **labels, **kin)
    if run.status not in ENDS:
        known: dict[str, Any] = {} if run.old else {"started_by": run.started_by, **labels}
        await open_run(database, run.id, subflow=run.subflow, **place, **known)
    elif run.subflow is None:
        await _end(database, run, run.status, len(run.earlier))
    for generation, status in enumerate(run.earlier):
        await _end(database, run, status, generation)


async def _end(database: Database, run: Run, status: str, generation: int) -> None:
    known = {} if run.old else {"started_by": run.started_by}
    place = {"namespace": run.namespace, "definition": run.definition}
    await end_run(database, run.id, status, generation=generation, **place, **known)
    if not run.old:
        tags, attributes = orjson.dumps(run.tags).decode(), orjson.dumps(run.attributes).decode()
        values = (run.id, status, run.namespace, run.definition, run.started_by, tags, attributes)
        await database.read(lambda c: c.execute(LABELS + database.sql("insert_labels"), *values))
    if run.version == 3:
        await database.read(lambda c: c.execute(UNKNOWN, run.id, status))


def fits(run: Run, query: RunFilter) -> bool:
    """The plain meaning of a filter."""
    asked = (
        query.namespace in (None, run.namespace),
        query.definition in (None, run.definition),
        not query.statuses or run.status in {status.value for status in query.statuses},
        set(query.tags) <= set(run.tags),
        (query.attributes or {}).items() <= run.attributes.items(),
        query.started_by in (None, run.started_by),
        query.created_from is None or time_of(run.id) >= query.created_from,
        query.created_before is None or time_of(run.id) < query.created_before,
        run.subflow is None if query.parent is None else run.parent == query.parent,
    )
    return all(asked)


def expected(runs: list[Run], query: RunFilter) -> list[UUID]:
    """What a list should show, in order."""
    return sorted((run.id for run in runs if fits(run, query)), reverse=True)


async def listed(database: Database, query: RunFilter, limit: int = 50, pages: int = 1_000) -> list[UUID]:
    """The whole list, page by page."""
    seen: list[UUID] = []
    cursor = None
    for _ in range(pages):
        page = await lists.list_runs(database, query, limit=limit, cursor=cursor)
        assert len(page.runs) <= limit
        seen += [run.id for run in page.runs]
        cursor = page.cursor
        if cursor is None:
            return seen
    raise AssertionError(f"no end after {pages} pages: {query}")


class Maker:
    """Random runs: values that are common, rare or unique, some at the same millisecond, over three months."""

    def __init__(self, seed: int, now: datetime) -> None:
        self.random = Random(seed)  # noqa: S311  # test data
        self.now = now
        self.parents: list[UUID] = []

    def run(self) -> Run:
        """The next one."""
        pick = self.random
        age = timedelta(milliseconds=pick.choice((0, 1, 1, 50, 1_000, 86_400_000 * pick.randint(1, 60))))
        run_id = make_id(to_milliseconds(self.now - age), pick.getrandbits(74))
        status = pick.choices([status.value for status in RunStatus], (2, 4, 1, 20, 3, 1))[0]
        older = [parent for parent in self.parents if parent < run_id]
        child = bool(older) and pick.random() < 0.3
        made = Run(
            run_id,
            status,
            pick.choice(("shop", "shop", "shop", "bank", "zoo")),
            pick.choice(("order", "order", "refund", "audit")),
            pick.choice(("", "ann", "ann", "bob", f"once-{run_id}")),
            (*pick.sample(("eu", "vip", "night", "#odd", "a=b"), pick.choice((0, 0, 1, 2))), *pick.choice(MANY)),
            {name: pick.choice("12") for name in pick.sample(("team", "tier", "a"), pick.choice((0, 0, 1, 2)))},
            pick.choice(older) if child else None,
            pick.choice((None, "part")) if child else None,
            tuple(pick.choices(ENDS, k=pick.choice((0, 0, 0, 1, 2)))),
            pick.choice((2, 3, 3, 4, 4, 4)),
        )
        self.parents = [*self.parents[-5:], run_id]
        return made

    def query(self, runs: list[Run]) -> RunFilter:
        """A filter with up to five parts, most of them of a run that exists."""
        pick = self.random
        like = pick.choice(runs)
        parts: dict[str, Any] = {
            "namespace": pick.choice((like.namespace, like.namespace, "none")),
            "definition": pick.choice((like.definition, like.definition, "none")),
            "statuses": tuple(pick.sample(list(RunStatus), pick.choice((1, 1, 2, 3)))),
            "tags": like.tags[:7] or ("eu",),
            "attributes": like.attributes or {"team": "1"},
            "started_by": like.started_by,
            "created_from": time_of(like.id) - timedelta(days=pick.choice((0, 3))),
            "created_before": time_of(like.id) + timedelta(milliseconds=pick.choice((0, 1, 86_400_000))),
            "parent": like.parent or like.id,
        }
        chosen = pick.sample(sorted(parts), pick.choice((0, 1, 1, 2, 2, 3, 4, 5)))
        return RunFilter(**{name: parts[name] for name in chosen})


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Windows and bounds so small that a list of few runs needs many."""
    monkeypatch.setattr(common, "WIDE", 5)
    monkeypatch.setattr(common, "ALONE", 3)
    monkeypatch.setattr(common, "_LOOKUPS", 5)
    for module in (candidates, streams):
        monkeypatch.setattr(module, "MOST", 5)
    for module in (candidates, streams):
        monkeypatch.setattr(module, "FEW", 4)
    monkeypatch.setattr(common, "EDGE", 2)
    monkeypatch.setattr(common, "_POOR", 2)
    monkeypatch.setattr(streams, "_SPARSE", 2)
    monkeypatch.setattr(streams, "LOOKED_AT", 7)
    monkeypatch.setattr(lists, "_SPARE", 1)
    monkeypatch.setattr(lists, "ROWS", 9)
    monkeypatch.setattr(lists, "CHILD_ROWS", 9)
    monkeypatch.setattr(lists, "IDS", 30)
    monkeypatch.setattr(lists, "_COUNTED", 3)


def queries(maker: Maker, runs: list[Run], count: int) -> Iterator[RunFilter]:
    """Each filter alone, and random combinations."""
    yield from (RunFilter(), RunFilter(tags=("eu", "vip", "night")), RunFilter(attributes={"team": "1", "tier": "2"}))
    yield from (RunFilter(statuses=(status,)) for status in RunStatus)
    yield from (maker.query(runs) for _ in range(count))


@pytest.mark.parametrize("seed", range(2))
async def test_every_filter_shows_what_a_plain_search_finds(database: Database, now: datetime, seed: int) -> None:
    maker = Maker(seed, now)
    runs = [maker.run() for _ in range(120)]
    for run in runs:
        await write(database, run)
    for query in queries(maker, runs, 120):
        assert await listed(database, query) == expected(runs, query), query
        count = await lists.count_runs(database, query)
        assert (count.count, count.exact) == (len(expected(runs, query)), True), query


@pytest.mark.parametrize("seed", range(3, 5))
@pytest.mark.usefixtures("small")
async def test_windows_of_any_size_join(database: Database, now: datetime, seed: int) -> None:
    maker = Maker(seed, now)
    runs = [maker.run() for _ in range(80)]
    for run in runs:
        await write(database, run)
    for query in queries(maker, runs, 80):
        assert await listed(database, query, limit=maker.random.choice((1, 3, 50))) == expected(runs, query), query
        assert (await lists.count_runs(database, query)).count == len(expected(runs, query)), query


@pytest.mark.parametrize("lacking", [{"tags": ()}, {"started_by": "bob"}, {"definition": "audit"}])
@pytest.mark.usefixtures("small")
async def test_a_status_that_few_runs_have_does_not_hide_others(
    database: Database, now: datetime, lacking: dict[str, Any]
) -> None:
    """Whichever filter is the rarest: its newest entries of one status reach back to the first run, of another not."""
    runs = [
        Run(make_id(to_milliseconds(now) + n, n), "Failed" if n else "Succeeded", started_by="ann", tags=("eu", "vip"))
        for n in range(40)
    ]
    runs = [replace(run, **lacking) if n % 4 == 3 else run for n, run in enumerate(runs)]
    for run in runs:
        await write(database, run)
    ends = (RunStatus.SUCCEEDED, RunStatus.FAILED)
    query = RunFilter(statuses=ends, started_by="ann", tags=("eu",), namespace="shop", definition="order")
    assert await listed(database, query) == expected(runs, query)
    assert (await lists.count_runs(database, query)).count == 30


@pytest.mark.usefixtures("small")
async def test_pages_neither_repeat_nor_lose_while_runs_come_and_end(database: Database, now: datetime) -> None:
    """The runs of the beginning are each shown once, whatever is added to them and however they end meanwhile."""
    maker = Maker(7, now)
    runs = [maker.run() for _ in range(80)]
    for run in runs:
        await write(database, run)
    for query in (RunFilter(), RunFilter(namespace="shop"), RunFilter(tags=("eu",)), RunFilter(started_by="ann")):
        first = expected(runs, query)
        seen: list[UUID] = []
        cursor = None
        while True:
            page = await lists.list_runs(database, query, limit=3, cursor=cursor)
            seen += [run.id for run in page.runs]
            cursor = page.cursor
            if cursor is None:
                break
            newer = maker.run()
            await write(database, newer)
            runs.append(newer)
            await _finish_one(database, runs)
        assert len(seen) == len(set(seen)), query
        assert seen == sorted(seen, reverse=True), query
        assert set(first) <= set(seen), query


async def _finish_one(database: Database, runs: list[Run]) -> None:
    """An unfinished run of the list comes to its end."""
    place = next((n for n, run in enumerate(runs) if run.status not in ENDS and not run.old and not run.subflow), None)
    if place is None:
        return
    run = runs[place]
    runs[place] = ended = replace(run, status="Failed")
    change = "UPDATE partita.workflow_runs SET status = 'Failed' WHERE id = $1"
    await database.read(lambda c: c.execute(change, run.id))
    await _end(database, ended, "Failed", len(run.earlier))
    await database.read(lambda c: c.execute("DELETE FROM partita.open_runs WHERE run_id = $1", run.id))


@pytest.mark.parametrize(
    "query",
    [
        RunFilter(started_by="ann"),
        RunFilter(started_by="ann", definition="order"),
        RunFilter(tags=("eu",), namespace="shop", definition="order"),
    ],
)
@pytest.mark.usefixtures("small")
async def test_a_run_that_ends_between_two_reads_of_a_page_is_shown(
    database: Database, now: datetime, monkeypatch: pytest.MonkeyPatch, query: RunFilter
) -> None:
    """It is in both places then, since unfinished runs are read first, and ends are read anew after each such read."""
    known: dict[str, Any] = {"started_by": "ann", "tags": ("eu",)}
    runs = [Run(make_id(to_milliseconds(now) + n, n), "Running", **known) for n in range(30)]
    for run in runs:
        await write(database, run)

    def slow(read: Any) -> Any:
        """A run ends after each look."""

        async def looked(self: Database, name: str, *values: object) -> Any:
            found = await read(self, name, *values)
            if name in {"list_open_runs", "list_person"} or name.endswith("_fits"):
                await _finish_one(database, runs)
            return found

        return looked

    monkeypatch.setattr(Database, "fetch", slow(Database.fetch))
    monkeypatch.setattr(Database, "fetchrow", slow(Database.fetchrow))
    monkeypatch.setattr(Database, "fetchval", slow(Database.fetchval))
    monkeypatch.setattr(lists, "ROWS", 1_000)
    monkeypatch.setattr(lists, "IDS", 1_000)
    assert await listed(database, query) == expected(runs, query)


@pytest.mark.parametrize(
    "query", [RunFilter(namespace="shop"), RunFilter(statuses=(RunStatus.RUNNING, RunStatus.FAILED))]
)
@pytest.mark.usefixtures("small")
async def test_a_run_that_is_tried_again_between_two_reads_of_a_page_is_shown(
    database: Database, now: datetime, monkeypatch: pytest.MonkeyPatch, query: RunFilter
) -> None:
    """It was not among the unfinished runs, and is not ended any more."""
    runs = [Run(make_id(to_milliseconds(now) + n, n), "Failed") for n in range(20)]
    for run in runs:
        await write(database, run)
    fetch, left = Database.fetch, [run.id for run in runs[::2]]

    async def slow(self: Database, name: str, *values: object) -> Any:
        """A run is tried again after each look at the unfinished ones."""
        found = await fetch(self, name, *values)
        if name == "list_open_runs" and left:
            run_id = left.pop()
            change = "UPDATE partita.workflow_runs SET status = 'Running' WHERE id = $1"
            await database.read(lambda c: c.execute(change, run_id))
            await open_run(database, run_id, namespace="shop", definition="order", started_by="")
        return found

    monkeypatch.setattr(Database, "fetch", slow)
    assert await listed(database, query, limit=3) == expected(runs, query)


@pytest.mark.usefixtures("small")
async def test_a_filter_that_turns_out_denser_than_its_newest_runs_say(database: Database, now: datetime) -> None:
    """It is read to the end of the list, by windows and side by side."""
    tags = [(*(("a",) if n % 15 == 0 else ()), *(("b",) if n <= 87 else ())) for n in range(91)]
    runs = [Run(make_id(to_milliseconds(now) + n, n), tags=each) for n, each in enumerate(tags)]
    for run in runs:
        await write(database, run)
    query = RunFilter(tags=("a", "b"))
    assert len(expected(runs, query)) == 6
    assert await listed(database, query) == expected(runs, query)


@pytest.mark.usefixtures("small")
async def test_runs_of_one_millisecond_have_one_order(database: Database, now: datetime) -> None:
    runs = [Run(make_id(to_milliseconds(now), uuid4().int), started_by="ann", tags=("eu",)) for _ in range(40)]
    for run in runs:
        await write(database, run)
    for query in (RunFilter(), RunFilter(started_by="ann"), RunFilter(tags=("eu",), definition="order")):
        assert await listed(database, query, limit=7) == expected(runs, query)


@pytest.mark.usefixtures("small")
async def test_the_work_of_a_page_is_bounded(database: Database, now: datetime) -> None:
    """Two common filters that fit no run together: pages are empty, and their cursors lead to the end."""
    for n in range(60):
        run = Run(make_id(to_milliseconds(now) + n, n))
        await write(database, replace(run, started_by="ann") if n % 2 else replace(run, tags=("eu",)))
    query = RunFilter(started_by="ann", tags=("eu",))
    page = await lists.list_runs(database, query, limit=3)
    assert page.runs == ()
    assert page.cursor is not None
    assert await listed(database, query, limit=3) == []


@pytest.mark.parametrize(
    ("rare", "query"),
    [
        ({"started_by": "bob"}, RunFilter(started_by="bob", tags=("eu",))),
        ({"tags": ("eu", "vip")}, RunFilter(started_by="ann", tags=("eu", "vip"), namespace="shop")),
        ({"definition": "audit"}, RunFilter(tags=("eu",), namespace="shop", definition="audit")),
        ({"definition": "audit"}, RunFilter(tags=("eu",), started_by="ann", definition="audit")),
        ({"namespace": "bank"}, RunFilter(started_by="ann", namespace="bank")),
    ],
)
@pytest.mark.usefixtures("small")
async def test_what_one_run_has_is_found_at_once_beside_what_all_have(
    database: Database, now: datetime, rare: dict[str, Any], query: RunFilter
) -> None:
    """Whichever filter is the rare one: the first page shows the oldest run, and is the last."""
    for n in range(60):
        run = Run(make_id(to_milliseconds(now) + n, n), started_by="ann", tags=("eu",))
        await write(database, run if n else replace(run, **rare))
    page = await lists.list_runs(database, query, limit=3)
    assert [to_milliseconds(time_of(run.id)) for run in page.runs] == [to_milliseconds(now)]
    assert page.cursor is None


async def test_a_count_ends_at_its_limit(database: Database, now: datetime) -> None:
    for n in range(30):
        await write(database, Run(make_id(to_milliseconds(now) + n, n), started_by="ann"))
    for query in (RunFilter(), RunFilter(started_by="ann"), RunFilter(namespace="shop")):
        for most, exact in ((29, False), (30, True)):
            count = await lists.count_runs(database, query, most=most)
            assert (count.count, count.exact) == (most, exact), query


async def test_rows_from_before_are_found_and_then_filled_in(database: Database, now: datetime) -> None:
    maker = Maker(11, now)
    runs = [maker.run() for _ in range(60)]
    runs = [replace(run, version=2) for run in runs]
    for run in runs:
        await write(database, run)
    chosen = list(queries(maker, runs, 40))
    for query in chosen:
        assert await listed(database, query) == expected(runs, query), query
    assert await list_fill.fill(database.settings, steps=2, most=7) == 14
    assert await list_fill.fill(database.settings, most=7) > 0
    assert await list_fill.fill(database.settings) == 0
    for table in ("run_endings", "open_runs"):
        statement = f"SELECT count(*) FROM partita.{table} WHERE started_by IS NULL"  # noqa: S608  # the test's own
        assert await database.read(lambda c, s=statement: c.fetchval(s)) == 0  # type: ignore[misc]  # the loop's value
    for query in chosen:
        assert await listed(database, query) == expected(runs, query), query
    labels = await database.read(lambda c: c.fetchval("SELECT count(*) FROM partita.run_labels"))
    ends = [(run, len(run.earlier) + (run.status in ENDS and run.subflow is None)) for run in runs]
    assert labels == sum(number * (len(run.tags) + len(run.attributes)) for run, number in ends)


async def test_labels_from_before_are_filled_in_as_an_end_writes_them(database: Database, now: datetime) -> None:
    maker = Maker(13, now)
    runs = [replace(maker.run(), version=4) for _ in range(60)]
    for run in runs:
        await write(database, run)
    rows = "SELECT run_id, label, status, origin, labels FROM partita.run_labels ORDER BY 1, 2, 3, 4"
    written = await database.read(lambda c: c.fetch(rows))
    for run in runs:
        await database.read(lambda c, run=run: c.execute(UNKNOWN.removesuffix(" AND status = $2"), run.id))  # type: ignore[misc]  # the loop's value
    chosen = list(queries(maker, runs, 20))
    assert await list_fill.fill(database.settings, steps=1, most=7) >= 7
    for query in chosen:
        assert await listed(database, query) == expected(runs, query), query
    assert await list_fill.fill(database.settings, most=50) > 50
    assert await database.read(lambda c: c.fetch(rows)) == written
    assert await list_fill.fill(database.settings) == 0


@pytest.fixture
async def session(direct: Settings) -> AsyncIterator[Database]:
    """A database whose sessions are this test's own, so that what they counted can be asked for."""
    async with await Database.open(direct.database) as opened:
        yield opened


async def test_a_page_reads_no_payload(session: Database, now: datetime) -> None:
    """Large inputs, outputs and errors are stored apart, and stay there."""
    big = orjson.dumps([uuid4().hex for _ in range(400)]).decode()
    error = f'{{"type": "t", "message": "m", "details": {big}}}'
    for n, status in enumerate(("Failed", "Succeeded", "Running")):
        run_id = make_id(to_milliseconds(now) + n, n)
        payloads = {"context_json": f'{{"input": {big}}}', "output_json": big, "error_json": error}
        await insert_run(session, run_id, status=status, started_by="ann", **payloads)
        if status == "Running":
            await open_run(session, run_id, started_by="ann")
        else:
            await end_run(session, run_id, status, started_by="ann")
    assert await _toast_reads(session) is not None
    before = await _toast_reads(session)
    page = await lists.list_runs(session, RunFilter(started_by="ann"))
    assert [run.status.value for run in page.runs] == ["Running", "Succeeded", "Failed"]
    assert [run.error for run in page.runs] == [None, None, None]
    assert await _toast_reads(session) == before
    text = "SELECT sum(length(context_json::text)) FROM partita.workflow_runs"
    await session.read(lambda c: c.execute(text))
    assert await _toast_reads(session) > before


async def _toast_reads(database: Database) -> int:
    """Blocks of the runs' payloads that were looked at so far, by this test's only session."""

    async def read(connection: Any) -> int:
        await connection.execute("SELECT pg_stat_force_next_flush()")
        return int(await connection.fetchval(TOAST))

    return await database.read(read)


async def test_a_short_error_is_shown(database: Database, now: datetime) -> None:
    run_id = make_id(to_milliseconds(now), 1)
    await insert_run(database, run_id, status="Failed", error_json='{"type": "timeout", "message": "too slow"}')
    await end_run(database, run_id, "Failed", started_by="")
    (run,) = (await lists.list_runs(database, RunFilter())).runs
    assert run.error is not None
    assert run.error.message == "too slow"


async def test_children_of_a_run_that_is_dated_ahead(database: Database, now: datetime) -> None:
    parent = make_id(to_milliseconds(now + timedelta(minutes=5)), 1)
    child = Run(make_id(to_milliseconds(now), 2), parent=parent)
    await write(database, child)
    await insert(database, "open_runs", run_id=parent, namespace="shop", definition="order", name="")
    assert await listed(database, RunFilter(parent=parent)) == [child.id]
