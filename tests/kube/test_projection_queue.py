"""The fences of status projection, on a real database."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any
from uuid import UUID

import pytest
from uuid6 import uuid7

from partita.engine.projection_queue import Projections, SupersededError
from partita.settings import LimitSettings
from partita.store.database import Connection, Database
from partita.store.projection import ProjectionStore, RefusalRow
from tests.store.records import insert, insert_run

ENGINE = "cluster/partita"


@pytest.fixture
async def store(database: Database) -> AsyncIterator[ProjectionStore]:
    store = ProjectionStore(database)
    yield store
    await store.close()


async def queue(database: Database, run_id: UUID, revision: int) -> None:
    """What a transaction that changes the run does."""
    text = database.sql("queue_projection")
    now = await database.clock()
    await database.read(lambda connection: connection.execute(text, [run_id], [revision], [now]))


async def term(store: ProjectionStore) -> Projections:
    """The projections of a new term."""
    epoch = await store.claim_engine(ENGINE)
    assert epoch is not None
    return Projections(store, LimitSettings(), ENGINE, epoch)


async def test_a_newer_revision_survives_the_end_of_an_older_write(database: Database, store: ProjectionStore) -> None:
    projections, run_id = await term(store), uuid7()
    await queue(database, run_id, 1)
    assert await projections.due(10) == [(run_id, 1)]
    await queue(database, run_id, 2)
    await projections.shown([(run_id, 1)])
    assert await projections.due(10) == [(run_id, 2)]
    await projections.shown([(run_id, 2)])
    assert await projections.due(10) == []


async def test_an_earlier_term_neither_reads_nor_deletes(database: Database, store: ProjectionStore) -> None:
    earlier, run_id = await term(store), uuid7()
    await queue(database, run_id, 1)
    later = await term(store)
    with pytest.raises(SupersededError):
        await earlier.due(10)
    await earlier.shown([(run_id, 1)])
    assert await later.due(10) == [(run_id, 1)]


async def test_what_could_not_be_shown_is_due_later(database: Database, store: ProjectionStore) -> None:
    projections, run_id = await term(store), uuid7()
    await queue(database, run_id, 1)
    await projections.postpone([run_id], 60_000)
    assert await projections.due(10) == []
    await queue(database, run_id, 2)
    assert await projections.due(10) == [(run_id, 2)]


async def test_the_same_refusal_is_shown_once_and_another_one_again(store: ProjectionStore) -> None:
    projections = await term(store)

    async def refuse(message: str) -> None:
        refusal = RefusalRow(
            cr_uid="u-1",
            cr_generation=1,
            cr_namespace="shop",
            cr_name="order-1",
            definition="order",
            waiting=True,
            reason="DefinitionNotFound",
            message=message,
        )
        await store.record_refusal(ENGINE, refusal)

    await refuse("missing")
    await projections.refusals_shown(await projections.refusals(10))
    await refuse("missing")
    assert await projections.refusals(10) == []
    await refuse("disabled")
    assert [refusal.message for refusal in await projections.refusals(10)] == ["disabled"]
    await store.forget_refusals(ENGINE, ["u-1"])
    assert await projections.refusals(10) == []


class BesideStore(ProjectionStore):
    """Lets something else commit between the first statement and those behind it."""

    beside: Callable[[], Awaitable[object]] | None = None

    async def _select(self, connection: Connection, name: str, *values: object) -> list[Any]:
        rows = await super()._select(connection, name, *values)
        if self.beside is not None:
            beside, self.beside = self.beside, None
            await beside()
        return rows


async def test_a_status_is_of_one_moment(database: Database) -> None:
    run_id, store = uuid7(), BesideStore(database)
    await insert_run(database, run_id, cr_uid="u", cr_generation=1, revision=7)
    await insert(database, "task_instances", run_id=run_id, node="each", kind="task", state="Queued")
    change = database.sql.written("""
        WITH ended AS (UPDATE :"schema".task_instances SET state = 'Completed' WHERE run_id = $1),
             begun AS (INSERT INTO :"schema".waits (run_id, name, seq, since, node, index)
                       VALUES ($1, 'spare', 1, now(), 'spare', 0))
        UPDATE :"schema".workflow_runs SET revision = 8 WHERE id = $1""")

    async def told() -> tuple[int, str, int]:
        rows = await store.statuses([run_id], {}, output_bytes=10, nodes=20, signals=10, suspension_events=())
        return rows.runs[0]["revision"], rows.nodes[0]["state"], len(rows.waiting)

    store.beside = lambda: database.read(lambda connection: connection.execute(change, run_id))
    assert await told() == (7, "Queued", 0)
    assert await told() == (8, "Completed", 1)
    await store.close()
