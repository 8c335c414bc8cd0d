"""A run that several processes want at the same time: it comes to its turn, and the other runs do not wait for it."""

from __future__ import annotations

import asyncio
from typing import Any, TypeAlias

import asyncpg
import pytest

from partita.engine import Engine, lane
from partita.settings import Settings
from tests.engine import support
from tests.engine.support import blocked, lock_run, opened, start_many
from tests.waiting import until

Connection: TypeAlias = "asyncpg.Connection[Any]"


async def transactions_until_it_waits(engine: Engine, other: Connection, run: Any, name: str) -> int:
    """Transactions that the engine begins for an event of a run that is held, until it waits for it."""
    await lock_run(other, run)
    before = engine.coordinator.transactions
    event = asyncio.create_task(engine.apply(run, support.signal(name, name="unheard")))
    await blocked(other)
    begun = engine.coordinator.transactions - before
    await other.execute("COMMIT")
    assert (await event).outcome == "applied"
    return begun


@pytest.mark.parametrize(("hot", "second"), [(60.0, 1), (0.0, 4)])
async def test_a_run_that_was_skipped_too_often_is_waited_for_at_once_for_a_while(
    engine: Engine, other: Connection, monkeypatch: pytest.MonkeyPatch, hot: float, second: int
) -> None:
    monkeypatch.setattr(lane, "_HOT", hot)
    (run,) = await start_many(engine, support.APPROVAL, 1)
    assert await transactions_until_it_waits(engine, other, run, "one") == 4, "skipped three times, then waited for"
    assert await transactions_until_it_waits(engine, other, run, "two") == second


async def test_only_one_run_is_waited_for_before_its_time(settings: Settings, other: Connection) -> None:
    """What waits holds a connection: a second hot run rides along until it has been skipped often enough."""
    async with opened(settings, skips_before_blocking=100) as engine:
        runs = await start_many(engine, support.APPROVAL, 3)
        for one in engine.coordinator._lanes:
            one._hot = dict.fromkeys(runs[:2], asyncio.get_running_loop().time() + 60)
        await other.execute("BEGIN")
        await other.execute("SELECT FROM partita.workflow_runs WHERE id = ANY ($1) FOR NO KEY UPDATE", runs[:2])
        events = [asyncio.create_task(engine.apply(run, support.signal("s", name="unheard"))) for run in runs[:2]]
        await blocked(other)
        for number in range(3):
            await engine.apply(runs[2], support.signal(f"s{number}", name="unheard"))
        assert [len(one._held) for one in engine.coordinator._lanes] == [1]
        await other.execute("COMMIT")
        assert {reply.outcome for reply in await asyncio.gather(*events)} == {"applied"}


async def test_processes_that_want_one_run_all_get_it(settings: Settings, other: Connection) -> None:
    async with opened(settings) as first, opened(settings) as second, opened(settings) as third:
        engines = [first, second, third]
        hot, *runs = await start_many(first, support.APPROVAL, 31)

        async def feed(number: int, engine: Engine) -> None:
            for round_ in range(10):
                own = runs[number * 10 : number * 10 + 10]
                name = f"{number}-{round_}"
                events = [engine.apply(run, support.signal(name, name="unheard")) for run in [hot, *own]]
                assert {reply.outcome for reply in await asyncio.gather(*events)} == {"applied"}

        await asyncio.gather(*(feed(number, engine) for number, engine in enumerate(engines)))
    recorded = "SELECT count(*) FROM partita.workflow_events WHERE run_id = $1"
    assert await other.fetchval(recorded, hot) == 30
    assert {await other.fetchval(recorded, run) for run in runs} == {10}


@pytest.mark.parametrize("lanes", [1, 2])
async def test_a_run_that_stays_held_keeps_no_other_from_its_turn(
    settings: Settings, other: Connection, lanes: int
) -> None:
    """Both were skipped too often. The first one keeps the connection on which runs are waited for."""
    async with opened(settings, lanes=lanes) as engine, support.connected(settings) as third:
        stays, *runs = await start_many(engine, support.APPROVAL, 6)
        await lock_run(other, stays)
        first = asyncio.create_task(engine.apply(stays, support.signal("s", name="unheard")))
        await blocked(other)
        await third.execute("BEGIN")
        await third.execute("SELECT FROM partita.workflow_runs WHERE id = ANY ($1) FOR NO KEY UPDATE", runs)
        events = [asyncio.create_task(engine.apply(run, support.signal("s", name="unheard"))) for run in runs]
        held: set[Any] = set()

        async def all_held() -> bool:
            held.update(run for one in engine.coordinator._lanes for run in one._held)
            return held.issuperset(runs)

        await until(all_held, every=0.001, what="runs that were skipped too often")
        await third.execute("COMMIT")
        replies = await asyncio.wait_for(asyncio.gather(*events), 20)
        assert {reply.outcome for reply in replies} == {"applied"}
        assert not first.done()
        await other.execute("COMMIT")
        assert (await first).outcome == "applied"
