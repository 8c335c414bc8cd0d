"""A run id that no month takes is refused through every way in, before anything is stored."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from typing import Any, TypeAlias
from uuid import UUID, uuid4

import asyncpg
import pytest

from partita.domain.errors import ExpiredError, InvalidError, PartitaError, TooEarlyError
from partita.domain.ids import make_id, to_milliseconds
from partita.engine import Engine, StartRequest
from partita.engine.reconcile import Installation, Outcome, Reconciler
from partita.store.projection import ProjectionStore
from tests.engine import support
from tests.engine.support import CHAIN, NAMESPACE

Connection: TypeAlias = "asyncpg.Connection[Any]"
STORED = ("workflow_runs", "task_instances", "open_runs", "run_keys", "run_inbox", "ready_tasks")


def outside(now: datetime, floor: datetime) -> list[tuple[UUID, type[PartitaError]]]:
    """Ids that are not taken, and why."""
    early, late = to_milliseconds(floor), to_milliseconds(now + timedelta(hours=24))
    return [
        (make_id(early - 1, (1 << 74) - 1), ExpiredError),
        (make_id(0, 1), ExpiredError),
        (make_id(late + 60_000, 0), TooEarlyError),
        (make_id((1 << 47) - 1, 0), TooEarlyError),
        (uuid4(), InvalidError),
        (UUID(int=0), InvalidError),
        (UUID(int=make_id(late, 0).int & ~(0b11 << 62)), InvalidError),  # version 7 of another variant
    ]


async def stored(connection: Connection) -> int:
    """Rows of everything that a start writes."""
    counts = [await connection.fetchval(f"SELECT count(*) FROM partita.{name}") for name in STORED]  # noqa: S608  # names of this file
    return sum(counts)


def request(run_id: UUID) -> StartRequest:
    """A start with an id of its own."""
    return StartRequest(namespace=NAMESPACE, definition="order", run_id=run_id, idempotency_key=f"key-{run_id}")


async def _start(engine: Engine, _: Connection, run_id: UUID) -> object:
    return await engine.start(request(run_id))


async def _start_in(engine: Engine, connection: Connection, run_id: UUID) -> object:
    async with connection.transaction():
        return await engine.start_in(connection, request(run_id))


async def _start_among_others(engine: Engine, _: Connection, run_id: UUID) -> object:
    (answer,) = await engine.start_many([request(run_id)])
    if isinstance(answer, PartitaError):
        raise answer
    return answer


@pytest.mark.parametrize("way", [_start, _start_in, _start_among_others])
async def test_an_id_outside_the_months_is_refused_and_leaves_nothing(
    engine: Engine, other: Connection, way: Callable[[Engine, Connection, UUID], Awaitable[object]]
) -> None:
    await engine.deploy(NAMESPACE, "order", CHAIN)
    row = await other.fetchrow("SELECT retention_floor, now() FROM partita.engine_state")
    assert row is not None
    for run_id, error in outside(row[1], row[0]):
        with pytest.raises(error, match=str(run_id)):
            await way(engine, other, run_id)
    assert await stored(other) == 0
    for inside in (make_id(to_milliseconds(row[0]), 0), make_id(to_milliseconds(row[1] + timedelta(hours=23)), 0)):
        await way(engine, other, inside)
    assert await stored(other) > 0


async def test_reports_and_signals_to_such_an_id_find_no_run(engine: Engine, other: Connection) -> None:
    """They touch no month either: there is none."""
    row = await other.fetchrow("SELECT retention_floor, now() FROM partita.engine_state")
    assert row is not None
    (run_id,) = [await support.start(engine, CHAIN)]
    (claimed,) = await support.claim(other, run_id)
    for strange, _ in outside(row[1], row[0]):
        with pytest.raises(PartitaError, match="does not exist"):
            await engine.apply(strange, support.signal("s"))
        report = support.done(claimed)
        object.__setattr__(report, "run_id", strange)
        assert (await engine.report(report)).outcome == "stale"
    assert (await engine.report(support.done(claimed))).outcome == "applied"


async def test_an_object_of_another_time_has_a_refusal_instead_of_a_run(engine: Engine, other: Connection) -> None:
    """Too old for ever, too far ahead for now: then it is started when its time has come."""
    await engine.deploy(NAMESPACE, "order", CHAIN)
    row = await other.fetchrow("SELECT retention_floor, now() FROM partita.engine_state")
    assert row is not None
    store = ProjectionStore(engine.database)
    reconciler = Reconciler(engine, store, Installation(cluster_uid="c", engine_id="c/partita"), _nobody_is_absent)
    cases = [
        (row[0] - timedelta(milliseconds=1), Outcome.REFUSED, ("Expired", False)),
        (row[1] + timedelta(hours=25), Outcome.WAITING, ("TooEarly", True)),
    ]
    for created, outcome, refusal in cases:
        body = _object(created)
        assert await reconciler.take_in(body) is outcome
        refusals = "SELECT reason, waiting FROM partita.run_refusals WHERE cr_uid = $1"
        assert [tuple(found) for found in await other.fetch(refusals, body["metadata"]["uid"])] == [refusal]
    assert await stored(other) == 0
    assert await reconciler.take_in(_object(row[1] + timedelta(hours=23))) is Outcome.STARTED
    await store.close()


def _object(created: datetime) -> dict[str, Any]:
    """A WorkflowRun as the API server sends it."""
    metadata = {"namespace": NAMESPACE, "name": "one", "uid": str(uuid4()), "generation": 1}
    return {
        "apiVersion": "partita.dev/v1alpha1",
        "kind": "WorkflowRun",
        "metadata": {**metadata, "creationTimestamp": created.isoformat()},
        "spec": {"definitionRef": {"name": "order"}},
    }


async def _nobody_is_absent(*_: str) -> bool:
    return False
