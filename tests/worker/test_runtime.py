"""A worker against a real engine: what it executes, how it reports, what it gives up, how it stops."""

from __future__ import annotations

import asyncio
import threading
from dataclasses import replace
from typing import Any

import orjson
import pytest

from partita.domain.payload import Json
from partita.domain.state.events import CancelRequested
from partita.engine.claims import Claimer
from partita.settings import Settings
from partita.store.claims import ClaimStore
from partita.store.session import Session
from partita.worker import Retryable, TaskContext, TaskError, Tasks
from partita.worker.reports import Reporter
from tests.waiting import until
from tests.worker.hosted import Host, hosted

STEPS = (
    {"name": "first", "task": {"type": "double"}, "input": {"number": "${input.number}"}},
    {"name": "second", "task": {"type": "double-slowly"}, "input": {"number": "${nodes.first.output}"}},
    {"name": "third", "task": {"type": "double"}, "input": {"number": "${nodes.second.output}"}},
)


def doubling() -> Tasks:
    app = Tasks()

    @app.task("double")
    async def double(number: int) -> int:
        return number * 2

    @app.task("double-slowly")
    def double_in_a_thread(number: int) -> int:
        assert threading.current_thread() is not threading.main_thread()
        return number * 2

    return app


class Gate:
    """A task that waits until the test lets it go on."""

    def __init__(self) -> None:
        self.app = Tasks()
        self.began = asyncio.Event()
        self.open = asyncio.Event()
        self.given_up = asyncio.Event()
        self.attempts: list[int] = []
        self.app.task("wait")(self.wait)

    async def wait(self, ctx: TaskContext) -> str:
        self.attempts.append(ctx.attempt)
        self.began.set()
        try:
            await self.open.wait()
        except asyncio.CancelledError:
            self.given_up.set()
            raise
        return "done"


ONE_WAIT = {"name": "only", "task": {"type": "wait"}}


async def test_tasks_of_a_run_are_handed_from_report_to_report(settings: Settings) -> None:
    async with hosted(settings, doubling()) as host:
        await host.deploy(*STEPS, output={"number": "${nodes.third.output}"})
        run_id = await host.start({"number": 5})
        ended = await host.ended(run_id)
        assert (ended["status"], orjson.loads(ended["output_json"])) == ("Succeeded", {"number": 40})
        completed = await host.events(run_id, "TaskCompleted")
        assert completed == [("TaskCompleted", name, 1) for name in ("first", "second", "third")]
        assert await host.left_overs(run_id) == 0


async def test_failures_are_recorded_by_type(settings: Settings) -> None:
    class CardDeclined(TaskError):
        pass

    app = Tasks()

    @app.task("charge")
    async def charge() -> None:
        raise CardDeclined("no money", details={"status": 402})

    async with hosted(settings, app) as host:
        await host.deploy({"name": "charge", "task": {"type": "charge"}})
        ended = await host.ended(await host.start())
        assert ended["status"] == "Failed"
        error = orjson.loads(ended["error_json"])
        assert (error["type"], error["message"], error["details"]) == ("card_declined", "no money", {"status": 402})


async def test_retryable_brings_another_attempt(settings: Settings) -> None:
    app = Tasks()

    @app.task("charge")
    async def charge(ctx: TaskContext) -> int:
        if ctx.attempt < 3:
            raise Retryable("busy", after=0.01)
        return ctx.attempt

    async with hosted(settings, app) as host:
        await host.deploy({"name": "charge", "task": {"type": "charge"}}, output={"attempt": "${nodes.charge.output}"})
        run_id = await host.start()
        ended = await host.ended(run_id)
        assert (ended["status"], orjson.loads(ended["output_json"])) == ("Succeeded", {"attempt": 3})
        assert len(await host.events(run_id, "TaskFailed")) == 2


@pytest.mark.parametrize(
    ("retry", "tries"),
    [
        ([], 4),  # three that the engine grants
        ([{"match": ["timeout"], "maxRetries": 9}], 4),
        ([{"match": ["retryable"], "maxRetries": 1, "initialDelay": "1h"}], 2),  # a tier that takes it counts alone
    ],
)
async def test_retryable_has_a_budget(settings: Settings, retry: list[Json], tries: int) -> None:
    app = Tasks()

    @app.task("charge")
    async def charge() -> None:
        raise Retryable("busy", after=0.01)

    async with hosted(settings, app) as host:
        await host.deploy({"name": "charge", "task": {"type": "charge"}, "retry": retry})
        run_id = await host.start()
        error = orjson.loads((await host.ended(run_id))["error_json"])
        assert (error["type"], error["message"]) == ("retryable", "busy")
        assert len(await host.events(run_id, "TaskFailed")) == tries


async def test_a_type_without_a_function_fails_clearly(settings: Settings) -> None:
    at_once = replace(settings, engine=replace(settings.engine, unknown_types=0))
    async with hosted(at_once, doubling()) as host:
        await host.deploy({"name": "charge", "task": {"type": "charge"}})
        ended = await host.ended(await host.start())
        assert orjson.loads(ended["error_json"])["type"] == "unknown_task_type"


async def test_a_worker_that_knows_the_type_finishes_what_another_did_not_know(settings: Settings) -> None:
    gate = Gate()
    gate.open.set()
    async with hosted(settings, doubling()) as old:
        await old.deploy(ONE_WAIT)
        run_id = await old.start()

        async def failed_once() -> Any:
            return await old.events(run_id, "TaskFailed")

        assert await until(failed_once, what="the old worker has taken it") == [("TaskFailed", "only", 1)]
        assert old.worker is not None
        await old.worker.stop(grace=0)
        async with hosted(settings, gate.app, duties=False):
            assert (await old.ended(run_id))["status"] == "Succeeded"
    assert gate.attempts == [2]


async def test_an_attempt_ends_at_its_timeout(settings: Settings) -> None:
    gate = Gate()
    async with hosted(settings, gate.app) as host:
        await host.deploy({**ONE_WAIT, "timeout": "100ms"})
        ended = await host.ended(await host.start())
        assert orjson.loads(ended["error_json"])["type"] == "timeout"
        assert gate.given_up.is_set()


async def test_a_cancelled_run_takes_its_tasks_away(settings: Settings) -> None:
    gate = Gate()
    async with hosted(settings, gate.app) as host:
        await host.deploy(ONE_WAIT)
        run_id = await host.start()
        await gate.began.wait()
        await host.engine.apply(run_id, CancelRequested(by="me"))
        assert host.worker is not None
        await host.worker.heartbeat.ticked()
        await asyncio.wait_for(gate.given_up.wait(), 20)
        assert (await host.ended(run_id))["status"] == "Cancelled"
        assert await host.left_overs(run_id) == 0


async def test_a_stopping_worker_lets_tasks_finish(settings: Settings) -> None:
    gate = Gate()
    async with hosted(settings, gate.app) as host:
        await host.deploy(ONE_WAIT)
        run_id = await host.start()
        await gate.began.wait()
        assert host.worker is not None
        async with asyncio.TaskGroup() as group:
            group.create_task(host.worker.stop(grace=30))
            gate.open.set()
        assert host.worker.ended
        assert (await host.ended(run_id))["status"] == "Succeeded"
        assert await host.fetch("SELECT FROM partita.workers") == [], "it has signed off"


async def test_a_stopping_worker_hands_the_rest_back_unspent(settings: Settings) -> None:
    gate, other = Gate(), Gate()
    other.open.set()
    async with hosted(settings, gate.app) as host:
        await host.deploy(ONE_WAIT)
        run_id = await host.start()
        await gate.began.wait()
        assert host.worker is not None
        await host.worker.stop(grace=0)
        assert gate.given_up.is_set()
        async with hosted(settings, other.app, duties=False):
            assert (await host.ended(run_id))["status"] == "Succeeded"
        assert gate.attempts == other.attempts == [1], "the attempt was not spent"


async def test_a_thread_that_does_not_end_is_told_of(settings: Settings) -> None:
    app, release, began = Tasks(), threading.Event(), threading.Event()

    @app.task("wait")
    def wait() -> None:
        began.set()
        release.wait(30)

    async with hosted(settings, app) as host:
        await host.deploy(ONE_WAIT)
        await host.start()
        await asyncio.to_thread(began.wait, 20)
        assert host.worker is not None
        await host.worker.stop(grace=0)
        assert not host.worker.ended
        release.set()


async def test_a_lease_the_worker_does_not_know_counts_as_lost(settings: Settings) -> None:
    gate = Gate()
    gate.open.set()
    async with hosted(settings, gate.app, queues=("elsewhere",), heartbeat_ms=100) as host:
        await host.deploy(ONE_WAIT)
        run_id = await host.start()
        assert host.worker is not None
        session = Session(host.engine.database, "lost")
        claimer = Claimer(
            ClaimStore(session),
            worker_id=host.worker.worker_id,
            queues=["default"],
            namespaces=None,
            trail_ms=50,
        )
        assert len(await claimer.claim(1)) == 1, "a claim whose answer the worker will never see"
        await session.close()

        async def ready_again() -> Any:
            return await host.fetch("SELECT FROM partita.ready_tasks WHERE run_id = $1", run_id)

        await until(ready_again, what="the lease is ended")
        assert await host.events(run_id, "LeaseLost") == [("LeaseLost", "only", 1)]
        async with hosted(settings, gate.app, duties=False):
            assert (await host.ended(run_id))["status"] == "Succeeded"
        assert gate.attempts == [2]


async def test_an_attempt_that_ends_without_a_report_uses_up_the_budget_of_lost_leases(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def defect(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(Reporter, "report", defect)
    gate = Gate()
    gate.open.set()
    few = replace(settings, engine=replace(settings.engine, lost_leases=2))
    async with hosted(few, gate.app, heartbeat_ms=100, lease_ms=60_000) as host:
        await host.deploy(ONE_WAIT)
        run_id = await host.start()
        assert orjson.loads((await host.ended(run_id))["error_json"])["type"] == "lease_lost"
        assert await host.events(run_id, "LeaseLost") == [("LeaseLost", "only", attempt) for attempt in (1, 2, 3)]
        assert gate.attempts == [1, 2, 3]


@pytest.mark.parametrize("kind", ["async", "sync"])
async def test_what_no_handler_expects_fails_its_attempt_and_not_the_worker(settings: Settings, kind: str) -> None:
    app = Tasks()
    errors = (SystemExit(3), KeyboardInterrupt(), GeneratorExit(), StopIteration(), BaseException("b"))

    if kind == "async":

        @app.task("raise")
        async def raise_in_loop(number: int) -> None:
            raise errors[number]

    else:

        @app.task("raise")
        def raise_in_thread(number: int) -> None:
            raise errors[number]

    @app.task("ok")
    async def ok() -> int:
        return 1

    async with hosted(settings, app, slots=1) as host:
        for number, _ in enumerate(errors):
            await host.deploy({"name": "only", "task": {"type": "raise"}, "input": {"number": number}})
            run_id = await host.start()
            assert (await host.ended(run_id))["status"] == "Failed"
            assert await host.events(run_id, "TaskFailed", "LeaseLost") == [("TaskFailed", "only", 1)]
        await host.deploy({"name": "only", "task": {"type": "ok"}})
        assert (await host.ended(await host.start()))["status"] == "Succeeded", "the one slot is free"


async def test_an_idle_worker_of_another_process_is_woken(direct: Settings) -> None:
    gate = Gate()
    gate.open.set()
    silent: dict[str, Any] = {"heartbeat_ms": 600_000, "lease_ms": 3_600_000, "poll_max_ms": 60_000}
    async with hosted(direct) as sender, hosted(direct, gate.app, **silent) as host:
        await sender.deploy(ONE_WAIT)
        worker = host.worker
        assert worker is not None

        async def idle() -> bool:
            await worker.intake.ticked()
            return worker.intake.idle and bool(await host.fetch("SELECT FROM partita.workers WHERE idle"))

        await until(idle, what="the worker has nothing to do and says so")
        for _ in range(10):
            await worker.intake.ticked()  # the pauses between its looks have now grown to a minute
        assert (await sender.ended(await sender.start(), within=30))["status"] == "Succeeded"


async def test_every_start_of_a_worker_has_an_id_of_its_own(settings: Settings) -> None:
    app = doubling()
    async with hosted(settings, app) as one, hosted(settings, app) as two:
        assert one.worker is not None
        assert two.worker is not None
        assert one.worker.worker_id != two.worker.worker_id
        rows = await one.fetch("SELECT id, types, queues, draining FROM partita.workers")
        assert {row["id"] for row in rows} == {one.worker.worker_id, two.worker.worker_id}
        assert [tuple(row)[1:] for row in rows] == [(["double", "double-slowly"], ["default"], False)] * 2


async def test_slots_bound_what_runs_at_the_same_time(settings: Settings) -> None:
    app, running, most = Tasks(), 0, 0
    three = asyncio.Barrier(3)

    @app.task("wait")
    async def wait() -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await three.wait()
        running -= 1

    async with hosted(settings, app, slots=3) as host:
        await host.deploy(ONE_WAIT)
        runs = await asyncio.gather(*(host.start() for _ in range(12)))
        for run_id in runs:
            assert (await host.ended(run_id))["status"] == "Succeeded"
    assert most == 3


async def test_an_output_that_is_too_large_fails_the_attempt(settings: Settings) -> None:
    app = Tasks()

    @app.task("wait")
    async def large() -> str:
        return "x" * 2_000

    small = replace(settings, limits=replace(settings.limits, output_bytes=1_024))
    async with hosted(small, app) as host:
        await host.deploy(ONE_WAIT)
        ended = await host.ended(await host.start())
        assert orjson.loads(ended["error_json"])["type"] == "output_too_large"


async def test_a_worker_that_is_too_old_asks_to_be_stopped(settings: Settings) -> None:
    gate = Gate()
    async with hosted(settings, gate.app) as host:
        worker: Any = host.worker
        await host.engine.database.read(
            lambda connection: connection.execute("UPDATE partita.engine_state SET oldest_protocol = 99")
        )
        await asyncio.wait_for(worker.wait_stop_wanted(), 20)
        assert "newer engine protocol" in worker.stop_reason


@pytest.mark.parametrize("namespaces", [("other",), ("shop", "other")])
async def test_only_served_namespaces_are_worked_on(settings: Settings, namespaces: tuple[str, ...]) -> None:
    gate = Gate()
    gate.open.set()
    async with hosted(settings, gate.app, namespaces=namespaces) as host:
        await host.deploy(ONE_WAIT)
        run_id = await host.start()
        await serve_once(host)
        if "shop" in namespaces:
            assert (await host.ended(run_id))["status"] == "Succeeded"
        else:
            assert await host.fetch("SELECT FROM partita.ready_tasks WHERE run_id = $1", run_id)


async def serve_once(host: Host) -> None:
    """Let the worker look at least twice."""
    assert host.worker is not None
    await host.worker.intake.ticked()
    await host.worker.intake.ticked()
