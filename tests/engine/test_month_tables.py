"""What a transaction locks does not depend on how many months there are: it names the tables of the current one.

A transaction's locks are looked at before it commits. Whatever keeps the month from being used, the same work is done
on all months.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any, TypeAlias
from urllib.parse import urlsplit, urlunsplit
from uuid import UUID, uuid4

import asyncpg
import pytest

from partita.domain.ids import Month, make_id, to_milliseconds
from partita.domain.payload import Payload
from partita.domain.state.events import CancelRequested, ResumeRequested, SuspendRequested
from partita.domain.state.rows import ErrorInfo
from partita.engine import Engine, StartRequest
from partita.engine.batch import Batch
from partita.engine.claims import Claimer
from partita.settings import RetentionSettings, Settings
from partita.store import partitions, retention, roles
from partita.store.claims import ClaimStore
from partita.store.database import Connection, Dedicated
from partita.store.roles import Roles
from partita.store.session import Session
from partita.store.sql import RECORDS
from tests.engine import support
from tests.engine.shifted_clock import ShiftedClock
from tests.engine.support import APPROVAL, CHAIN, NAMESPACE, OFFER, PAUSE, done, opened
from tests.store.records import insert_run

Other: TypeAlias = "asyncpg.Connection[Any]"
LOCKS = """
SELECT relname::text FROM pg_locks JOIN pg_class ON pg_class.oid = relation
WHERE pid = pg_backend_pid() AND locktype = 'relation' AND relkind IN ('r', 'p')
  AND relnamespace = 'partita'::regnamespace
  AND NOT (relkind = 'p' AND relname <> 'workflow_runs' AND mode = 'AccessShareLock')
"""
"""Without the locks under which a session looks up, once, what may stand in a month."""
HOUR = timedelta(hours=1)


@dataclass
class Watched:
    """The tables that each transaction had locked when its work was done."""

    transactions: list[set[str]] = field(default_factory=list)

    def taken(self) -> list[set[str]]:
        """Those since the last time."""
        seen, self.transactions = self.transactions, []
        return seen


def of_month(tables: set[str], month: Month) -> bool:
    """Whether a transaction has used this month's tables, besides the lock on the parent of runs, and no other ones."""
    records = {name for name in tables if name.startswith(RECORDS)}
    return records - {"workflow_runs"} <= {f"{name}_{month.suffix}" for name in RECORDS} and "workflow_runs" in records


def months_in(tables: set[str]) -> set[str]:
    """Months of which a table is locked."""
    return {name[-6:] for name in tables if name[-6:].isdigit()}


@pytest.fixture
def watched(monkeypatch: pytest.MonkeyPatch) -> Watched:
    """Looks at every transaction of coordinators."""
    watched, run = Watched(), Batch.run

    async def watch(batch: Batch, connection: Connection) -> None:
        await run(batch, connection)
        watched.transactions.append({row[0] for row in await connection.fetch(LOCKS)})

    async def watch_statement(
        dedicated: Dedicated, text: str, *values: object, patience_ms: int | None = None, session: object = None
    ) -> Any:
        assert session in (None, dedicated.session)
        async with dedicated.transaction(patience_ms) as connection:
            row = await connection.fetchrow(text, *values)
            if row is not None and row[0]:
                watched.transactions.append({row[0] for row in await connection.fetch(LOCKS)})
            return row

    monkeypatch.setattr(Batch, "run", watch)
    monkeypatch.setattr(Dedicated, "fetchrow", watch_statement)
    return watched


@pytest.fixture
async def month(engine: Engine) -> Month:
    """The current one."""
    return Month.of(await engine.database.clock())


def one(name: str = "order", **fields: Any) -> StartRequest:
    """A start."""
    return StartRequest(namespace=NAMESPACE, definition=name, **fields)


async def everything(engine: Engine, other: Other) -> None:
    """Starts, alone and by the dozen, and whatever else happens to runs."""
    await engine.deploy(NAMESPACE, "order", CHAIN)
    started = await engine.start_many([one(tags=("red",)) for _ in range(12)])
    assert not [answer for answer in started if isinstance(answer, Exception)]
    await support.finish(engine, other, await support.claim(other))
    assert (await engine.start(one(idempotency_key=str(uuid4())))).created
    (claimed,) = await support.claim(other)
    failed = done(claimed, error=ErrorInfo("broken", "it does not work"), output=None)
    assert (await engine.report(failed, OFFER)).outcome == "applied"
    assert (await engine.report(failed, OFFER)).outcome == "already_applied"
    waiting = await support.start(engine, APPROVAL, name="approval")
    assert (await engine.apply(waiting, support.signal("s1", name="other"))).outcome == "applied"
    assert (await engine.apply(waiting, SuspendRequested())).outcome == "applied"
    assert (await engine.apply(waiting, ResumeRequested())).outcome == "applied"
    assert (await engine.apply(waiting, support.signal("s2"))).outcome == "applied"
    paused = await support.start(engine, PAUSE, name="pause")
    assert (await engine.apply(paused, CancelRequested(mode="Now"))).outcome == "applied"
    statuses = {row[0] for row in await other.fetch("SELECT status FROM partita.workflow_runs")}
    assert statuses == {"Succeeded", "Failed", "Cancelled"}


async def test_what_a_transaction_locks_does_not_grow_with_the_months(
    settings: Settings, other: Other, watched: Watched
) -> None:
    most = []
    for ahead in (3, 20):
        current = Month.of(await other.fetchval("SELECT clock_timestamp()"))
        await partitions.ensure(settings, now=current.plus(ahead - 3).start)
        async with opened(settings) as engine:
            await everything(engine, other)
        seen = watched.taken()
        assert len(seen) > 12
        assert [tables for tables in seen if not of_month(tables, current)] == []
        most.append(max(map(len, seen)))
    assert most[0] == most[1] < 20


async def test_a_transaction_over_two_months_uses_all(
    engine: Engine, other: Other, month: Month, watched: Watched
) -> None:
    await engine.deploy(NAMESPACE, "order", CHAIN)
    await engine.start(one())
    watched.taken()
    old = make_id(to_milliseconds(month.plus(-1).start), 1)
    await asyncio.gather(engine.start(one(run_id=old)), engine.start(one()))
    assert [len(months_in(tables)) > 1 for tables in watched.taken()] in ([True], [True, False], [False, True])
    await support.finish(engine, other, await support.claim(other))
    assert await other.fetchval("SELECT count(*) FROM partita.run_endings WHERE status = 'Succeeded'") == 3


@pytest.fixture
async def clock(settings: Settings) -> AsyncIterator[ShiftedClock]:
    """The database's clock, for everyone who connects after it."""
    clock = await ShiftedClock.of(settings)
    yield clock
    await clock.close()


async def test_after_midnight_the_new_month_is_named(
    clock: ShiftedClock, engine: Engine, other: Other, watched: Watched
) -> None:
    """The first transaction of the new month tells the time to those that follow. The process has another clock."""
    old = Month.of(await engine.database.clock()).plus(1)
    new = old.plus(1)
    await clock.put(new.start - HOUR)
    await engine.deploy(NAMESPACE, "order", CHAIN)
    ids = [make_id(to_milliseconds(new.start) - 1 - number, 1) for number in range(2)]
    for run_id in ids:
        await engine.start(one(run_id=run_id))
    assert of_month(watched.taken()[-1], old)
    ahead = make_id(to_milliseconds(new.start), 0)
    await engine.start(one(run_id=ahead))
    assert not of_month(watched.taken()[-1], new), "its month has not come yet"
    await clock.put(new.start + HOUR)
    tasks = {one.run_id: one for one in await support.claim(other)}
    await engine.report(done(tasks[ids[0]]), OFFER)
    assert of_month(watched.taken()[-1], old), "until a transaction has read the time"
    await engine.report(done(tasks[ids[1]]), OFFER)
    assert not of_month(watched.taken()[-1], old), "runs of an old month"
    await engine.report(done(tasks[ahead]), OFFER)
    assert of_month(watched.taken()[-1], new)
    rows = await other.fetch("SELECT id, right(tableoid::regclass::text, 6) FROM partita.workflow_runs")
    assert {row[0]: row[1] for row in rows} == {**dict.fromkeys(ids, old.suffix), ahead: new.suffix}


@pytest.mark.parametrize("table", ["workflow_runs", "task_instances", "run_history"])
async def test_where_a_months_table_is_missing_the_same_is_done_on_all_months(
    settings: Settings, engine: Engine, other: Other, month: Month, watched: Watched, table: str
) -> None:
    """As long as a minute: then the month is looked for again."""
    await engine.deploy(NAMESPACE, "order", CHAIN)
    await engine.start(one())
    (first,) = await support.claim(other)
    await other.execute(f"ALTER TABLE partita.{table}_{month.suffix} RENAME TO elsewhere")
    before = engine.coordinator.transactions
    reply = await engine.report(done(first), OFFER)
    assert (reply.outcome, engine.coordinator.transactions - before) == ("applied", 2)
    assert reply.next is not None
    assert (await engine.report(done(reply.next), OFFER)).outcome == "applied"
    assert engine.coordinator.transactions - before == 3
    assert all("elsewhere" in tables for tables in watched.taken()[1:])
    await other.execute(f"ALTER TABLE partita.elsewhere RENAME TO {table}_{month.suffix}")
    async with opened(settings) as fresh:
        await fresh.start(one())
        await fresh.start(one())
    assert of_month(watched.taken()[-1], month)


async def test_a_claim_finds_its_inputs_with_the_months_table_and_without_it(
    engine: Engine, other: Other, month: Month
) -> None:
    await engine.deploy(NAMESPACE, "order", {"nodes": [support.task("a", input={"n": 7})]})
    session = Session(engine.database, "claimer")
    claimer = Claimer(ClaimStore(session), worker_id="w", queues=["default"], namespaces=None, trail_ms=50)
    for number in range(4):
        if number == 2:
            await other.execute(f"ALTER TABLE partita.task_instances_{month.suffix} RENAME TO elsewhere")
        await engine.start(one())
        (claimed,) = await claimer.claim(5)
        assert claimed.input == Payload.of({"n": 7})
        low = claimed.run_id.int
        assert (engine.database.months.sql(low, low) is engine.database.sql) == (number > 1)
    await session.close()


@pytest.fixture
async def coordinator(
    settings: Settings, other: Other, let_in: Callable[[str], None]
) -> AsyncIterator[tuple[str, Settings]]:
    """The coordinator's real role, and settings with which an engine logs in as it."""
    suffix = uuid4().hex[:8]
    names = Roles(f"coordinator_{suffix}", f"reader_{suffix}")
    await roles.apply(settings.database, names)
    await other.execute(f"ALTER ROLE {names.coordinator} LOGIN")
    let_in(names.coordinator)
    parts = urlsplit(settings.database.url)
    url = urlunsplit(parts._replace(netloc=f"{names.coordinator}@{parts.netloc.rpartition('@')[2]}"))
    yield names.coordinator, replace(settings, database=replace(settings.database, url=url, planner="role"))
    for name in (names.coordinator, names.reader):
        await other.execute(f"DROP OWNED BY {name}; DROP ROLE {name}")


async def test_the_coordinators_role_uses_a_month_that_was_made_later(
    clock: ShiftedClock, settings: Settings, other: Other, coordinator: tuple[str, Settings], watched: Watched
) -> None:
    """Also where the schema's default privileges do not say so: it has what it has on the parent."""
    role, limited = coordinator
    await other.execute(f"ALTER DEFAULT PRIVILEGES IN SCHEMA partita REVOKE ALL ON TABLES FROM {role}")
    await other.execute(f"GRANT USAGE ON SCHEMA shifted TO {role}; GRANT SELECT ON shifted.moment TO {role}")
    later = Month.of(await other.fetchval("SELECT clock_timestamp()")).plus(8)
    await clock.put(later.start + HOUR)
    assert any(name.endswith(later.suffix) for name in await partitions.ensure(settings))
    async with opened(limited) as engine:
        await engine.deploy(NAMESPACE, "order", CHAIN)
        for number in range(2):
            await engine.start(one(run_id=make_id(to_milliseconds(later.start) + number, number)))
        assert engine.coordinator.transactions == 2
        assert of_month(watched.taken()[-1], later)


async def test_a_role_without_rights_on_the_month_uses_all_months(
    other: Other, coordinator: tuple[str, Settings], watched: Watched
) -> None:
    role, limited = coordinator
    month = Month.of(await other.fetchval("SELECT clock_timestamp()"))
    async with opened(limited) as engine:
        await engine.deploy(NAMESPACE, "order", CHAIN)
        await engine.start(one())
        await other.execute(f"REVOKE ALL ON partita.run_history_{month.suffix} FROM {role}")
        await support.finish(engine, other, await support.claim(other))
        assert engine.coordinator.transactions == 5, "three reports, of which one was tried on the month first"
    assert [of_month(tables, month) for tables in watched.taken()] == [True] + [False] * 3


async def test_a_process_that_thinks_an_old_month_current_cannot_write_into_one_that_is_dropped(
    settings: Settings, engine: Engine, other: Other, month: Month, watched: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As one that was frozen for a month. A drop sees that its transaction is under way, though it has locked the old
    month's tables alone; and what begins after the drop has published its floor is refused."""
    old = month.plus(-1)
    support.believe(old, monkeypatch, engine)
    await engine.deploy(NAMESPACE, "order", CHAIN)
    await insert_run(other, run_of(old, 99))
    held, release = asyncio.Event(), asyncio.Event()
    run = Batch.run

    async def hold(batch: Batch, connection: Connection) -> None:
        await run(batch, connection)
        held.set()
        await release.wait()

    monkeypatch.setattr(Batch, "run", hold)
    starting = asyncio.create_task(engine.start(one(run_id=run_of(old, 1))))
    await held.wait()
    assert of_month(watched.taken()[-1], old)
    quick = replace(settings, retention=RetentionSettings(lock_timeout_ms=20))
    report = await retention.drop(quick, before=month)
    assert report.dropped == ()
    assert "in use (a transaction of pid" in report.kept[old], "it waits for the start without a lock"
    release.set()
    assert (await starting).created
    with pytest.raises(Exception, match="older months have been dropped"):
        await engine.start(one(run_id=run_of(old, 2)))
    assert "1 unfinished run(s)" in (await retention.drop(settings, before=month)).kept[old]
    await support.finish(engine, other, await support.claim(other))
    assert of_month(watched.taken()[-1], old)
    assert (await retention.drop(settings, before=month)).dropped == (old,)
    request = one(run_id=run_of(old, 3))
    with pytest.raises(Exception, match="older months have been dropped"):
        await engine.start(request)


def run_of(month: Month, number: int) -> UUID:
    """An id of a month."""
    return make_id(to_milliseconds(month.start) + number, number)
