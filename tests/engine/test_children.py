"""Child runs on a real database: starts, refusals, and what is left of them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, TypeAlias, cast

import asyncpg
import orjson

from partita.domain.payload import Payload
from partita.domain.state.effects import ChildStart
from partita.domain.state.events import CancelRequested
from partita.engine import Engine
from partita.minting import new_id
from partita.settings import Settings
from tests.engine.support import NAMESPACE, claim, count, deliver, done, send, start, status, task
from tests.waiting import until
from tests.worker.hosted import hosted

Connection: TypeAlias = "asyncpg.Connection[Any]"
CHILD = {"nodes": [task("pack")], "output": {"n": "${ input.n }"}}
PARENT = {
    "nodes": [{"name": "ship", "workflow": {"name": "child"}, "input": {"n": 7}}, task("after", "ship")],
    "output": {"shipped": "${ nodes.ship.output }"},
}
KIN = (
    "SELECT id, status, parent_node, parent_index, parent_attempt, depth, started_by, version, error_json"
    " FROM partita.workflow_runs WHERE parent_id = $1 ORDER BY id"
)


async def child_of(connection: Connection, run_id: Any) -> asyncpg.Record:
    """The one child of a run, once it is there."""
    rows = await until(lambda: connection.fetch(KIN, run_id), what=f"a child of {run_id}")
    assert len(rows) == 1
    return cast("asyncpg.Record", rows[0])


async def ended(connection: Connection, run_id: Any, outcome: str = "Succeeded") -> None:
    async def check() -> bool:
        return await status(connection, run_id) == outcome

    await until(check, what=f"run {run_id} is {outcome}")


async def work(engine: Engine, connection: Connection) -> None:
    """Do what is ready until nothing is."""
    while tasks := await claim(connection):
        for one in tasks:
            await engine.report(done(one))


async def test_a_child_runs_and_its_parent_goes_on_at_once(engine: Engine, other: Connection) -> None:
    await engine.deploy(NAMESPACE, "child", CHILD)
    run_id = await start(engine, PARENT)
    child = await child_of(other, run_id)
    assert (child["parent_node"], child["parent_index"], child["parent_attempt"], child["depth"]) == ("ship", 0, 1, 1)
    assert str(run_id) in child["started_by"]
    await work(engine, other)
    await ended(other, child["id"])
    await until(lambda: claim_ready(other, run_id), what="the node after the child is ready")
    await work(engine, other)
    await ended(other, run_id)
    output = await other.fetchval("SELECT output_json FROM partita.workflow_runs WHERE id = $1", run_id)
    assert output == '{"shipped":{"n":7}}'
    assert await other.fetchval("SELECT count(*) FROM partita.run_inbox") == 0
    assert await other.fetchval("SELECT count(*) FROM partita.open_runs") == 0


async def test_input_that_the_child_refuses_fails_the_node(engine: Engine, other: Connection) -> None:
    schema = {"type": "object", "properties": {"n": {"type": "string"}}}
    await engine.deploy(NAMESPACE, "child", {**CHILD, "inputSchema": schema})
    run_id = await start(engine, PARENT)
    await ended(other, run_id, "Failed")
    error = await other.fetchval("SELECT error_json FROM partita.workflow_runs WHERE id = $1", run_id)
    value = orjson.loads(error)
    assert value["type"] == "invalid_input"
    assert value["details"], "the problems"
    assert await other.fetchval("SELECT count(*) FROM partita.run_inbox") == 0
    assert await other.fetchval("SELECT count(*) FROM partita.workflow_runs WHERE parent_id = $1", run_id) == 0


async def test_a_child_of_a_version_that_was_deleted_since_starts(engine: Engine, other: Connection) -> None:
    version = (await engine.deploy(NAMESPACE, "child", CHILD)).version
    await engine.delete_definition(NAMESPACE, "child")
    run_id = new_id()
    born = ChildStart(definition="child", version=version, input=Payload.of({"n": 1}), parent=None, depth=1)
    await deliver(engine, other, *await send(other, run_id, born))
    assert await status(other, run_id) == "Running"


async def test_a_child_that_is_started_twice_is_started_once(engine: Engine, other: Connection) -> None:
    version = (await engine.deploy(NAMESPACE, "child", CHILD)).version
    run_id = new_id()
    born = ChildStart(definition="child", version=version, input=Payload.of({"n": 1}), parent=None, depth=1)
    answers = await deliver(engine, other, *await send(other, run_id, born, born))
    answers += await deliver(engine, other, *await send(other, run_id, born))
    assert [answer for answer in answers if isinstance(answer, Exception)] == []
    assert (await count(other, "ready_tasks", run_id), await count(other, "run_inbox", run_id)) == (1, 0)
    assert await count(other, "open_runs", run_id) == 1


async def test_a_detached_child_that_nobody_can_tell_of_its_refusal_is_a_dead_letter(
    engine: Engine, other: Connection
) -> None:
    run_id = new_id()
    born = ChildStart(definition="none", version=1, input=Payload.of({}), parent=None, depth=1)
    await deliver(engine, other, *await send(other, run_id, born))
    row = await other.fetchrow(
        "SELECT dead_at IS NOT NULL, last_error FROM partita.run_inbox WHERE run_id = $1", run_id
    )
    assert row is not None
    assert row[0]
    assert "version 1 is not stored" in row[1]


async def test_what_a_killed_sender_left_is_delivered_by_the_duty(settings: Settings) -> None:
    """The sender's own courier is taken away, as if it had been killed after its commit."""
    changed = replace(settings, engine=replace(settings.engine, message_grace_ms=0))
    async with hosted(changed) as host:
        host.engine.notices.messages.clear()
        await host.deploy(task("pack"), name="child", output={"n": "${ input.n }"})
        await host.engine.deploy(NAMESPACE, "order", PARENT)
        run_id = await host.start()
        rows = await until(lambda: host.fetch(KIN, run_id), what="the child")
        await host.engine.apply(run_id, CancelRequested(mode="Now"))
        assert (await host.ended(run_id))["status"] == "Cancelled"
        assert (await host.ended(rows[0]["id"]))["status"] == "Cancelled"


async def claim_ready(connection: Connection, run_id: Any) -> bool:
    return await count(connection, "ready_tasks", run_id) > 0
