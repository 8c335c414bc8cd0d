"""Claims move ready tasks to leases: order, fairness, filters, pause, and what happens when the answer is lost."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import asyncpg
import pytest

from partita.domain.errors import UnavailableError
from partita.engine.claims import ProtocolTooOldError
from partita.settings import Settings
from partita.store.claims import ClaimAnswer, ClaimQuery, ClaimStore
from partita.store.database import Database
from partita.store.session import LostError, Session
from tests.engine.ready_rows import Harness, enqueue
from tests.postgres import direct_url
from tests.waiting import until


@pytest.fixture
async def connection(settings: Settings) -> AsyncIterator[asyncpg.Connection[Any]]:
    opened = await asyncpg.connect(direct_url(settings))
    yield opened
    await opened.close()


@pytest.fixture
async def harness(database: Database) -> AsyncIterator[Harness]:
    made = Harness(database)
    yield made
    await made.close()


async def test_a_claim_moves_rows_and_brings_their_inputs(harness: Harness, connection: Any) -> None:
    runs = await enqueue(connection, 3)
    tasks = await harness.claimer().claim(2)
    assert [task.run_id for task in tasks] == runs[:2]
    assert [task.input.value for task in tasks] == [{"run": str(run)} for run in runs[:2]]
    leases = await connection.fetch("SELECT * FROM partita.task_leases ORDER BY run_id")
    assert [(lease["run_id"], lease["lease_id"], lease["worker_id"]) for lease in leases] == [
        (task.run_id, task.lease_id, "w1") for task in tasks
    ]
    for lease, task in zip(leases, tasks, strict=True):
        assert lease["deadline_at"] == task.deadline
        assert lease["deadline_at"] - lease["claimed_at"] == timedelta(milliseconds=task.timeout_ms)
    assert await connection.fetchval("SELECT array_agg(run_id) FROM partita.ready_tasks") == runs[2:]


async def test_a_level_of_priority_is_worth_thirty_seconds(harness: Harness, connection: Any) -> None:
    (low,) = await enqueue(connection, priority=-1, age=29)
    (normal,) = await enqueue(connection)
    (high,) = await enqueue(connection, priority=1)
    (starved,) = await enqueue(connection, priority=-2, age=95)
    assert [(await harness.claimer().claim(1))[0].run_id for _ in range(4)] == [starved, high, normal, low]


async def test_lanes_take_turns(harness: Harness, connection: Any) -> None:
    await enqueue(connection, 50, lane=1, namespace="crowd", age=100)
    (alone,) = await enqueue(connection, lane=2, namespace="alone")
    tasks = await harness.claimer().claim(4)
    assert alone in [task.run_id for task in tasks]
    assert len(tasks) == 4


async def test_only_served_queues_and_namespaces_are_claimed(harness: Harness, connection: Any) -> None:
    await enqueue(connection, queue="other")
    await enqueue(connection, namespace="foreign")
    (mine,) = await enqueue(connection, namespace="shop", lane=5)
    claimer = harness.claimer(namespaces=["shop"])
    assert await claimer.claim(10) == [], "the namespace of a lane is not looked for in another lane"
    everywhere = harness.claimer(namespaces=None)
    assert {task.namespace for task in await everywhere.claim(10)} == {"shop", "foreign"}
    assert await connection.fetchval("SELECT queue FROM partita.ready_tasks") == "other"
    assert mine


async def test_a_task_past_its_schedule_to_start_is_left_to_the_sweeper(harness: Harness, connection: Any) -> None:
    await enqueue(connection, expires_at=datetime.now(UTC) - timedelta(seconds=1))
    (valid,) = await enqueue(connection, expires_at=datetime.now(UTC) + timedelta(seconds=60))
    assert [task.run_id for task in await harness.claimer().claim(5)] == [valid]


async def test_nothing_is_handed_out_while_paused(harness: Harness, connection: Any) -> None:
    claimer = harness.claimer(trail_ms=0)
    assert await claimer.claim(5) == []
    (run,) = await enqueue(connection)
    await connection.execute("UPDATE partita.engine_state SET paused = true")
    for _ in range(5):
        harness.clock.now += 0.1
        assert await claimer.claim(5) == []
    await connection.execute("UPDATE partita.engine_state SET paused = false")
    harness.clock.now += 0.1  # too early for a look back: the positions have to have stood still
    assert [task.run_id for task in await claimer.claim(5)] == [run]


async def test_a_process_that_is_too_old_is_told(harness: Harness, connection: Any) -> None:
    await enqueue(connection)
    await connection.execute("UPDATE partita.engine_state SET oldest_protocol = 99")
    with pytest.raises(ProtocolTooOldError, match="update this worker"):
        await harness.claimer().claim(1)
    assert await connection.fetchval("SELECT count(*) FROM partita.task_leases") == 0


async def test_claimers_never_wait_for_each_other_nor_share_a_task(harness: Harness, connection: Any) -> None:
    runs = await enqueue(connection, 200)
    claimers = [harness.claimer(worker_id=f"w{n}") for n in range(4)]

    async def drain(claimer: Any) -> list[Any]:
        taken: list[Any] = []
        while tasks := await claimer.claim(10):
            taken += tasks
        return taken

    results = await asyncio.gather(*map(drain, claimers))
    claimed = [task.run_id for tasks in results for task in tasks]
    assert len(claimed) == len(set(claimed))
    remaining = await connection.fetchval("SELECT count(*) FROM partita.ready_tasks")
    assert len(claimed) + remaining == len(runs)
    assert len(claimed) >= 190, "a claimer that finds all candidates taken looks further before it gives up"


async def test_locked_rows_are_skipped_and_found_again(harness: Harness, connection: Any) -> None:
    runs = await enqueue(connection, 2)
    claimer = harness.claimer()
    async with connection.transaction():
        await connection.execute("SELECT FROM partita.ready_tasks WHERE run_id = $1 FOR UPDATE", runs[0])
        assert [task.run_id for task in await claimer.claim(2)] == [runs[1]]
    harness.clock.now += 1
    assert [task.run_id for task in await claimer.claim(2)] == [runs[0]]


class LosesAnswers(ClaimStore):
    """The server commits (or not), and the connection breaks before the answer arrives."""

    def __init__(self, session: Session, *, commits: bool) -> None:
        super().__init__(session)
        self.commits = commits
        self.losing = 1
        self.away = False

    async def claim(self, query: ClaimQuery) -> ClaimAnswer:
        if not self.losing:
            return await super().claim(query)
        self.losing -= 1
        if self.commits:
            await super().claim(query)
        raise LostError("database: the connection was lost")

    async def look_up(self, claim_id: Any) -> Any:
        if self.away:
            raise UnavailableError("database: is away")
        return await super().look_up(claim_id)


async def test_a_claim_of_unknown_outcome_is_adopted(harness: Harness, connection: Any) -> None:
    runs = await enqueue(connection, 2)
    await connection.executemany(
        "INSERT INTO partita.workflow_runs (id, definition_id, start_request_id, created_at, version, total, status,"
        " namespace, name, definition, context_json)"
        " VALUES ($1, $1, $1, now(), 1, 1, 'Running', 'shop', 'x', 'd', '{}')",
        [(run,) for run in runs],
    )
    store = LosesAnswers(harness.session(), commits=True)
    store.away = True
    claimer = harness.claimer(store)
    with pytest.raises(UnavailableError):
        await claimer.claim(2)
    store.away = False
    tasks = await claimer.claim(2)
    leases = await connection.fetch("SELECT run_id, lease_id FROM partita.task_leases")
    assert {(task.run_id, task.lease_id) for task in tasks} == {tuple(lease) for lease in leases}
    assert {task.run_id for task in tasks} == set(runs)
    for task in tasks:
        assert (task.namespace, task.timeout_ms, task.input.value) == ("shop", 60_000, {"run": str(task.run_id)})
    assert await claimer.claim(2) == []


async def test_a_claim_that_was_not_committed_is_made_again(harness: Harness, connection: Any) -> None:
    (run,) = await enqueue(connection)
    claimer = harness.claimer(LosesAnswers(harness.session(), commits=False))
    assert await claimer.claim(1) == []
    harness.clock.now += 1
    assert [task.run_id for task in await claimer.claim(1)] == [run]


async def test_a_claim_survives_the_loss_of_its_connection(harness: Harness, connection: Any) -> None:
    (run,) = await enqueue(connection)
    claimer = harness.claimer()

    async def terminate() -> bool:
        await connection.execute("SELECT pg_stat_clear_snapshot()")
        ended = await connection.fetch(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE datname = current_database() AND wait_event_type = 'Lock' AND pid <> pg_backend_pid()"
        )
        return bool(ended)

    async with asyncio.TaskGroup() as group, connection.transaction():
        await connection.execute("LOCK TABLE partita.task_leases IN ACCESS EXCLUSIVE MODE")
        claim = group.create_task(claimer.claim(1))
        await until(terminate, what="the claim waits for the table")
        # The transaction of the claim is rolled back with its session; the look-up finds nothing.
    assert claim.result() == []
    harness.clock.now += 1
    assert [task.run_id for task in await claimer.claim(1)] == [run]
