"""A worker beside the engine that starts runs: it is given tasks without asking for them."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from partita.domain.payload import NULL
from partita.domain.state.events import SignalReceived
from partita.settings import Settings
from partita.worker import Tasks
from tests.waiting import until
from tests.worker.hosted import Host, hosted
from tests.worker.test_runtime import ONE_WAIT, Gate


async def idle(host: Host, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The worker once it has found nothing to do; its claims find nothing from then on."""
    worker: Any = host.worker
    await until(lambda: _found_nothing(worker), within=10, what="the worker has found nothing")

    async def nothing(slots: int) -> list[Any]:
        del slots
        return []

    monkeypatch.setattr(worker.intake._claimer, "claim", nothing)
    await worker.intake.ticked()
    return worker


async def _found_nothing(worker: Any) -> bool:
    return bool(worker.intake.found_nothing)


async def test_an_idle_worker_executes_a_start_without_a_claim(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = Tasks()

    @app.task("greet")
    async def greet() -> str:
        return "hello"

    nodes: list[Any] = [
        {"name": "one", "task": {"type": "greet"}},
        {"name": "answer", "waitForEvent": {}, "dependsOn": ["one"]},
        {"name": "two", "task": {"type": "greet"}, "dependsOn": ["answer"]},
    ]
    async with hosted(settings, app) as host:
        await host.deploy(*nodes)
        await idle(host, monkeypatch)
        run_id = await host.start()
        await host.engine.apply(run_id, SignalReceived(id="s1", name="answer", payload=NULL))
        assert (await host.ended(run_id))["status"] == "Succeeded"


async def test_slots_bound_what_is_handed_over(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    gate = Gate()
    async with hosted(settings, gate.app, slots=2) as host:
        await host.deploy(ONE_WAIT)
        worker = await idle(host, monkeypatch)
        for _ in range(4):
            await host.start()
        assert (len(worker.held()), worker.free()) == (2, 0)
        (row,) = await host.fetch("SELECT count(*) FROM partita.ready_tasks")
        assert row[0] == 2
        gate.open.set()


async def test_a_doubtful_lease_is_adopted(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its worker is told that nobody knows, and finds it: no attempt is spent."""
    gate = Gate()
    async with hosted(settings, gate.app) as host:
        await host.deploy(ONE_WAIT)
        worker: Any = host.worker
        await until(lambda: _found_nothing(worker), within=10, what="the worker has found nothing")
        kept = worker.keep

        def lost(task: Any) -> None:
            monkeypatch.undo()
            row = asyncio.ensure_future(host.fetch("SELECT claim_id FROM partita.task_leases"))
            row.add_done_callback(lambda found: worker.doubt(found.result()[0][0]))
            assert task.node == "only"

        monkeypatch.setattr(worker, "keep", lost)
        run_id = await host.start()
        assert worker.keep == kept, "the task was handed over"
        async with asyncio.timeout(10):
            await gate.began.wait()
        gate.open.set()
        assert (await host.ended(run_id))["status"] == "Succeeded"
        assert gate.attempts == [1]
        assert await host.events(run_id, "LeaseLost") == []


async def test_a_stopping_worker_waits_for_what_it_promised(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = Gate()
    async with hosted(settings, gate.app) as host:
        await host.deploy(ONE_WAIT)
        worker = await idle(host, monkeypatch)
        assert worker.promise() is not None
        stopping = asyncio.create_task(worker.stop(grace=5))
        await asyncio.sleep(0)
        assert worker.promise() is None
        assert not stopping.done()
        worker.release()
        async with asyncio.timeout(5):
            await stopping
        assert worker.ended


async def test_a_worker_that_was_told_of_work_promises_nothing(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with hosted(settings, Gate().app) as host:
        worker = await idle(host, monkeypatch)
        assert worker.promise() is not None
        worker.release()
        worker.wake()
        assert worker.promise() is None, "a new run would pass the one that it was told of"


async def test_a_look_leaves_one_slot_for_what_is_handed_over(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    looking, go_on, asked = asyncio.Event(), asyncio.Event(), list[int]()
    async with hosted(settings, Gate().app, slots=3) as host:
        worker = await idle(host, monkeypatch)

        async def slow(slots: int) -> list[Any]:
            asked.append(slots)
            looking.set()
            await go_on.wait()
            return []

        monkeypatch.setattr(worker.intake._claimer, "claim", slow)
        worker.intake.wake()
        async with asyncio.timeout(10):
            await looking.wait()
        promised = [worker.promise() is not None for _ in range(2)]
        go_on.set()
        if promised[0]:
            worker.release()
        assert (asked[0], promised) == (2, [True, False])


@pytest.mark.parametrize("by", ["this process", "another process"])
async def test_work_that_was_queued_while_the_slots_were_full_is_taken_when_one_is_free(
    direct: Settings, by: str
) -> None:
    """The slot was filled without a look, so that the latest look has found nothing, and was not left out."""
    gate = Gate()
    async with hosted(direct, gate.app, slots=1, poll_max_ms=60_000) as host, hosted(direct) as second:
        await host.deploy(ONE_WAIT)
        worker: Any = host.worker
        await until(lambda: _waits(host), within=10, what="the worker waits to be told")
        worker.intake._misses = 20  # the next look of its own is a minute away
        await worker.intake.ticked()
        first, heard = await host.start(), _heard(host)
        assert worker.free() == 0, "handed over"
        later = await (host if by == "this process" else second).start()
        if by == "another process":
            await until(lambda: _heard_more(host, heard), within=10, what="it is told of work")
        gate.open.set()
        for run_id in (first, later):
            assert (await host.ended(run_id, within=5))["status"] == "Succeeded"


async def test_a_slot_that_was_promised_in_vain_is_used(settings: Settings) -> None:
    """The worker has looked, without a slot, while it was promised; and nobody tells it of the work of others."""
    gate = Gate()
    gate.open.set()
    async with hosted(settings, gate.app, slots=1) as host, hosted(settings, duties=False) as second:
        await host.deploy(ONE_WAIT)
        worker: Any = host.worker

        async def promised() -> bool:
            return worker.promise() is not None

        await until(
            promised, within=10, what="the worker, which has found nothing and asks for nothing, promises its slot"
        )
        await worker.intake.ticked()
        worker.release()
        assert (await host.ended(await second.start(), within=5))["status"] == "Succeeded"


def _heard(host: Host) -> int:
    return sum(one.health.ticks for one in host.duties.services if one.name == "wake-up listener")


async def _heard_more(host: Host, before: int) -> bool:
    return _heard(host) > before


async def _waits(host: Host) -> bool:
    worker: Any = host.worker
    return bool(worker.intake.idle and _heard(host))
