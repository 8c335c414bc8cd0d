"""Partitions while others are at work: processes that do the same at once, and long readers beside a running load."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

import asyncpg
import pytest

from partita.domain.ids import Month, make_id, to_milliseconds
from partita.engine import Engine, StartRequest
from partita.settings import DatabaseSettings, RetentionSettings, Settings
from partita.store import migrations, partitions, retention
from partita.store.database import Database
from tests.engine import support
from tests.engine.support import NAMESPACE, OFFER, done, opened, task
from tests.postgres import direct_url
from tests.store.records import insert_run, open_run
from tests.waiting import until

PROCESSES = 10
PROGRAM = """
import asyncio, os, sys
from partita.settings import Settings
from partita.store import partitions, retention
settings = Settings.load(os.environ)
if sys.argv[1] == "ensure":
    print(*asyncio.run(partitions.ensure(settings)))
else:
    report = asyncio.run(retention.drop(settings))
    print(*report.dropped)
    print(*report.kept.values())
"""


async def together(settings: Settings, work: str, **environment: str) -> list[list[str]]:
    """The lines of ten processes that begin at the same time; each has to succeed."""
    url = {"PARTITA_DATABASE_URL": direct_url(settings), **environment}
    processes = [
        await asyncio.create_subprocess_exec(
            sys.executable, "-c", PROGRAM, work,
            env={**os.environ, **url}, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
        )
        for _ in range(PROCESSES)
    ]  # fmt: skip  # the command on one line
    answers = await asyncio.wait_for(asyncio.gather(*(process.communicate() for process in processes)), 120)
    assert [process.returncode for process in processes] == [0] * PROCESSES, answers
    return [out.decode().splitlines() for out, _ in answers]


async def test_ten_processes_make_and_drop_each_month_once(empty_database_url: str) -> None:
    behind = RetentionSettings(months_behind=4, months_ahead=1)
    fresh = Settings(database=DatabaseSettings(url=empty_database_url), retention=behind)
    await migrations.migrate(fresh.database)
    retained = {"PARTITA_RETENTION_MONTHS": "1", "PARTITA_DATABASE_PATIENCE_MS": "90000"}
    ranges = {"PARTITA_RETENTION_MONTHS_BEHIND": "4", "PARTITA_RETENTION_MONTHS_AHEAD": "1"}
    names = " ".join(line for lines in await together(fresh, "ensure", **ranges) for line in lines).split()
    async with await Database.open(fresh.database) as database:
        status = await partitions.status(database)
        assert (
            len(names)
            == len(set(names))
            == 6 * len(await database.read(lambda c: partitions.table_names(c, database.sql)))
        )
        assert [one.missing for one in status.months] == [()] * 6
        current = Month.of(status.now)
        kept = current.plus(-3)
        run_id = make_id(to_milliseconds(kept.start), 1)
        await insert_run(database, run_id)
        await open_run(database, run_id)
        answers = await together(fresh, "drop", **retained)
        dropped = " ".join(lines[0] for lines in answers).split()
        assert sorted(dropped) == [str(current.plus(-4)), str(current.plus(-2))]
        assert all(str(run_id) in lines[1] for lines in answers)
        left = [one.month for one in (await partitions.status(database)).months]
        assert left == [kept, current.plus(-1), current, current.plus(1)]


@dataclass(slots=True)
class Watch:
    """Looks whether the engine's statements would have to wait for a lock on the records."""

    looks: int = 0
    waits: int = 0


@asynccontextmanager
async def watching(settings: Settings, tables: list[str]) -> AsyncIterator[Watch]:
    """Ask for the engine's locks all the time, without waiting; asking counts a lock that somebody waits for too."""
    connection = await asyncpg.connect(direct_url(settings))
    watch, over = Watch(), asyncio.Event()
    text = f"LOCK TABLE {', '.join(f'ONLY partita.{name}' for name in tables)} IN ROW EXCLUSIVE MODE NOWAIT"

    async def look() -> None:
        while not over.is_set():
            try:
                async with connection.transaction():
                    await connection.execute(text)
            except asyncpg.LockNotAvailableError:
                watch.waits += 1
            watch.looks += 1
            await asyncio.sleep(0)

    looking = asyncio.create_task(look())
    try:
        yield watch
    finally:
        over.set()
        await looking
        await connection.close()


@asynccontextmanager
async def loading(engine: Engine, connection: asyncpg.Connection[Any]) -> AsyncIterator[list[str]]:
    """Runs that are started and executed one after the other; the outcomes of their reports."""
    outcomes: list[str] = []
    over = asyncio.Event()
    await engine.deploy(NAMESPACE, "order", {"nodes": [task("a"), task("b", "a")]})

    async def work() -> None:
        while not over.is_set():
            await asyncio.gather(
                *(engine.start(StartRequest(namespace=NAMESPACE, definition="order")) for _ in range(5))
            )
            for claimed in await support.claim(connection):
                reply = await engine.report(done(claimed), OFFER)
                assert reply.next is not None
                last = await engine.report(done(reply.next))
                outcomes.extend((reply.outcome, last.outcome))

    working = asyncio.create_task(work())
    try:
        yield outcomes
    finally:
        over.set()
        await working


async def record_tables(database: Database, month: Month) -> list[str]:
    """The partitioned tables and what they are in a month."""
    names = await database.read(lambda c: partitions.table_names(c, database.sql))
    return [*names, *(f"{name}_{month.suffix}" for name in names)]


@pytest.mark.parametrize(
    "hold",
    [
        "SELECT count(*) FROM partita.run_history",
        "LOCK TABLE {tables} IN ACCESS SHARE MODE",
    ],
    ids=["reader", "pg_dump"],
)
@pytest.mark.parametrize("compact", [False, True])
async def test_whoever_holds_the_tables_delays_the_drop_and_never_the_load(
    settings: Settings, database: Database, hold: str, compact: bool
) -> None:
    """The drop says that it is busy, and is done by a later call. Meanwhile no statement of the engine waits for a lock
    on a table, because nobody waits in front of it."""
    current = Month.of(await database.clock())
    month = current.plus(-1)
    tables = await record_tables(database, current)
    for number in range(2):
        run_id = make_id(to_milliseconds(month.start + timedelta(days=3)), number)
        await insert_run(database, run_id)
    if compact:
        await open_run(database, run_id)
    quick = replace(settings, retention=RetentionSettings(lock_timeout_ms=50))
    holder, worker = [await asyncpg.connect(direct_url(settings)) for _ in range(2)]
    async with opened(settings) as engine, loading(engine, worker) as outcomes:
        await holder.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
        await holder.execute(hold.format(tables=", ".join(f"partita.{name}" for name in await _months(database))))
        async with watching(settings, tables) as watch:
            for _ in range(3):
                begun = len(outcomes)
                report = await retention.drop(quick, before=current, compact=compact)
                assert (report.dropped, report.compacted) == ((), {})
                assert "in use" in report.kept[month]
                await more(outcomes, begun)
        assert watch.looks > 20
        assert watch.waits == 0
        await holder.execute("COMMIT")
        report = await retention.drop(settings, before=current, compact=compact)
        assert (report.dropped, report.compacted) == (((), {month: 1}) if compact else ((month,), {}))
    assert set(outcomes) == {"applied"}
    await holder.close()
    await worker.close()


async def _months(database: Database) -> list[str]:
    """All tables that pg_dump would lock."""
    text = "SELECT relname FROM pg_class WHERE relkind IN ('r', 'p') AND relnamespace = 'partita'::regnamespace"
    return [row[0] for row in await database.read(lambda c: c.fetch(text))]


async def more(outcomes: list[str], begun: int) -> None:
    """Wait until the load has gone on."""

    async def gone_on() -> bool:
        return len(outcomes) > begun + 4

    await until(gone_on, what="the load goes on")


async def test_a_drop_takes_no_lock_that_the_load_would_wait_for(settings: Settings, database: Database) -> None:
    """With nobody in the way either: it is done at once, and the tables that are written to are never locked."""
    current = Month.of(await database.clock())
    await insert_run(database, make_id(to_milliseconds(current.plus(-1).start), 1))
    tables = await record_tables(database, current)
    worker = await asyncpg.connect(direct_url(settings))
    async with opened(settings) as engine, loading(engine, worker) as outcomes:
        await more(outcomes, 0)
        async with watching(settings, tables) as watch:
            report = await retention.drop(settings, before=current)
        await more(outcomes, len(outcomes))
    await worker.close()
    assert report.dropped == (current.plus(-1),)
    assert watch.looks > 5
    assert watch.waits == 0
    assert set(outcomes) == {"applied"}
