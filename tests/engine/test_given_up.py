"""What the engine gives up on is said by the status of the run that stands still because of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias
from uuid import UUID, uuid4

import asyncpg
import pytest

from partita.domain.errors import EngineError
from partita.domain.payload import Json
from partita.domain.state.effects import TimerKey
from partita.domain.state.events import ChildFinished
from partita.domain.state.rows import RunStatus, TimerKind
from partita.engine import Engine
from partita.engine.requests import CrRef
from partita.store.failures import DEAD_AFTER
from partita.store.projection import ProjectionStore, Row
from tests.engine.support import NAMESPACE, PAUSE, deliver, send, start, task
from tests.waiting import until

Connection: TypeAlias = "asyncpg.Connection[Any]"
ONE: Json = {"nodes": [{"name": "down", "workflow": {"name": "leaf"}, "input": {}}]}
MANY: Json = {"nodes": [{**ONE["nodes"][0], "forEach": {"items": "${ [1, 2] }"}}]}


async def ordered(engine: Engine, spec: Json) -> UUID:
    """A run that an object ordered."""
    cr = CrRef(
        cluster_uid="cluster",
        engine_id="cluster/partita",
        uid=str(uuid4()),
        namespace=NAMESPACE,
        name="order-1",
        generation=1,
    )
    return await start(engine, spec, cr=cr)


async def waits(engine: Engine, run_id: UUID) -> Sequence[Row]:
    """What the run's status says that it waits for."""
    store = ProjectionStore(engine.database)
    rows = await store.statuses([run_id], {}, output_bytes=10, nodes=20, signals=10, suspension_events=())
    await store.close()
    return rows.waiting


async def revision(connection: Connection, run_id: UUID) -> tuple[int, int | None]:
    """Of the record, and of the status that is due."""
    row = await connection.fetchrow(
        "SELECT r.revision, q.revision FROM partita.workflow_runs AS r"
        " LEFT JOIN partita.projection_queue AS q ON q.run_id = r.id WHERE r.id = $1",
        run_id,
    )
    assert row is not None
    return row[0], row[1]


@pytest.mark.parametrize("spec", [ONE, MANY], ids=["one", "loop"])
async def test_a_child_that_cannot_be_started(
    engine: Engine, other: Connection, monkeypatch: pytest.MonkeyPatch, spec: Json
) -> None:
    async def broken(*_: object) -> None:
        raise EngineError("the start is broken")

    engine.notices.messages.clear()
    monkeypatch.setattr("partita.engine.children.Children.start", broken)
    await engine.deploy(NAMESPACE, "leaf", {"nodes": [task("pack")]})
    run_id = await ordered(engine, spec)
    number = await other.fetchval("SELECT max(id) FROM partita.run_inbox")
    await other.execute("DELETE FROM partita.projection_queue")
    before, _ = await revision(other, run_id)
    for failures in range(1, DEAD_AFTER + 1):
        assert await revision(other, run_id) == (before, None)
        assert [row["dead"] for row in await waits(engine, run_id)] == [None], failures
        await deliver(engine, other, number)
    assert await revision(other, run_id) == (before + 1, before + 1)
    (row,) = await waits(engine, run_id)
    assert (row["kind"], row["node"], row["dead"]) == ("child", "down", "the start is broken")


async def test_the_end_of_a_child_that_cannot_be_told(engine: Engine, other: Connection) -> None:
    await engine.deploy(NAMESPACE, "leaf", {"nodes": [task("pack")]})
    run_id = await ordered(engine, ONE)
    child = await until(
        lambda: other.fetchval("SELECT id FROM partita.workflow_runs WHERE parent_id = $1", run_id), what="the child"
    )
    ended = ChildFinished(node="down", index=0, attempt=1, child=child, status=RunStatus.SUCCEEDED)
    (number,) = await send(other, run_id, ended)
    await other.execute("UPDATE partita.workflow_runs SET version = 77 WHERE id = $1", run_id)  # none can load it
    await other.execute("UPDATE partita.run_inbox SET failures = $1", DEAD_AFTER - 1)
    before, _ = await revision(other, run_id)
    await deliver(engine, other, number)
    assert await revision(other, run_id) == (before + 1, before + 1)
    (row,) = await waits(engine, run_id)
    assert "77" in row["dead"]


async def test_a_timer_that_cannot_fire(engine: Engine, other: Connection) -> None:
    run_id = await ordered(engine, PAUSE)
    await other.execute("UPDATE partita.timers SET fire_at = clock_timestamp(), failures = $1", DEAD_AFTER - 1)
    await other.execute("UPDATE partita.workflow_runs SET version = 77 WHERE id = $1", run_id)
    before, _ = await revision(other, run_id)
    with pytest.raises(EngineError):
        await engine.coordinator.timer_due(run_id, TimerKey(TimerKind.WAIT, "pause", 0))
    assert await revision(other, run_id) == (before + 1, before + 1)
    (row,) = await waits(engine, run_id)
    assert "77" in row["dead"]
