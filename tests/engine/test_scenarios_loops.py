"""Loops on a real database: large ones, cancelled ones, and reports that come too late."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace
from typing import Any, TypeAlias

import asyncpg

from partita.domain.payload import Payload
from partita.domain.state.events import CancelRequested
from partita.domain.state.rows import ErrorInfo
from partita.settings import Settings
from partita.store import reads, trees
from tests.engine.hand_claims import LIVE_WORKER
from tests.engine.support import OFFER, WORKER, claim, connected, done, start_many, status, task
from tests.engine.test_scenarios_children import claim_all, nothing_left, quick
from tests.waiting import until
from tests.worker.hosted import hosted

Connection: TypeAlias = "asyncpg.Connection[Any]"
MANY = 10_000
WHOLE = {"nodes": [task("each", forEach={"items": "${ input.items }", "maxParallel": MANY})]}
EACH = {
    "nodes": [task("each", input={"n": "${ item }"}, forEach={"items": "${ input.items }", "maxParallel": 4})],
    "output": {"all": "${ nodes.each.output }"},
}
COUNT = "SELECT count(*) FROM partita.task_instances WHERE run_id = $1 AND node = 'each' AND index >= 0"


async def test_a_cancel_of_ten_thousand_items_leaves_nothing(settings: Settings) -> None:
    """Items are ready, and held by workers, and others are still being made."""
    settings = quick(settings)
    async with hosted(settings) as host, connected(settings) as connection:
        await host.engine.deploy("shop", "order", WHOLE)
        run_id = await host.start({"items": list(range(MANY))})
        await until(lambda: connection.fetchval("SELECT count(*) > 5000 FROM partita.ready_tasks"), what="half of them")
        held = await claim(connection)
        began = time.monotonic()
        await host.engine.apply(run_id, CancelRequested(mode="Now"))
        assert time.monotonic() - began < settings.database.patience_ms / 1000, "answered while its caller waits"
        await nothing_left(connection)
        assert await status(connection, run_id) == "Cancelled"
        late = await asyncio.gather(*(host.engine.report(done(one)) for one in held[:50]))
        assert {reply.outcome for reply in late} == {"stale"}
        await nothing_left(connection)


async def test_items_are_made_in_chunks_and_run_within_their_window(settings: Settings) -> None:
    settings = replace(quick(settings), engine=replace(settings.engine, loop_chunk=10, inbox_tick_ms=50))
    async with hosted(settings) as host, connected(settings) as connection:
        await host.engine.deploy("shop", "order", EACH)
        run_id = await host.start({"items": list(range(25))})
        most = 0
        while await status(connection, run_id) == "Running":
            tasks = await claim(connection)
            most = max(most, len(tasks))
            await asyncio.gather(*(host.engine.report(done(one, one.index * 2)) for one in tasks))
        assert most == 4
        output = await connection.fetchval(
            "SELECT output_json ->> 'all' FROM partita.workflow_runs WHERE id = $1", run_id
        )
        assert output == str([2 * n for n in range(25)]).replace(" ", "")
        await nothing_left(connection)


async def test_a_worker_goes_from_item_to_item(settings: Settings) -> None:
    """The next item is leased by the report of the one before, within its window."""
    async with hosted(quick(settings)) as host, connected(settings) as connection:
        await host.engine.deploy("shop", "order", EACH)
        await connection.execute(LIVE_WORKER, WORKER, 60.0)
        await host.start({"items": list(range(6))})
        first = (await claim_all(connection, 4))[0]
        reply = await host.engine.report(done(first), OFFER)
        assert reply.next is not None
        assert (reply.next.node, reply.next.index, reply.next.input.value) == ("each", 4, {"n": 4})


async def test_one_loop_is_one_node_for_readers_and_its_output_can_be_read_while_it_goes_on(settings: Settings) -> None:
    async with hosted(quick(settings)) as host, connected(settings) as connection:
        await host.engine.deploy("shop", "order", EACH)
        run_id = await host.start({"items": ["a", "b", "c", "d", "e"]})
        tasks = {one.index: one for one in await claim_all(connection, 4)}
        await host.engine.report(done(tasks[1], "B"))
        await host.engine.report(done(tasks[3], "D"))
        database = host.engine.database
        (node,) = (await reads.get_run(database, run_id)).nodes
        assert node.loop is not None
        assert (node.index, node.loop.total, node.loop.completed, node.loop.running) == (-1, 5, 2, 3)
        page = await trees.items(database, run_id, "each", limit=2)
        assert [(item.index, item.state) for item in page] == [(0, "Running"), (1, "Completed")]
        page = await trees.items(database, run_id, "each", after=1, limit=2)
        assert [(item.index, item.state) for item in page] == [(2, "Running"), (3, "Completed")]
        assert await trees.loop_output(database, run_id, "each") == Payload.of([None, "B", None, "D", None])


async def test_a_report_of_an_attempt_that_was_overtaken_is_stale(settings: Settings) -> None:
    """Completion, failure and heartbeat of the attempt before."""
    spec = {"nodes": [task("each", forEach={"items": "${ [1] }"}, retry=[{"maxRetries": 3, "initialDelay": "0s"}])]}
    async with hosted(quick(settings)) as host, connected(settings) as connection:
        await connection.execute(LIVE_WORKER, WORKER, 60.0)
        await host.engine.deploy("shop", "order", spec)
        await host.start()
        (old,) = await claim_all(connection, 1)
        await host.engine.report(done(old, handed_back=True, output=None))
        (new,) = await claim_all(connection, 1)
        assert (new.node, new.index, new.lease_id == old.lease_id) == ("each", 0, False)
        assert (await host.engine.report(done(old, "late"))).outcome == "stale"
        failed = done(old, error=ErrorInfo("broken", "it broke"), output=None)
        assert (await host.engine.report(failed)).outcome == "stale"
        gone = await host.engine.database.fetch(
            "beat_answer", WORKER, [old.run_id], [old.node], [old.index], [old.lease_id], 60_000
        )
        assert [row["verdict"] for row in gone] == ["gone"]
        assert (await host.engine.report(done(new, 1))).outcome == "applied"
        await nothing_left(connection)


async def test_a_definition_that_is_replaced_in_flight_does_not_touch_the_loop(settings: Settings) -> None:
    async with hosted(quick(settings)) as host, connected(settings) as connection:
        await host.engine.deploy("shop", "order", EACH)
        run_id = await host.start({"items": [1, 2, 3, 4, 5, 6]})
        tasks = await claim_all(connection, 4)
        await start_many(host.engine, {"nodes": [{"name": "other", "compute": {"n": 1}}]}, 1)
        await host.engine.delete_definition("shop", "order")
        while tasks:
            await asyncio.gather(*(host.engine.report(done(one, one.index)) for one in tasks))
            tasks = await claim(connection)
        assert await status(connection, run_id) == "Succeeded"
        assert await connection.fetchval(COUNT, run_id) == 6


async def test_hundreds_of_children_that_end_at_once_start_the_next_ones(settings: Settings) -> None:
    """Each end in a batch wants the stored input of another item."""
    spec = {
        "nodes": [
            {
                "name": "each",
                "workflow": {"name": "child"},
                "input": {"n": "${ item }"},
                "forEach": {"items": "${ input.items }", "maxParallel": 200},
            }
        ],
        "output": {"all": "${ nodes.each.output.map(one, one.n) }"},
    }
    child = {"nodes": [{"name": "pure", "compute": {"n": 1}}], "output": {"n": "${ input.n }"}}
    async with hosted(quick(settings)) as host, connected(settings) as connection:
        await host.engine.deploy("shop", "child", child)
        await host.engine.deploy("shop", "order", spec)
        run_id = await host.start({"items": list(range(600))})
        assert (await host.ended(run_id, within=60.0))["status"] == "Succeeded"
        await nothing_left(connection)
        query = "SELECT output_json ->> 'all' FROM partita.workflow_runs WHERE id = $1"
        assert await connection.fetchval(query, run_id) == str(list(range(600))).replace(" ", "")
