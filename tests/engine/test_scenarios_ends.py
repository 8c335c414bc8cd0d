"""How runs end on a real database: timeouts that race signals, undo one by one, finally, and cancelled nodes."""

from __future__ import annotations

import asyncio
from typing import Any, TypeAlias

import asyncpg
import pytest

from partita.domain.payload import Json, Payload
from partita.domain.state.events import CancelRequested, ControlsApplied, SignalReceived
from partita.domain.state.rows import ErrorInfo
from partita.engine import Engine
from partita.settings import Settings
from tests.engine.support import connected, done, opened, start, start_many, status, task
from tests.engine.test_scenarios_children import claim_all, nothing_left, quick
from tests.worker.hosted import hosted

Connection: TypeAlias = "asyncpg.Connection[Any]"
ANSWER = {"name": "answer", "timeout": "300ms", "onTimeout": {"output": {"came": "late"}}}
WAIT = {"name": "ask", "waitForEvent": ANSWER}
PLAIN = {"nodes": [WAIT], "output": {"got": "${ nodes.ask.output.came }"}}
SHARED = {
    "nodes": [{"name": "sub", "workflow": {"subflow": "sub"}}],
    "subflows": [{"name": "sub", "nodes": [WAIT], "output": {"got": "${ nodes.ask.output.came }"}}],
    "output": {"got": "${ nodes.sub.output.got }"},
}
RACES = 100


async def send_around(engines: list[Engine], runs: list[Any]) -> None:
    """A signal to each run, at moments spread over the timeout, from two processes."""

    async def send(number: int, run_id: Any) -> None:
        await asyncio.sleep(0.2 + 0.2 * number / len(runs))  # no synchronisation: the spread is what is tested
        payload = Payload.of({"came": "in time"})
        await engines[number % 2].apply(run_id, SignalReceived(id="one", name="answer", payload=payload))

    await asyncio.gather(*(send(number, run_id) for number, run_id in enumerate(runs)))


@pytest.mark.parametrize("spec", [PLAIN, SHARED], ids=["plain", "subflow"])
async def test_a_signal_that_races_the_timeout_is_taken_or_refused_and_never_both(
    settings: Settings, spec: dict[str, Any]
) -> None:
    settings = quick(settings)
    async with hosted(settings) as host, opened(settings) as second, connected(settings) as connection:
        runs = await start_many(host.engine, spec, RACES)
        await send_around([host.engine, second], runs)
        await nothing_left(connection)
        rows = await connection.fetch(
            "SELECT run.status, run.output_json ->> 'got' AS got, signal.consumed_by IS NOT NULL AS taken"
            " FROM partita.workflow_runs AS run"
            " LEFT JOIN partita.workflow_events AS signal ON signal.run_id = run.id WHERE run.parent_id IS NULL"
        )
        assert len(rows) == RACES
        wrong = [row for row in rows if row["status"] != "Succeeded" or (row["got"] == "in time") != bool(row["taken"])]
        assert wrong == []


def booking(name: str, *after: str) -> Json:
    """A task that can be reversed."""
    return task(name, *after, undo={"task": {"type": "release"}, "input": {"what": "${ output }"}})


SAGA = {
    "nodes": [
        booking("hotel"),
        {**booking("seat", "hotel"), "forEach": {"items": "${ [1, 2, 3] }", "maxParallel": 1}},
        task("pay", "seat"),
    ],
    "finally": {"nodes": [task("tell", input={"status": "${ run.status }"})]},
}


async def next_task(connection: Connection) -> Any:
    (one,) = await claim_all(connection, 1)
    return one


async def test_undo_goes_back_one_by_one_and_finally_sees_what_is_coming(settings: Settings) -> None:
    async with hosted(quick(settings)) as host, connected(settings) as connection:
        run_id = await start(host.engine, SAGA)
        for expected in (("hotel", 0), ("seat", 0), ("seat", 1), ("seat", 2)):
            one = await next_task(connection)
            assert (one.node, one.index) == expected
            await host.engine.report(done(one, f"{one.node}{one.index}"))
        pay = await next_task(connection)
        await host.engine.report(done(pay, error=ErrorInfo("declined", "no money"), output=None))
        undone = []
        for _ in range(4):
            one = await next_task(connection)
            undone.append((one.node, one.index, one.type))
            await host.engine.report(done(one))
        assert undone == [("seat~undo", n, "release") for n in (2, 1, 0)] + [("hotel~undo", 0, "release")]
        tell = await next_task(connection)
        inputs = "SELECT node, input FROM partita.task_instances WHERE run_id = $1 AND input IS NOT NULL"
        seen = {row["node"]: row["input"] for row in await connection.fetch(inputs, run_id)}
        assert (tell.node, seen["tell"], seen["hotel~undo"]) == ("tell", '{"status":"Failed"}', '{"what":"hotel0"}')
        await host.engine.report(done(tell))
        await nothing_left(connection)
        row = await connection.fetchrow("SELECT status, reason FROM partita.workflow_runs WHERE id = $1", run_id)
        assert tuple(row or ()) == ("Failed", "NodeFailed")


async def test_a_cancel_waits_for_attempts_in_flight_before_it_undoes(settings: Settings) -> None:
    """A success that comes in time is undone; a second cancel, Now, ends all at once."""
    spec = {"nodes": [booking("hotel")]}
    async with hosted(quick(settings)) as host, connected(settings) as connection:
        first, second = await start_many(host.engine, spec, 2)
        tasks = {one.run_id: one for one in await claim_all(connection, 2)}
        for run_id in (first, second):
            await host.engine.apply(run_id, CancelRequested())
            assert await status(connection, run_id) == "Running"
        await host.engine.report(done(tasks[first], "room 7"))
        undo = await next_task(connection)
        assert (undo.run_id, undo.node) == (first, "hotel~undo")
        await host.engine.report(done(undo))
        assert await status(connection, first) == "Cancelled"
        await host.engine.apply(second, CancelRequested(mode="Now"))
        assert await status(connection, second) == "Cancelled"
        assert (await host.engine.report(done(tasks[second], "room 8"))).outcome == "stale"
        await nothing_left(connection)


async def test_cancelled_nodes_are_stored_and_the_run_goes_on(settings: Settings) -> None:
    spec = {"nodes": [task("slow"), task("quick")]}
    async with hosted(quick(settings)) as host, connected(settings) as connection:
        run_id = await start(host.engine, spec)
        tasks = {one.node: one for one in await claim_all(connection, 2)}
        controls = ControlsApplied(cr_generation=2, cancel_nodes=("slow", "none"))
        await host.engine.apply(run_id, controls)
        stored = "SELECT applied_cancel_nodes FROM partita.workflow_runs WHERE id = $1"
        assert "slow" in await connection.fetchval(stored, run_id)
        assert (await host.engine.report(done(tasks["slow"], 1))).outcome == "stale"
        await host.engine.report(done(tasks["quick"], 2))
        await nothing_left(connection)
        assert await status(connection, run_id) == "Succeeded"
        events = "SELECT event FROM partita.run_history WHERE run_id = $1 AND node = 'slow'"
        assert "LateResult" in [row["event"] for row in await connection.fetch(events, run_id)]
