"""Tasks that are handed to an idle worker of the process by the transaction that makes them ready."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias
from uuid import UUID

import asyncpg
import pytest

from partita.domain.state.effects import TimerKey
from partita.domain.state.rows import TimerKind
from partita.engine import ClaimedTask, Engine, Offer, StartRequest
from partita.settings import Settings
from partita.store.database import Dedicated
from tests.engine import support
from tests.engine.proxy import Loss, proxy_to
from tests.engine.support import CHAIN, DIAMOND, NAMESPACE, OFFER, PAUSE, count, done, opened, signal, start, task

Connection: TypeAlias = "asyncpg.Connection[Any]"
WAITING = "SELECT count(*) FROM partita.ready_tasks"
LEASED = "SELECT claim_id FROM partita.task_leases"


@dataclass
class Hands:
    """An idle worker with so many slots, and what it was told."""

    slots: int = 1
    offer: Offer = OFFER
    kept: list[ClaimedTask] = field(default_factory=list)
    doubted: list[UUID] = field(default_factory=list)
    promised: int = 0

    def promise(self) -> Offer | None:
        if self.promised + len(self.kept) >= self.slots:
            return None
        self.promised += 1
        return self.offer

    def keep(self, task: ClaimedTask) -> None:
        self.promised -= 1
        self.kept.append(task)

    def release(self) -> None:
        self.promised -= 1

    def doubt(self, claim_id: UUID) -> None:
        self.promised -= 1
        self.doubted.append(claim_id)


@pytest.fixture
async def hands(engine: Engine) -> AsyncIterator[Hands]:
    hands = Hands()
    engine.coordinator.idle.add(hands)
    yield hands
    assert hands.promised == 0


async def test_a_start_hands_its_first_task_over(engine: Engine, hands: Hands, other: Connection) -> None:
    run_id = await start(engine, CHAIN)
    (first,) = hands.kept
    assert (first.run_id, first.node, first.attempt) == (run_id, "a", 1)
    assert (await other.fetchval(WAITING), await count(other, "task_leases", run_id)) == (0, 1)
    reply = await engine.report(done(first), OFFER)
    assert (reply.outcome, reply.next.node if reply.next else None) == ("applied", "b")


async def test_what_finds_no_slot_is_queued(engine: Engine, hands: Hands, other: Connection) -> None:
    await start(engine, DIAMOND)
    await start(engine, CHAIN, name="second")
    assert [one.node for one in hands.kept] == ["left"]
    assert await other.fetchval(WAITING) == 2


@pytest.mark.parametrize(
    "offer",
    [replace(OFFER, queues=frozenset({"slow"})), replace(OFFER, namespaces=frozenset({"elsewhere"}))],
    ids=["queue", "namespace"],
)
async def test_only_what_the_worker_serves_is_handed_over(
    engine: Engine, hands: Hands, other: Connection, offer: Offer
) -> None:
    hands.offer = offer
    await start(engine, CHAIN)
    assert (hands.kept, await other.fetchval(WAITING)) == ([], 1)


async def test_a_paused_engine_hands_nothing_over(engine: Engine, hands: Hands, other: Connection) -> None:
    await other.execute("UPDATE partita.engine_state SET paused = true")
    await start(engine, CHAIN)
    assert (hands.kept, await other.fetchval(WAITING)) == ([], 1)


async def test_a_signal_and_a_timer_hand_over_what_they_make_ready(
    engine: Engine, hands: Hands, other: Connection
) -> None:
    hands.slots = 2
    waiting = {"nodes": [{"name": "approval", "waitForEvent": {"name": "approval"}}, task("ship", "approval")]}
    await engine.apply(await start(engine, waiting), signal("s1"))
    paused = await start(engine, PAUSE, name="paused")
    await other.execute("UPDATE partita.timers SET fire_at = clock_timestamp()")
    await engine.coordinator.timer_due(paused, TimerKey(TimerKind.WAIT, "pause", 0))
    assert [one.node for one in hands.kept] == ["ship", "after"]
    assert await other.fetchval(WAITING) == 0


async def test_runs_that_are_copied_are_copied_with_their_ready_row(
    engine: Engine, hands: Hands, other: Connection
) -> None:
    hands.slots = 20
    await engine.deploy(NAMESPACE, "order", CHAIN)
    requests = [StartRequest(namespace=NAMESPACE, definition="order") for _ in range(12)]
    await asyncio.gather(*(engine.start(request) for request in requests))
    assert await other.fetchval(WAITING) + len(hands.kept) == 12
    assert await other.fetchval("SELECT count(DISTINCT run_id) FROM partita.ready_tasks") == 12 - len(hands.kept)


async def test_nobody_is_told_of_what_was_rolled_back(
    engine: Engine, hands: Hands, other: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    await engine.deploy(NAMESPACE, "order", CHAIN)
    begin = Dedicated.transaction

    def once(*arguments: Any, **options: Any) -> Any:
        monkeypatch.undo()
        return Failing(begin(*arguments, **options))

    monkeypatch.setattr(Dedicated, "transaction", once)
    run_id = (await engine.start(StartRequest(namespace=NAMESPACE, definition="order"))).run_id
    assert [one.run_id for one in hands.kept] == [run_id]
    assert len(hands.doubted) == 1
    assert hands.doubted != [await other.fetchval(LEASED)], "a second try makes a promise of its own"


class Failing:
    """A transaction whose COMMIT the server refuses."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    async def __aenter__(self) -> Any:
        return await self._inner.__aenter__()

    async def __aexit__(self, *_: object) -> None:
        error = asyncpg.SerializationError("could not serialize")
        try:
            await self._inner.__aexit__(type(error), error, None)
        finally:
            raise error


async def test_a_lease_whose_commit_was_not_answered_is_named_to_its_worker(
    settings: Settings, other: Connection
) -> None:
    """After a failover nobody can tell whether it was committed: the worker looks."""
    hands = Hands()
    async with proxy_to(settings.database.url) as proxy:
        changed = replace(settings, database=replace(settings.database, url=proxy.url))
        async with opened(changed) as engine:
            await engine.deploy(NAMESPACE, "order", CHAIN)
            await start(engine, CHAIN, name="first")
            transactor = engine.coordinator._lanes[0]._transactor
            transactor._timeline = (transactor._timeline[0], "00000000")
            engine.coordinator.idle.add(hands)
            proxy.loss = Loss.ANSWER
            reply = await engine.start(StartRequest(namespace=NAMESPACE, definition="order"))
    assert reply.created, "by the first try"
    assert (hands.kept, hands.promised) == ([], 0)
    assert hands.doubted == [await other.fetchval(LEASED)]


@pytest.mark.parametrize("loss", [Loss.ANSWER, Loss.REQUEST])
async def test_a_lost_commit_is_settled_before_the_worker_is_told(
    settings: Settings, other: Connection, loss: Loss
) -> None:
    hands = Hands()
    async with proxy_to(settings.database.url) as proxy:
        changed = replace(settings, database=replace(settings.database, url=proxy.url))
        async with opened(changed) as engine:
            engine.coordinator.idle.add(hands)
            await engine.deploy(NAMESPACE, "order", CHAIN)
            proxy.loss = loss
            await engine.start(StartRequest(namespace=NAMESPACE, definition="order"))
    assert proxy.lost == 1
    assert len(hands.kept) == 1
    assert await count(other, "task_leases", hands.kept[0].run_id) == 1
    assert await other.fetchval("SELECT worker_id FROM partita.task_leases") == support.WORKER
