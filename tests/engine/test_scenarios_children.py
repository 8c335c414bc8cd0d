"""Parents and children in several processes at once: what races, and what is left of it."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, TypeAlias
from uuid import UUID

import asyncpg

from partita.domain.payload import Payload
from partita.domain.state.events import CancelRequested, ResumeRequested, SignalReceived, SuspendRequested
from partita.engine import Engine
from partita.settings import Settings
from partita.store import lists, reads, trees
from partita.store.views import RunFilter
from tests.engine.support import NAMESPACE, claim, connected, done, opened, start_many, status, task
from tests.waiting import until
from tests.worker.hosted import hosted

Connection: TypeAlias = "asyncpg.Connection[Any]"
CHILD = {"nodes": [task("pack")]}
PARENT = {"nodes": [{"name": "ship", "workflow": {"name": "child"}}]}
LEFT = """
SELECT string_agg(name || '=' || number, ', ') FROM (
    SELECT 'ready' AS name, count(*) AS number FROM partita.ready_tasks
    UNION ALL SELECT 'leases', count(*) FROM partita.task_leases
    UNION ALL SELECT 'timers', count(*) FROM partita.timers
    UNION ALL SELECT 'waits', count(*) FROM partita.waits
    UNION ALL SELECT 'inbox', count(*) FROM partita.run_inbox
    UNION ALL SELECT 'open', count(*) FROM partita.open_runs
) AS tables WHERE number > 0
"""
ROUNDS = 1_000
CHUNK = 100


def quick(settings: Settings) -> Settings:
    """With duties that look often."""
    return replace(settings, engine=replace(settings.engine, inbox_tick_ms=50))


async def nothing_left(connection: Connection, within: float = 60.0) -> None:
    """Wait until no run is open and no scheduling row is left."""

    async def check() -> bool:
        return await connection.fetchval(LEFT) is None

    try:
        await until(check, within=within, what="nothing is left")
    except AssertionError as error:
        raise AssertionError(f"{error}: {await connection.fetchval(LEFT)}") from None


async def claim_all(connection: Connection, number: int) -> list[Any]:
    """Claim so many tasks, when they are ready."""
    found: list[Any] = []

    async def check() -> bool:
        found.extend(await claim(connection))
        return len(found) >= number

    await until(check, within=60.0, what=f"{number} tasks are ready")
    return found


async def settle(engine: Engine, other: Engine, tasks: Sequence[Any], parents: Sequence[UUID]) -> None:
    """Children end in one process while their parents are cancelled in another, each at its own moment: before, while
    and after the other's message is on its way. How many of each there are depends on the machine."""

    async def spread(call: Callable[[], Awaitable[object]]) -> None:
        await asyncio.sleep(random.uniform(0, 0.1))  # noqa: S311  # nothing waits for it: chance is what is tested
        await call()

    calls: list[Callable[[], Awaitable[object]]] = [partial(engine.report, done(one)) for one in tasks]
    cancels = [CancelRequested(mode=mode) for mode in ("Graceful", "Now")]
    calls += [partial(other.apply, run_id, cancels[number % 2]) for number, run_id in enumerate(parents)]
    await asyncio.gather(*map(spread, calls))


async def test_a_childs_end_that_races_its_parents_cancel_leaves_nothing(settings: Settings) -> None:
    settings = quick(settings)
    async with hosted(settings) as host, opened(settings) as second, connected(settings) as connection:
        await host.engine.deploy(NAMESPACE, "child", CHILD)
        for _ in range(ROUNDS // CHUNK):
            parents = await start_many(host.engine, PARENT, CHUNK)
            tasks = await claim_all(connection, CHUNK)
            await settle(host.engine, second, tasks, parents)
            await nothing_left(connection)
        rows = await connection.fetch(
            "SELECT parent.status AS parent, child.status AS child, count(*) FROM partita.workflow_runs AS child"
            " JOIN partita.workflow_runs AS parent ON parent.id = child.parent_id GROUP BY 1, 2"
        )
        seen = {(row["parent"], row["child"]): row["count"] for row in rows}
        assert sum(seen.values()) == ROUNDS
        assert seen.keys() <= {("Cancelled", "Cancelled"), ("Cancelled", "Succeeded"), ("Succeeded", "Succeeded")}
        deadlocks = "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()"
        assert await connection.fetchval(deadlocks) == 0


SUBFLOW = {
    "nodes": [
        {"name": "each", "workflow": {"subflow": "ask"}, "forEach": {"items": "${ [1, 2] }"}},
    ],
    "subflows": [{"name": "ask", "nodes": [{"name": "approval", "waitForEvent": {"name": "approval"}}]}],
}


async def test_subflows_share_a_mailbox_in_the_order_of_signals_and_waits(settings: Settings) -> None:
    """One signal comes before any wait, two waiters stand for two signals: none is lost, none is given twice."""
    settings = quick(settings)
    async with hosted(settings) as host, opened(settings) as second, connected(settings) as connection:
        (run_id,) = await start_many(host.engine, SUBFLOW, 1)
        sent = [SignalReceived(id=f"s{n}", name="approval", payload=Payload.of({"n": n})) for n in range(2)]
        await asyncio.gather(host.engine.apply(run_id, sent[0]), second.apply(run_id, sent[1]))
        await nothing_left(connection)
        assert await status(connection, run_id) == "Succeeded"
        taken = await connection.fetch("SELECT id, consumed_by FROM partita.workflow_events WHERE run_id = $1", run_id)
        assert len(taken) == 2
        assert all(row["consumed_by"] for row in taken)
        events = "SELECT count(DISTINCT event ->> 'id') FROM partita.task_instances WHERE node = 'approval'"
        assert await connection.fetchval(events) == 2


async def test_suspending_a_parent_stops_its_children_and_resuming_lets_them_go_on(settings: Settings) -> None:
    settings = quick(settings)
    async with hosted(settings) as host, connected(settings) as connection:
        await host.engine.deploy(NAMESPACE, "child", CHILD)
        (run_id,) = await start_many(host.engine, PARENT, 1)
        query = "SELECT id FROM partita.workflow_runs WHERE parent_id = $1"
        child = await until(lambda: connection.fetchval(query, run_id), what="the child")
        await host.engine.apply(run_id, SuspendRequested())

        async def suspended() -> bool:
            return await status(connection, child) == "Suspended"

        await until(suspended, what="the child is suspended")
        assert await claim(connection) == []
        await host.engine.apply(run_id, ResumeRequested())
        for one in await claim_all(connection, 1):
            await host.engine.report(done(one))
        await nothing_left(connection)
        assert await status(connection, run_id) == "Succeeded"


async def test_subflows_are_in_no_list_but_have_a_whole_history(settings: Settings) -> None:
    spec = {
        "nodes": [{"name": "pack", "workflow": {"subflow": "pack"}}],
        "subflows": [{"name": "pack", "nodes": [{"name": "one", "compute": {"n": 1}}]}],
    }
    async with hosted(quick(settings)) as host, connected(settings) as connection:
        (run_id,) = await start_many(host.engine, spec, 1)
        await nothing_left(connection)
        database = host.engine.database
        assert [run.id for run in (await lists.list_runs(database, RunFilter())).runs] == [run_id]
        assert [run.id for run in (await lists.list_runs(database, RunFilter(namespace=NAMESPACE))).runs] == [run_id]
        (child,) = (await lists.list_runs(database, RunFilter(parent=run_id))).runs
        assert (child.subflow, child.depth, child.parent and child.parent.run_id) == ("pack", 1, run_id)
        assert [run.id for run in await trees.children(database, run_id)] == [child.id]
        events = [line.event for line in await reads.history(database, child.id)]
        assert (events[-1], events.count("RunFinished")) == ("RunFinished", 1)
        endings = "SELECT count(*) FROM partita.run_endings WHERE run_id = $1"
        assert await connection.fetchval(endings, child.id) == 0
        assert (await reads.get_run(database, run_id)).nodes[0].child == child.id
