"""Where claims begin to read: past what an old snapshot keeps, and never past what was invisible."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import asyncpg
import pytest

from partita.engine.positions import Depth, Positions, Seen, sequence
from partita.settings import Settings
from partita.store.claims import ReadyGroup
from partita.store.database import Database
from tests.engine.ready_rows import Harness, enqueue
from tests.postgres import direct_url

GROUP = ReadyGroup("default", 3, 0)


@pytest.fixture
async def connection(settings: Settings) -> AsyncIterator[asyncpg.Connection[Any]]:
    opened = await asyncpg.connect(direct_url(settings))
    yield opened
    await opened.close()


@pytest.fixture
async def other(settings: Settings) -> AsyncIterator[asyncpg.Connection[Any]]:
    opened = await asyncpg.connect(direct_url(settings))
    yield opened
    await opened.close()


@pytest.fixture
async def harness(database: Database) -> AsyncIterator[Harness]:
    made = Harness(database)
    yield made
    await made.close()


def test_the_first_look_is_from_the_beginning_and_over_all_groups() -> None:
    plan = Positions(["default"], 50).plan(0.0)
    assert plan.depth is Depth.BEGINNING
    assert len(plan.starts) == 80
    assert set(plan.starts.values()) == {0}


def test_a_position_stays_a_trail_behind_what_was_taken() -> None:
    positions = Positions(["default"], 50)
    taken = sequence(1_000)
    positions.learn(positions.plan(0.0), 0.0, Seen([(GROUP, taken)], {}, None))
    plan = positions.plan(0.01)
    assert plan.depth is Depth.ACTIVE
    assert plan.starts == {GROUP: taken - sequence(0.05)}
    assert positions.plan(0.06).depth is Depth.ALL


def test_looks_go_back_two_seconds_once_a_second_and_to_the_beginning_every_twenty() -> None:
    positions = Positions(["default"], 0)
    taken = sequence(1_000)
    depths, starts = {}, {}
    for tenth in range(210):
        now = tenth / 10
        plan = positions.plan(now)
        depths[tenth] = plan.depth
        starts[plan.depth] = plan.starts.get(GROUP)
        positions.learn(plan, now, Seen([(GROUP, taken)], {}, None))
    assert [tenth for tenth, depth in depths.items() if depth is Depth.BEGINNING] == [0, 200]
    assert [tenth for tenth, depth in depths.items() if depth is Depth.LOOK_BACK][:3] == [10, 20, 30]
    assert starts[Depth.LOOK_BACK] == taken - sequence(2)


def test_when_all_that_was_seen_was_taken_time_moves_every_position() -> None:
    positions = Positions(["default"], 50)
    positions.learn(positions.plan(0.0), 0.0, Seen([], {}, sequence(2_000)))
    assert set(positions.plan(0.1).starts.values()) == {sequence(2_000) - sequence(0.05)}


def test_running_dry_is_worth_one_look_from_the_beginning_a_second() -> None:
    positions = Positions(["default"], 50)
    positions.learn(positions.plan(0.0), 0.0, Seen([(GROUP, 1)], {}, None))
    assert not positions.exhausted(0.5), "it looked from the beginning half a second ago"
    assert positions.exhausted(1.5)
    assert not positions.exhausted(1.6), "once is enough as long as nothing was found"
    positions.learn(positions.plan(1.6), 1.6, Seen([(GROUP, 1)], {}, None))
    assert positions.exhausted(1.7)


async def test_an_old_snapshot_does_not_make_claims_slower(harness: Harness, connection: Any, other: Any) -> None:
    await enqueue(connection, 3_000, age=60)
    async with other.transaction(isolation="repeatable_read"):
        await other.fetchval("SELECT count(*) FROM partita.ready_tasks")
        remembering, forgetful = harness.claimer(), harness.claimer()
        while await remembering.claim(500):
            pass
        await enqueue(connection, 20)

        async def entries_read() -> int:
            flush = "SELECT pg_stat_force_next_flush()"
            await harness.database.read(lambda pooled: pooled.fetchval(flush))  # PgBouncer keeps the claims' session
            await connection.fetchval(flush)
            return int(
                await connection.fetchval(
                    "SELECT idx_tup_read FROM pg_stat_user_indexes WHERE indexrelname = 'ready_tasks_claim'"
                )
            )

        await harness.close()
        before = await entries_read()
        assert len(await remembering.claim(10)) == 10
        await harness.close()
        remembered = await entries_read() - before
        before = await entries_read()
        assert len(await forgetful.claim(10)) == 10
        await harness.close()
        forgotten = await entries_read() - before
    assert forgotten > 3_000, "the first look reads every entry that the snapshot keeps"
    assert remembered < 300


async def test_a_row_of_a_transaction_that_commits_late_is_found(harness: Harness, connection: Any, other: Any) -> None:
    claimer = harness.claimer()
    await enqueue(connection, 2)
    transaction = other.transaction()
    await transaction.start()
    (late,) = await enqueue(other, age=1)
    assert len(await claimer.claim(5)) == 2, "the positions are now past the late row"
    await transaction.commit()
    harness.clock.now += 0.5
    assert await claimer.claim(5) == []
    harness.clock.now += 0.5
    assert [task.run_id for task in await claimer.claim(5)] == [late]


async def test_a_late_row_that_a_hint_tells_of_is_found_at_once(harness: Harness, connection: Any, other: Any) -> None:
    claimer = harness.claimer()
    await enqueue(connection, 2)
    transaction = other.transaction()
    await transaction.start()
    (late,) = await enqueue(other, age=1)
    assert len(await claimer.claim(5)) == 2, "the positions are now past the late row"
    await transaction.commit()
    harness.clock.now += 0.2
    assert await claimer.claim(5) == []
    claimer.hint()
    assert [task.run_id for task in await claimer.claim(5)] == [late]


def test_a_hint_is_worth_one_look_back_and_a_share_of_the_time() -> None:
    positions = Positions(["default"], 50)
    positions.learn(positions.plan(0.0), 0.0, Seen([(GROUP, 1)], {}, None))
    assert not positions.promised(0.5)
    positions.hint()
    assert positions.promised(0.5)
    look = positions.plan(0.5, wider_than=Depth.ALL)
    assert look.depth is Depth.LOOK_BACK
    positions.learn(look, 0.51, Seen([], {}, None))
    assert not positions.promised(0.7), "it has been answered"
    positions.hint()
    assert not positions.promised(0.52), "the last look back is a moment ago"
    plan = positions.plan(0.8)
    positions.hint()
    positions.learn(plan, 0.8, Seen([(GROUP, 2)], {}, None))
    assert positions.promised(0.8), "a hint that came after the look began is not answered by it"
    positions.learn(positions.plan(0.8, wider_than=Depth.ALL), 1.8, Seen([], {}, None))
    positions.hint()
    assert not positions.promised(2.0), "the last look back took a second"


def test_a_late_row_makes_the_trail_longer_for_a_while() -> None:
    positions = Positions(["default"], 50)
    late, taken = sequence(1_000), sequence(1_000.4)
    positions.learn(positions.plan(0.0), 0.0, Seen([(GROUP, taken)], {}, None))
    positions.learn(positions.plan(1.0), 1.0, Seen([], {GROUP: late}, None))
    positions.learn(positions.plan(1.01), 1.01, Seen([(GROUP, sequence(1_001))], {}, None))
    trail = sequence(1_001) - positions.plan(1.02).starts[GROUP]
    assert trail == pytest.approx(sequence(0.35 * 1.5), rel=0.01)
    for look in range(1, 6):
        positions.learn(positions.plan(20.0 * look), 20.0 * look, Seen([], {}, None))
    positions.learn(positions.plan(101.0), 101.0, Seen([(GROUP, sequence(1_100))], {}, None))
    assert sequence(1_100) - positions.plan(101.01).starts[GROUP] == sequence(0.05)


async def test_late_rows_beyond_the_limit_are_found_without_another_look_back(
    harness: Harness, connection: Any, other: Any
) -> None:
    claimer = harness.claimer()
    await enqueue(connection, 2)
    transaction = other.transaction()
    await transaction.start()
    late = await enqueue(other, 10, age=1)
    assert len(await claimer.claim(5)) == 2
    await transaction.commit()
    harness.clock.now += 1
    found = [task.run_id for task in await claimer.claim(3)]
    for _ in range(3):
        found += [task.run_id for task in await claimer.claim(3)]
    assert found == late


async def test_late_rows_are_not_forgotten_while_all_slots_go_to_other_groups(
    harness: Harness, connection: Any, other: Any
) -> None:
    claimer = harness.claimer()
    await enqueue(connection, 2)
    transaction = other.transaction()
    await transaction.start()
    (late,) = await enqueue(other, lane=7, priority=-2, age=1)
    assert len(await claimer.claim(5)) == 2
    await transaction.commit()
    await enqueue(connection, 1, lane=7, priority=2)
    harness.clock.now += 1
    assert late not in [task.run_id for task in await claimer.claim(1)]
    harness.clock.now += 0.1
    assert [task.run_id for task in await claimer.claim(1)] == [late]


async def test_a_row_older_than_the_look_back_is_found_from_the_beginning(
    harness: Harness, connection: Any, other: Any
) -> None:
    claimer = harness.claimer()
    transaction = other.transaction()
    await transaction.start()
    (late,) = await enqueue(other, age=10)
    await enqueue(connection, 2)
    assert len(await claimer.claim(5)) == 2
    await transaction.commit()
    harness.clock.now += 1
    found = await claimer.claim(5)
    harness.clock.now += 20
    assert [task.run_id for task in found + await claimer.claim(5)] == [late]
