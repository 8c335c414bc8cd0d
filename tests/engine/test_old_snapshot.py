"""Looks for work do not step again and again over what an old snapshot keeps, and what they pass by is found later."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from datetime import timedelta
from typing import Any

import asyncpg
import pytest

from partita.engine.inbox import Inbox
from partita.engine.pace import LONGEST, Pace
from partita.engine.positions import Positions, Seen
from partita.engine.urgency import Urgency
from partita.minting import new_id
from partita.settings import Settings
from partita.store.claims import ReadyGroup
from partita.store.database import Database, Record
from partita.store.duties import DutyStore
from partita.store.sequence import position
from tests.engine.manual_clock import ManualClock
from tests.engine.ready_rows import enqueue
from tests.engine.support import connected

GROUP = ReadyGroup("default", 3, 0)


class SlowClock(ManualClock):
    """Each reading is later than the one before, so that whatever is measured with it took some time."""

    def __init__(self, step: float = 0.05) -> None:
        super().__init__()
        self.step = step

    def monotonic(self) -> float:
        self.now += self.step
        return self.now


@pytest.fixture
async def connection(settings: Settings) -> AsyncIterator[asyncpg.Connection[Any]]:
    async with connected(settings) as opened:
        yield opened


@pytest.fixture
async def other(settings: Settings) -> AsyncIterator[asyncpg.Connection[Any]]:
    async with connected(settings) as opened:
        yield opened


def test_a_look_that_costs_nothing_is_always_due() -> None:
    clock = ManualClock()
    pace = Pace(clock)
    pace.looked(clock.now)
    assert pace.due
    assert not pace.costly


@pytest.mark.parametrize(("cost", "pause"), [(0.001, 0.1), (0.1, 10.0), (3.0, LONGEST)])
def test_looks_take_a_hundredth_of_the_time_and_come_every_twenty_seconds(cost: float, pause: float) -> None:
    clock = ManualClock()
    pace = Pace(clock)
    begun = pace.now
    clock.now += cost
    pace.looked(begun)
    due = []
    for part in (0.99, 0.02):
        clock.now += pause * part
        due.append(pace.due)
    assert due == [False, True]
    assert pace.costly is (cost > 0.01)


def test_running_dry_is_not_worth_a_look_from_the_beginning_that_takes_long() -> None:
    positions = Positions(["default"], 50)
    positions.learn(positions.plan(0.0), 0.1, Seen([(GROUP, 1)], {}, None))
    assert not positions.exhausted(9.0), "it took a tenth of a second, so that ten have to pass"
    assert positions.exhausted(10.5)


class Recording(DutyStore):
    """Remembers where each look began."""

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self.begun: list[int] = []

    async def due_inbox(self, kinds: Sequence[str], limit: int, position: int = 0) -> list[Record]:
        self.begun.append(position)
        return await super().due_inbox(kinds, limit, position)


class Applied:
    """Takes every row that it is given."""

    def __init__(self, connection: asyncpg.Connection[Any]) -> None:
        self._connection = connection
        self.ids: list[int] = []

    async def deliver(self, row: Record) -> object:
        self.ids.append(row["id"])
        return await self._connection.execute("DELETE FROM partita.run_inbox WHERE id = $1", row["id"])


async def leave(connection: asyncpg.Connection[Any], rows: int = 1, *, later: bool = False) -> list[int]:
    """Rows in inboxes of runs, due now or in an hour."""
    return [
        await connection.fetchval(
            "INSERT INTO partita.run_inbox (run_id, kind, body, due_at)"
            " VALUES ($1, 'signal', '{}', clock_timestamp() + $2) RETURNING id",
            new_id(),
            timedelta(hours=later),
        )
        for _ in range(rows)
    ]


async def test_looks_for_messages_begin_at_the_first_row_that_is_there(database: Database, connection: Any) -> None:
    """Which is the first one that waits, due or not; where there is none, behind the last number that was given out."""
    gone = await leave(connection, 5)
    (waits,) = await leave(connection, later=True)
    await connection.execute("DELETE FROM partita.run_inbox WHERE id = ANY ($1)", gone)
    clock = SlowClock()
    store, applied = Recording(database), Applied(connection)
    inbox = Inbox(store, applied, longest_ms=500, clock=clock)
    await inbox.tick()
    await inbox.tick()
    assert store.begun == [0, waits], "the first look was from the beginning, and expensive"
    await connection.execute("DELETE FROM partita.run_inbox")
    clock.now += LONGEST
    await inbox.tick()
    (new,) = await leave(connection)
    await inbox.tick()
    assert store.begun[2:] == [0, waits, waits], "nothing waited: behind the last number"
    assert applied.ids == [new]


async def test_a_message_of_a_transaction_that_commits_late_is_delivered(
    database: Database, connection: Any, other: Any
) -> None:
    transaction = other.transaction()
    await transaction.start()
    (late,) = await leave(other)
    await leave(connection, later=True)
    clock = SlowClock()
    applied = Applied(connection)
    inbox = Inbox(Recording(database), applied, longest_ms=500, clock=clock)
    await inbox.tick()
    await transaction.commit()
    await inbox.tick()
    assert applied.ids == [], "the look began behind it"
    clock.now += LONGEST
    await inbox.tick()
    assert applied.ids == [late]


async def test_a_role_that_may_not_read_the_number_looks_from_where_it_did_before(
    database: Database, connection: Any
) -> None:
    await leave(connection, 3)
    await connection.execute("DELETE FROM partita.run_inbox")
    assert await connection.fetchval(database.sql("inbox_beginning")) == 3
    role = f"partita_test_{new_id().hex}"
    await connection.execute(
        f"CREATE ROLE {role}; GRANT USAGE ON SCHEMA partita TO {role}; GRANT SELECT ON partita.run_inbox TO {role}"
    )
    await connection.execute(f"SET ROLE {role}")
    assert await connection.fetchval(database.sql("inbox_beginning")) == 0
    await connection.execute(f"RESET ROLE; DROP OWNED BY {role}; DROP ROLE {role}")


async def test_cheap_looks_for_messages_are_all_from_the_beginning(database: Database, connection: Any) -> None:
    await leave(connection, 2, later=True)
    store = Recording(database)
    inbox = Inbox(store, Applied(connection), longest_ms=500, clock=SlowClock(0.001))
    for _ in range(3):
        await inbox.tick()
    assert store.begun == [0, 0, 0]


class Watched:
    """A connection that remembers where looks for urgent work began."""

    def __init__(self, connection: asyncpg.Connection[Any]) -> None:
        self._connection = connection
        self.begun: list[list[int]] = []

    async def fetch(self, text: str, *arguments: Any) -> list[Record]:
        self.begun.append(arguments[3])
        return list(await self._connection.fetch(text, *arguments))


async def test_looks_for_urgent_work_begin_at_the_first_row_of_each_group(database: Database, connection: Any) -> None:
    await enqueue(connection, 3, lane=3, age=100)
    first = await connection.fetchval("SELECT min(seq) FROM partita.ready_tasks")
    now = await connection.fetchval("SELECT clock_timestamp()")
    clock = SlowClock()
    urgency, watched = Urgency(Pace(clock)), Watched(connection)
    for later in (0, 2, 4):
        await urgency.look(watched, database.sql, {"default"}, now + timedelta(seconds=later))  # type: ignore[arg-type]  # all it needs of a connection
    assert set(watched.begun[0]) == {0}
    assert sorted(set(watched.begun[1])) == [first, position(now - timedelta(seconds=2))]
    assert watched.begun[1].count(first) == 1
    assert not urgency.allows("default", 0, now), "something has waited for 100 s"
    await connection.execute("DELETE FROM partita.ready_tasks")
    await enqueue(connection, 1, lane=9, age=50)
    await urgency.look(watched, database.sql, {"default"}, now + timedelta(seconds=6))  # type: ignore[arg-type]  # as above
    assert urgency.allows("default", 0, now), "what is older than the position is not seen at once"
    clock.now += LONGEST
    await urgency.look(watched, database.sql, {"default"}, now + timedelta(seconds=8))  # type: ignore[arg-type]  # as above
    assert set(watched.begun[-1]) == {0}
    assert not urgency.allows("default", 0, now), "it has waited for 50 s"


async def test_urgency_weighs_age_and_priority(database: Database, connection: Any) -> None:
    await enqueue(connection, 1, lane=1, age=70)
    now = await connection.fetchval("SELECT clock_timestamp()")
    urgency = Urgency()
    await urgency.look(connection, database.sql, {"default"}, now)
    assert [urgency.allows("default", priority, now) for priority in (0, 1, 2)] == [False, False, True]
    await enqueue(connection, 1, lane=2, priority=2)
    await urgency.look(connection, database.sql, {"default"}, now + timedelta(seconds=2))
    assert not urgency.allows("default", 0, now)
    assert urgency.allows("elsewhere", -2, now)
