"""The fences of status projection, on a real database."""

from __future__ import annotations

from collections.abc import AsyncIterator
from uuid import UUID

import pytest
from uuid6 import uuid7

from partita.engine.projection_queue import Projections, SupersededError
from partita.settings import LimitSettings
from partita.store.database import Database
from partita.store.projection import ProjectionStore, RefusalRow

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
