"""A month is compacted while its unfinished runs go on: no report, no signal and no reader ever misses one of them."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import timedelta
from itertools import count
from typing import Any
from uuid import UUID

import asyncpg
import pytest

from partita.domain.ids import Month, make_id, to_milliseconds
from partita.domain.state.rows import RunStatus
from partita.engine import ClaimedTask, Engine, StartRequest
from partita.settings import RetentionSettings, Settings
from partita.store import reads, retention
from partita.store.database import Database
from tests.engine import support
from tests.engine.support import APPROVAL, NAMESPACE, OFFER, done, opened, task
from tests.store.records import insert_run
from tests.waiting import until

CHAIN = {"nodes": [task("n0"), *(task(f"n{number}", f"n{number - 1}") for number in range(1, 25))]}
CHAINS = 30
SWAPS = 3


def run_of(month: Month, number: int) -> UUID:
    """A run id of a month."""
    return make_id(to_milliseconds(month.start + timedelta(days=14)) + number, number)


async def start_in(engine: Engine, month: Month, spec: Any, name: str, first: int, number: int) -> list[UUID]:
    """Runs with ids of a month."""
    await engine.deploy(NAMESPACE, name, spec)
    ids = [run_of(month, first + one) for one in range(number)]
    await asyncio.gather(
        *(engine.start(StartRequest(namespace=NAMESPACE, definition=name, run_id=run_id)) for run_id in ids)
    )
    return ids


class Load:
    """What happens to the runs of the month meanwhile."""

    def __init__(self, engines: list[Engine], database: Database) -> None:
        self.engines = engines
        self.database = database
        self.over = asyncio.Event()
        self.outcomes: list[str] = []
        self.reports = 0
        self.signals = 0
        self.reads = 0

    async def execute(self, first: ClaimedTask) -> None:
        """Report the tasks of one run, by one process and the other in turn."""
        todo: ClaimedTask | None = first
        for engine in count():
            if todo is None:
                return
            reply = await self.engines[engine % 2].report(done(todo), OFFER)
            self.outcomes.append(reply.outcome)
            self.reports += 1
            todo = reply.next
            if self.reports > CHAINS * 12 and not self.over.is_set():
                await self.over.wait()  # so that the months are swapped while runs are in the middle

    async def signal(self, run_id: UUID) -> None:
        """Send signals that nobody waits for, which the run keeps."""
        for number in count():
            if self.over.is_set():
                return
            reply = await self.engines[number % 2].apply(run_id, support.signal(f"s{number}", name="other"))
            self.outcomes.append(reply.outcome)
            self.signals += 1

    async def look(self, run_id: UUID) -> None:
        """Read the run; raises NotFoundError when it is not to be seen."""
        while not self.over.is_set():
            view = await reads.get_run(self.database, run_id)
            assert view.nodes
            self.reads += 1


@pytest.mark.parametrize("named", [False, True])
async def test_no_report_signal_or_reader_misses_a_run_of_a_month_that_is_compacted(
    settings: Settings, database: Database, other: asyncpg.Connection[Any], named: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``named``: both processes name the month's own tables, as two that have missed the month's end."""
    month = Month.of(await database.clock()).plus(-1)
    async with opened(settings) as one, opened(settings) as two:
        if named:
            support.believe(month, monkeypatch, one, two)
        chains = await start_in(one, month, CHAIN, "chain", 0, CHAINS)
        waiting = await start_in(one, month, APPROVAL, "approval", CHAINS, 2)
        load = Load([one, two], database)
        async with asyncio.TaskGroup() as group:
            for claimed in await support.claim(other):
                group.create_task(load.execute(claimed))
            for run_id in waiting:
                group.create_task(load.signal(run_id))
            group.create_task(load.look(chains[0]))
            compacted = await compact(settings, other, month)
            load.over.set()
    assert compacted == [{month: CHAINS + 2}] * SWAPS
    assert set(load.outcomes) == {"applied"}
    assert load.reports == CHAINS * len(CHAIN["nodes"])
    assert load.reads > 0
    statuses = await other.fetch("SELECT status, count(*) FROM partita.workflow_runs GROUP BY 1")
    assert {row[0]: row[1] for row in statuses} == {"Succeeded": CHAINS, "Running": 2}
    states = await other.fetch("SELECT state, count(*) FROM partita.task_instances GROUP BY 1")
    assert {row[0]: row[1] for row in states} == {"Completed": load.reports, "Waiting": 2}
    assert await other.fetchval("SELECT count(*) FROM partita.workflow_events") == load.signals > 0
    gaps = "SELECT run_id FROM partita.run_history GROUP BY run_id HAVING count(*) <> count(DISTINCT seq)"
    assert await other.fetch(gaps) == []


async def compact(settings: Settings, other: asyncpg.Connection[Any], month: Month) -> list[dict[Month, int]]:
    """Compact the month some times, each time with an ended run to get rid of."""
    patient = replace(settings, retention=RetentionSettings(lock_timeout_ms=1_000))
    compacted: list[dict[Month, int]] = []

    async def once() -> bool:
        report = await retention.drop(patient, before=month.plus(1), compact=True)
        if report.compacted:
            compacted.append(report.compacted)
        return bool(report.compacted)

    for number in range(SWAPS):
        await insert_run(other, run_of(month, 10_000 + number))
        await until(once, within=60, what="the month is compacted")
    return compacted


async def test_a_run_that_ends_while_the_month_is_compacted_stays_until_the_next_time(
    settings: Settings, database: Database, other: asyncpg.Connection[Any]
) -> None:
    """Its end is not lost: it is in the new tables."""
    month = Month.of(await database.clock()).plus(-1)
    async with opened(settings) as engine:
        (run_id,) = await start_in(engine, month, {"nodes": [task("only")]}, "single", 0, 1)
        await insert_run(other, run_of(month, 5))
        (claimed,) = await support.claim(other)
        await other.execute("BEGIN; LOCK TABLE partita.workers IN ACCESS SHARE MODE")
        patient = replace(settings, retention=RetentionSettings(lock_timeout_ms=2_000))
        compaction = asyncio.create_task(retention.drop(patient, before=month.plus(1), compact=True))
        await until(lambda: _copied(database, month, run_id), what="the run is copied")
        assert (await engine.report(done(claimed))).outcome == "applied"
        await other.execute("COMMIT")  # for which the compaction has waited
        assert (await compaction).compacted == {month: 1}
        run = await reads.get_run(database, run_id)
        assert run.run.status is RunStatus.SUCCEEDED
        assert await other.fetchval("SELECT count(*) FROM partita.workflow_runs") == 1
        assert await other.fetchval("SELECT count(*) FROM partita.run_endings") == 1
        assert (await retention.drop(settings, before=month.plus(1))).dropped == (month,)


async def _copied(database: Database, month: Month, run_id: UUID) -> bool:
    name = f"partita.workflow_runs_{month.suffix}_new"
    text = f"SELECT EXISTS (SELECT FROM {name} WHERE id = $1)"  # noqa: S608  # names of this file
    exists = await database.read(lambda c: c.fetchval("SELECT to_regclass($1) IS NOT NULL", name))
    return bool(exists and await database.read(lambda c: c.fetchval(text, run_id)))
