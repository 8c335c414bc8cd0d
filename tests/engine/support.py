"""Engines, runs and workers for the tests of the coordinator, on a real database."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any
from uuid import UUID, uuid4

import asyncpg
import pytest

from partita.domain.ids import Month
from partita.domain.payload import Json, Payload
from partita.domain.state.effects import ChildStart, Message
from partita.domain.state.events import Event, SignalReceived
from partita.engine import ClaimedTask, Engine, Offer, Report, StartRequest
from partita.engine.messages import row_of
from partita.engine.urgency import Urgency
from partita.settings import Settings
from partita.store import direct
from partita.store.months import Months
from tests.postgres import direct_url
from tests.waiting import until

NAMESPACE = "shop"
WORKER = "worker-1"
OFFER = Offer(worker_id=WORKER, queues=frozenset({"default"}))
CLAIM = """
WITH taken AS (
    DELETE FROM partita.ready_tasks WHERE ctid = ANY (ARRAY (
        SELECT ctid FROM partita.ready_tasks WHERE $3::uuid IS NULL OR run_id = $3
        ORDER BY queue, lane, priority, seq FOR UPDATE SKIP LOCKED
    )) RETURNING *, gen_random_uuid() AS lease_id
), leased AS (
    INSERT INTO partita.task_leases
    SELECT run_id, lease_id, $1, clock_timestamp(), clock_timestamp() + interval '5 minutes', index, attempt,
           generation, node, $2, queue, type
    FROM taken
)
SELECT * FROM taken ORDER BY seq
"""


def task(name: str, *after: str, **fields: Json) -> Json:
    """A task node."""
    return {"name": name, "task": {"type": "noop"}, "dependsOn": list(after), **fields}


CHAIN = {"nodes": [task("a"), task("b", "a"), task("c", "b")]}
DIAMOND = {"nodes": [task("left"), task("right"), task("join", "left", "right")]}
APPROVAL = {"nodes": [{"name": "approval", "waitForEvent": {"name": "approval"}}]}
PAUSE = {"nodes": [{"name": "pause", "wait": {"duration": "1h"}}, task("after", "pause")]}


@asynccontextmanager
async def opened(settings: Settings, **engine: int) -> AsyncIterator[Engine]:
    """An engine with one lane, so that what is submitted together shares a transaction."""
    changed = replace(settings, engine=replace(settings.engine, **{"lanes": 1, **engine}))
    async with await Engine.open(changed, application=f"test-{uuid4().hex[:8]}") as engine_:
        yield engine_


@asynccontextmanager
async def connected(settings: Settings) -> AsyncIterator[asyncpg.Connection[Any]]:
    """A connection of somebody else."""
    connection = await asyncpg.connect(direct_url(settings))
    try:
        yield connection
    finally:
        connection.terminate()


async def start(engine: Engine, spec: Json, *, name: str = "order", **fields: Any) -> UUID:
    """A new run of this spec."""
    await engine.deploy(NAMESPACE, name, spec)
    return (await engine.start(StartRequest(namespace=NAMESPACE, definition=name, **fields))).run_id


async def start_many(engine: Engine, spec: Json, count: int) -> list[UUID]:
    """So many runs of this spec."""
    await engine.deploy(NAMESPACE, "order", spec)
    requests = [StartRequest(namespace=NAMESPACE, definition="order") for _ in range(count)]
    return [reply.run_id for reply in await asyncio.gather(*(engine.start(request) for request in requests))]


async def claim(connection: asyncpg.Connection[Any], run_id: UUID | None = None) -> list[ClaimedTask]:
    """Claim everything that is ready (of one run), as one statement without any run's lock."""
    rows = await connection.fetch(CLAIM, uuid4(), WORKER, run_id)
    names = ("run_id", "generation", "node", "index", "attempt", "lease_id", "type", "queue", "namespace", "timeout_ms")
    return [
        ClaimedTask(**{name: row[name] for name in names}, input=Payload.of({}), deadline=row["enqueued_at"])
        for row in rows
    ]


def done(task: ClaimedTask, output: Json = None, **fields: Any) -> Report:
    """The report that an attempt succeeded."""
    report = Report(
        run_id=task.run_id,
        generation=task.generation,
        node=task.node,
        index=task.index,
        attempt=task.attempt,
        lease_id=task.lease_id,
        worker_id=WORKER,
        output=Payload.of(output),
    )
    return replace(report, **fields)


def signal(id_: str, name: str = "approval", payload: Json = None, sender: str = "") -> SignalReceived:
    """A signal."""
    return SignalReceived(id=id_, name=name, payload=Payload.of(payload), sender=sender)


async def status(connection: asyncpg.Connection[Any], run_id: UUID) -> str:
    """A run's recorded status."""
    return str(await connection.fetchval("SELECT status FROM partita.workflow_runs WHERE id = $1", run_id))


async def count(connection: asyncpg.Connection[Any], table: str, run_id: UUID) -> int:
    """Rows of a table that belong to a run."""
    statement = f"SELECT count(*) FROM partita.{table} WHERE run_id = $1"  # noqa: S608  # names of this file only
    return int(await connection.fetchval(statement, run_id))


async def blocked(connection: asyncpg.Connection[Any], number: int = 1) -> None:
    """Wait until so many sessions of the engines wait for a lock."""

    async def waiting() -> bool:
        await connection.execute("SELECT pg_stat_clear_snapshot()")  # a transaction sees one picture of all sessions
        found = await connection.fetchval(
            "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database() "
            "AND (application_name LIKE 'test-%' OR application_name = '')",  # PgBouncer is not told of names
        )
        return int(found) >= number

    await until(waiting, what=f"{number} sessions waiting for a lock")


async def lock_run(connection: asyncpg.Connection[Any], run_id: UUID) -> None:
    """Hold a run's lock until the connection's transaction ends."""
    await connection.execute("BEGIN")
    await connection.execute("SELECT FROM partita.workflow_runs WHERE id = $1 FOR NO KEY UPDATE", run_id)


async def finish(engine: Engine, connection: asyncpg.Connection[Any], tasks: Sequence[ClaimedTask]) -> None:
    """Work through tasks and what follows from them."""
    todo = list(tasks)
    while todo:
        replies = await asyncio.gather(*(engine.report(done(one), OFFER) for one in todo))
        todo = [reply.next for reply in replies if reply.next is not None] + await claim(connection)


async def send(connection: asyncpg.Connection[Any], run_id: UUID, *events: Event | ChildStart) -> list[int]:
    """Messages as another process would leave them."""
    rows = [row_of(Message(run_id, event), NAMESPACE) for event in events]
    return [
        await connection.fetchval(
            "INSERT INTO partita.run_inbox (run_id, kind, body) VALUES ($1, $2, $3) RETURNING id", *row
        )
        for row in rows
    ]


async def deliver(engine: Engine, connection: asyncpg.Connection[Any], *numbers: int) -> list[object]:
    """Deliver rows at the same time; answers or errors."""
    rows = await connection.fetch(
        "SELECT id, run_id, kind, body FROM partita.run_inbox WHERE id = ANY ($1) ORDER BY array_position($1, id)",
        list(numbers),
    )
    return list(await asyncio.gather(*map(engine.deliver, rows), return_exceptions=True))


def steady(monkeypatch: pytest.MonkeyPatch) -> None:
    """How a transaction is made depends on what it does, and on no second that passes meanwhile: nobody looks at what
    is urgent, and a process may be slow."""

    async def nothing(*_: object) -> None:
        return None

    monkeypatch.setattr(Urgency, "look", nothing)
    monkeypatch.setattr(direct, "CLOCK_MS", 5_000)


def believe(month: Month, monkeypatch: pytest.MonkeyPatch, *engines: Engine) -> None:
    """Let processes take this for the current month, whatever the database's clock says, as if they had been frozen."""
    for engine in engines:
        engine.database.months.learn(month.start)
    monkeypatch.setattr(Months, "learn", lambda *_: None)
