"""Group commit: nobody waits for company, whoever comes meanwhile rides the next batch, size costs no statements."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any, TypeAlias, cast

import asyncpg
import pytest

from partita.engine import Engine, StartRequest
from partita.engine.duties import Duties
from partita.engine.lane import Lane
from partita.engine.submissions import Submission
from partita.engine.supervisor import Supervisor
from partita.engine.transactor import Transactor
from partita.minting import new_id
from partita.settings import EngineSettings, Settings
from partita.store.notify import channel
from tests.engine import support
from tests.engine.support import OFFER, claim, connected, done, opened, start_many
from tests.engine.test_batches import statements

Connection: TypeAlias = "asyncpg.Connection[Any]"
SIZES = (1, 10, 100, 400)


class Recorder:
    """Stands for a connection: remembers the batches, and ends each one when it is told to."""

    transactions = 0

    def __init__(self) -> None:
        self.batches: list[int] = []
        self.free = asyncio.Event()

    async def settle(
        self, batch: Sequence[Submission], *, wait: bool = False, turn_seconds: float | None = None
    ) -> list[Submission]:
        assert not wait
        assert turn_seconds is None
        self.batches.append(len(batch))
        await self.free.wait()
        for one in batch:
            one.answer(None)
        return []

    async def close(self) -> None:
        return None


def submission() -> Submission:
    loop = asyncio.get_running_loop()
    return Submission(run_id=new_id(), future=loop.create_future(), expires=loop.time() + 60)


async def turns(count: int = 5) -> None:
    """Let the event loop go round without time passing: no timer falls due in between."""
    for _ in range(count):
        await asyncio.sleep(0)


async def test_a_lone_event_is_sent_at_once_and_what_comes_meanwhile_rides_the_next_batch() -> None:
    recorder = Recorder()
    lane = Lane(cast("Transactor", recorder), cast("Transactor", recorder), EngineSettings())
    lane.open()
    await turns()
    lane.put(submission())
    await turns()
    assert recorder.batches == [1], "it waits neither for others nor for a timer"
    later = [submission() for _ in range(3)]
    for one in later:
        lane.put(one)
        await turns()
    assert recorder.batches == [1], "one transaction at a time"
    recorder.free.set()
    await asyncio.gather(*(one.future for one in later))
    assert recorder.batches == [1, 3]
    await lane.close()


@pytest.mark.parametrize("kind", ["reports", "starts", "signals", "ends"])
async def test_a_batch_of_any_size_sends_the_same_statements(
    settings: Settings, other: Connection, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    support.steady(monkeypatch)
    async with opened(settings, batch_size=500, decide_ms=60_000) as engine:
        await start_many(engine, support.CHAIN, 1)  # connects
        await _sent(engine, other, kind, 1)  # statements are prepared when they are first used
        before = engine.coordinator.transactions
        counts = {size: await _sent(engine, other, kind, size) for size in SIZES}
        assert engine.coordinator.transactions - before >= len(SIZES)
    ways = {"signals": 1, "starts": 3}.get(
        kind, 2
    )  # one start is a statement, many are copied; few reports are read by one
    assert len(set(counts.values())) <= ways, counts
    assert (1 if kind == "starts" else 4) <= counts[1] <= counts[400] <= 20


async def _sent(engine: Engine, connection: Connection, kind: str, size: int) -> int:
    """Statements of one batch of so many events of a kind."""
    spec = {"signals": support.APPROVAL, "ends": {"nodes": [support.task("only")]}}.get(kind, support.CHAIN)
    if kind == "starts":
        await engine.deploy(support.NAMESPACE, "order", spec)
        starts = [engine.start(StartRequest(namespace=support.NAMESPACE, definition="order")) for _ in range(size)]
        return await _counted(engine, starts)
    runs = await start_many(engine, spec, size)
    if kind == "signals":
        return await _counted(engine, [engine.apply(run_id, support.signal("s")) for run_id in runs])
    tasks = await claim(connection)
    return await _counted(engine, [engine.report(done(task), OFFER) for task in tasks[:size]])


async def _counted(engine: Engine, calls: Sequence[Any]) -> int:
    before = engine.coordinator.transactions
    with statements(engine) as seen:
        await asyncio.gather(*calls)
    assert engine.coordinator.transactions - before == 1
    return len(seen)


@asynccontextmanager
async def heard(settings: Settings) -> AsyncIterator[list[str]]:
    """Notifications that were sent meanwhile."""
    messages: list[str] = []
    async with connected(settings) as connection:
        name = channel(settings.database.schema)
        await connection.add_listener(name, lambda _c, _p, _ch, payload: messages.append(str(payload)))
        yield messages
        await connection.execute("SELECT 1")  # what was committed before comes with the answer


IDLE_WORKER = """
INSERT INTO partita.workers (id, expires_at, protocol, slots, idle, queues)
VALUES ('sleeper', clock_timestamp() + interval '1 hour', 2, 1, $1, '{default}')
"""


@pytest.mark.parametrize(("idle", "expected"), [(True, ["default"]), (False, [])])
async def test_a_batch_wakes_whoever_sleeps_with_one_notification_and_nobody_else(
    direct: Settings, other: Connection, idle: bool, expected: list[str]
) -> None:
    await other.execute(IDLE_WORKER, idle)
    async with opened(direct) as engine, heard(direct) as messages:
        duties, supervisor = Duties(engine), Supervisor()
        supervisor.start(duties.wakeups)
        before = engine.coordinator.transactions
        await start_many(engine, support.CHAIN, 200)
        assert engine.coordinator.transactions - before == 1
        await duties.wakeups.ticked()
        await supervisor.stop()
    assert messages == expected
