"""An engine that closes: its messages reach their runs first, and a database that hangs does not hold it for ever."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any, TypeAlias

import asyncpg

from partita.domain.payload import Json
from partita.domain.state.events import CancelRequested
from partita.engine import Engine
from partita.engine.courier import Courier
from partita.engine.messages import Delivery
from partita.minting import new_id
from partita.settings import Settings
from tests.engine.proxy import proxy_to
from tests.engine.support import NAMESPACE, opened, start, task
from tests.waiting import until

Connection: TypeAlias = "asyncpg.Connection[Any]"


def starting(name: str) -> Json:
    """A definition whose only node is a child."""
    return {"nodes": [{"name": "down", "workflow": {"name": name}, "input": {}}]}


async def family(connection: Connection) -> list[tuple[int, str]]:
    """Depth and status of every run."""
    rows = await connection.fetch("SELECT coalesce(depth, 0), status FROM partita.workflow_runs ORDER BY 1")
    return [tuple(row) for row in rows]


async def delivered(engine: Engine) -> bool:
    """Whether nothing is on its way."""
    return engine.courier.pending == 0


async def test_what_a_short_lived_process_did_has_reached_children_when_it_ends(
    settings: Settings, other: Connection
) -> None:
    async with opened(settings) as engine:
        await engine.deploy(NAMESPACE, "leaf", {"nodes": [task("pack")]})
        await engine.deploy(NAMESPACE, "middle", starting("leaf"))
        run_id = await start(engine, starting("middle"))
    assert await family(other) == [(0, "Running"), (1, "Running"), (2, "Running")]
    async with opened(settings) as engine:
        assert (await engine.apply(run_id, CancelRequested())).outcome == "applied"
    assert await family(other) == [(0, "Cancelled"), (1, "Cancelled"), (2, "Cancelled")]
    assert await other.fetchval("SELECT count(*) FROM partita.run_inbox") == 0


async def test_a_process_ends_though_the_database_hangs(settings: Settings, other: Connection) -> None:
    async with proxy_to(settings.database.url) as proxy:
        behind = replace(settings, database=replace(settings.database, url=proxy.url, statement_timeout_ms=0))
        engine = await Engine.open(behind)
        await engine.deploy(NAMESPACE, "leaf", {"nodes": [task("pack")]})
        run_id = await start(engine, starting("leaf"))
        await until(lambda: delivered(engine), what="the child is there")
        engine.notices.messages.insert(0, lambda _: setattr(proxy, "frozen", True))
        assert (await engine.apply(run_id, CancelRequested())).outcome == "applied"
        async with asyncio.timeout(60):
            await engine.close(drain=0.1)
    assert await family(other) == [(0, "Cancelled"), (1, "Running")]
    assert await other.fetchval("SELECT kind FROM partita.run_inbox") == "CancelRequested"


class Chain:
    """A messenger whose every message causes another, until so many were asked for."""

    def __init__(self, length: int) -> None:
        self.left = length
        self.courier = Courier(self)

    async def message(self, delivery: Delivery) -> None:
        await asyncio.sleep(0)
        self.left -= 1
        if self.left > 0:
            self.courier.sent([Delivery(delivery.inbox_id + 1, new_id(), "shop", delivery.event)])


async def test_what_messages_cause_is_delivered_too() -> None:
    chain = Chain(50)
    chain.courier.sent([Delivery(1, new_id(), "shop", CancelRequested())])
    await chain.courier.close(drain=60)
    assert (chain.left, chain.courier.pending) == (0, 0)


async def test_what_messages_cause_without_end_is_left_in_the_inbox() -> None:
    chain = Chain(10**9)
    chain.courier.sent([Delivery(1, new_id(), "shop", CancelRequested())])
    await chain.courier.close(drain=0.01)
    assert chain.left > 0
    assert chain.courier.pending == 0
