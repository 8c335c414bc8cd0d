"""Runs that the engine starts and ends are in the lists that their columns ask for, in every state."""

from __future__ import annotations

from typing import Any, TypeAlias
from uuid import UUID

import asyncpg
import pytest

from partita.domain.state.events import CancelRequested
from partita.engine import Engine, StartReply, StartRequest
from partita.store import lists
from partita.store.database import Database
from partita.store.views import RunFilter
from tests.engine import support

Connection: TypeAlias = "asyncpg.Connection[Any]"
LABELS = ("#eu", "#vip", "team=red", "note=a=b")
FILTERS = (
    RunFilter(started_by="ann"),
    RunFilter(tags=("eu", "vip")),
    RunFilter(attributes={"team": "red", "note": "a=b"}),
    RunFilter(tags=("vip",), started_by="ann", namespace=support.NAMESPACE, definition="order"),
)


def request(**fields: Any) -> StartRequest:
    return StartRequest(**{"namespace": support.NAMESPACE, "definition": "order", **fields})


def labelled(**fields: Any) -> StartRequest:
    attributes = {"team": "red", "note": "a=b"}
    return request(started_by="ann", tags=("eu", "vip"), attributes=attributes, **fields)


@pytest.fixture(autouse=True)
async def deployed(engine: Engine) -> None:
    await engine.deploy(support.NAMESPACE, "order", support.CHAIN)


async def listed(database: Database, query: RunFilter) -> list[UUID]:
    return [run.id for run in (await lists.list_runs(database, query)).runs]


async def labels(connection: Connection, run_id: UUID) -> list[tuple[int, str]]:
    rows = await connection.fetch("SELECT label, status FROM partita.run_labels WHERE run_id = $1 ORDER BY 1", run_id)
    return [(row["label"], row["status"]) for row in rows]


async def test_a_run_is_listed_from_its_start_to_after_its_end(engine: Engine, other: Connection) -> None:
    wanted = (await engine.start(labelled())).run_id
    plain = (await engine.start(request())).run_id
    assert [await listed(engine.database, query) for query in FILTERS] == [[wanted]] * len(FILTERS)
    for run_id in (wanted, plain):
        await engine.apply(run_id, CancelRequested(mode="Now"))
    assert await support.status(other, wanted) == "Cancelled"
    assert [await listed(engine.database, query) for query in FILTERS] == [[wanted]] * len(FILTERS)
    text = "SELECT ('x' || left(md5(label), 16))::bit(64)::bigint AS label FROM unnest($1::text[]) AS label ORDER BY 1"
    expected = [(row["label"], "Cancelled") for row in await other.fetch(text, LABELS)]
    assert await labels(other, wanted) == expected
    assert await labels(other, plain) == []


async def test_runs_that_were_started_together_are_listed_alike(engine: Engine) -> None:
    replies = await engine.start_many([labelled() for _ in range(3)] + [request() for _ in range(3)])
    made = [reply.run_id for reply in replies if isinstance(reply, StartReply)]
    wanted = sorted(made[:3], reverse=True)
    assert [await listed(engine.database, query) for query in FILTERS] == [wanted] * len(FILTERS)
    for run_id in made:
        await engine.apply(run_id, CancelRequested(mode="Now"))
    assert [await listed(engine.database, query) for query in FILTERS] == [wanted] * len(FILTERS)


async def test_nothing_that_the_engine_writes_has_to_be_filled_in(engine: Engine, other: Connection) -> None:
    for reply in await engine.start_many([labelled(), request()]):
        assert isinstance(reply, StartReply)
        await engine.apply(reply.run_id, CancelRequested(mode="Now"))
    await engine.start(request())
    for table in ("run_endings", "open_runs"):
        text = f"SELECT count(*) FROM partita.{table} WHERE started_by IS NULL"  # noqa: S608  # the test's own
        assert await other.fetchval(text) == 0
    assert (
        await other.fetchval("SELECT array_agg(origin IS NULL OR labels IS NULL) FROM partita.run_labels")
        == [False] * 4
    )
