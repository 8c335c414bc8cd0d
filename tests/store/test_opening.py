"""One statement answers what the separate ones do, and touches no run that it could not lock."""

from __future__ import annotations

import random
from datetime import timedelta
from typing import Final
from uuid import UUID, uuid4

import pytest

from partita.domain.ids import make_id, to_milliseconds
from partita.settings import Settings
from partita.store import fences, slices
from partita.store.database import Connection, Database
from partita.store.fences import Demand, LeaseFence
from partita.store.opening import Asked, Opened, open_reports
from partita.store.slices import TaskRequest
from partita.store.sql import Sql
from tests.engine.support import connected, lock_run
from tests.store.records import insert, insert_run

NODES: Final = ("a", "b", "c")


async def stored(database: Database) -> tuple[list[UUID], list[LeaseFence]]:
    """Runs with tasks, some of which are leased."""
    now = await database.clock()
    runs = [make_id(to_milliseconds(now), number) for number in range(5)]
    leases = []
    for number, run_id in enumerate(runs):
        await insert_run(
            database, run_id, status="Running", seq=number, active=2, error_json='{"type":"t","message":"m"}'
        )
        for node in NODES[: number % 3 + 1]:
            await insert(
                database, "task_instances", run_id=run_id, index=0, state="Queued", kind="task", node=node, queue="q",
                attempt=1, input='{"x": 1}', output='"out"', route=["p", "q"], ready_seq=number, ready_lane=1,
                ready_priority=0, retries='{"n": 1}', queued_at=now,
            )  # fmt: skip  # a column a line says no more
            lease = LeaseFence(run_id, node, 0, 1, uuid4(), Demand.WORKER)
            await insert(
                database, "task_leases", run_id=run_id, node=node, index=0, attempt=1, lease_id=lease.lease_id,
                claim_id=uuid4(), worker_id="w", claimed_at=now, deadline_at=now + timedelta(hours=1), generation=0,
                queue="q", type="t",
            )  # fmt: skip  # as above
            leases.append(lease)
    return runs, leases


def asked_for(runs: list[UUID], leases: list[LeaseFence], order: random.Random) -> Asked:
    """Some of all that there is, and some that there is not."""
    existing = sorted(order.sample([*runs, make_id(1, 1)], order.randint(1, 4)))
    ended = [lease for lease in leases if lease.run_id in existing and order.random() < 0.7]
    ended += [lease._replace(lease_id=uuid4()) for lease in ended if order.random() < 0.3]
    ended += [lease._replace(attempt=2) for lease in ended if order.random() < 0.3]
    tasks = [
        TaskRequest(run_id, node, order.choice([0, 0, 1]), payload=order.random() < 0.5)
        for run_id in existing
        for node in NODES
        if order.random() < 0.8
    ]
    return Asked(existing, ended, tasks)


async def apart(connection: Connection, sql: Sql, asked: Asked) -> Opened:
    """What a statement a purpose answers."""
    locked = await slices.lock_runs(connection, sql, asked.runs)
    loaded = await slices.load_runs(connection, sql, asked.runs)
    leases = await fences.end_leases(connection, sql, asked.fences) if asked.fences else {}
    tasks = await slices.load_tasks(connection, sql, asked.tasks) if asked.tasks else []
    return Opened(loaded, locked, leases, tasks)


@pytest.mark.parametrize("seed", range(4))
async def test_the_answers_are_those_of_a_statement_each(database: Database, seed: int) -> None:
    runs, leases = await stored(database)
    order = random.Random(seed)  # noqa: S311  # a repeatable order, no secret
    dedicated, sql = database.dedicated("test"), database.sql
    found = 0
    for _ in range(25):
        asked = asked_for(runs, leases, order)
        async with dedicated.transaction() as connection:
            await connection.execute("SAVEPOINT before")
            expected = await apart(connection, sql, asked)
            await connection.execute("ROLLBACK TO SAVEPOINT before")
            opened = await open_reports(connection, sql, asked)
            await connection.execute("ROLLBACK TO SAVEPOINT before")
        assert opened.locked == expected.locked
        assert opened.leases == expected.leases
        assert by_place(opened) == by_place(expected)
        one, other = opened.loaded, expected.loaded
        assert (one.runs, one.paused, one.retention_floor, one.xid) == (
            other.runs, other.paused, other.retention_floor, other.xid,
        )  # fmt: skip  # side by side
        assert other.now <= one.now
        found += len(opened.locked) + len(opened.leases) + len(opened.tasks)
    assert found > 50
    await dedicated.close()


def by_place(opened: Opened) -> dict[tuple[UUID, str, int], object]:
    """Task rows by their keys."""
    return {(run_id, task.node, task.index): task for run_id, task in opened.tasks}


async def test_of_a_run_that_somebody_else_holds_nothing_is_touched(database: Database, settings: Settings) -> None:
    runs, leases = await stored(database)
    held, free = runs[:2]
    tasks = [TaskRequest(run_id, "a", 0, payload=True) for run_id in (held, free)]
    asked = Asked([held, free], [lease for lease in leases if lease.run_id in {held, free}], tasks)
    dedicated = database.dedicated("test")
    async with connected(settings) as other:
        await lock_run(other, held)
        async with dedicated.transaction() as connection:
            opened = await open_reports(connection, database.sql, asked)
        await other.execute("ROLLBACK")
    assert opened.locked == {free}
    assert set(opened.loaded.runs) == {held, free}
    assert {key[0] for key in opened.leases} == {run_id for run_id, _ in opened.tasks} == {free}
    assert await database.fetch("load_leased", [held]) != []
    assert await database.fetch("load_leased", [free]) == []
    await dedicated.close()
