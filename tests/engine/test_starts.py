"""Starting a run happens once, whoever asks how often, and only inside the window of accepted ids."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, TypeAlias
from uuid import UUID, uuid4

import asyncpg
import pytest
from uuid6 import uuid7

from partita.domain import ids
from partita.domain.errors import (
    ConflictError,
    DefinitionNotFoundError,
    ExpiredError,
    IdempotencyKeyInUseError,
    InvalidError,
    InvalidInputError,
    TooEarlyError,
)
from partita.domain.payload import Payload
from partita.domain.state.events import CancelRequested, ControlsApplied, SignalReceived
from partita.domain.state.rows import RunStatus
from partita.engine import CrRef, Engine, StartReply, StartRequest
from partita.settings import Settings
from tests.engine import support
from tests.engine.support import blocked, claim, count, done, opened, status

Connection: TypeAlias = "asyncpg.Connection[Any]"
ENGINE_ID = "cluster/partita-system"


def request(**fields: Any) -> StartRequest:
    return StartRequest(**{"namespace": support.NAMESPACE, "definition": "order", **fields})


def cr(uid: str = "cr-1") -> CrRef:
    return CrRef(
        cluster_uid="cluster", engine_id=ENGINE_ID, uid=uid, namespace=support.NAMESPACE, name="order-1", generation=1
    )


@pytest.fixture(autouse=True)
async def deployed(engine: Engine) -> None:
    await engine.deploy(support.NAMESPACE, "order", support.CHAIN)


async def runs(connection: Connection) -> int:
    return int(await connection.fetchval("SELECT count(*) FROM partita.workflow_runs"))


async def test_the_same_request_starts_one_run(engine: Engine, other: Connection) -> None:
    asked = request(started_by="me", tags=("a",), attributes={"k": "v"}, priority=1)
    first, again = await engine.start(asked), await engine.start(asked)
    assert (first.created, again.created) == (True, False)
    assert first.run_id == again.run_id
    row = await other.fetchrow("SELECT * FROM partita.workflow_runs")
    assert row is not None
    assert (row["started_by"], row["tags"], row["attributes"], row["priority"]) == ("me", '["a"]', '{"k": "v"}', 1)
    assert await count(other, "open_runs", first.run_id) == 1


async def test_the_same_requests_in_one_batch_start_one_run(engine: Engine, other: Connection) -> None:
    asked = request()
    replies = await asyncio.gather(*(engine.start(asked) for _ in range(5)))
    assert sorted(reply.created for reply in replies) == [False] * 4 + [True]
    assert await runs(other) == 1


async def test_another_request_for_a_used_id_is_a_conflict(engine: Engine, other: Connection) -> None:
    first = await engine.start(request())
    with pytest.raises(ConflictError, match="another request"):
        await engine.start(request(run_id=first.run_id))
    assert await runs(other) == 1


async def test_an_object_starts_one_run_whatever_id_it_is_given(engine: Engine, other: Connection) -> None:
    run_id = ids.derived_id("cr-1", datetime.now(UTC))
    first = await engine.start(request(run_id=run_id, cr=cr()))
    again = await engine.start(request(run_id=run_id, cr=cr()))
    third = await engine.start(request(run_id=uuid7(), cr=cr()))
    assert [reply.created for reply in (first, again, third)] == [True, False, False]
    assert {reply.run_id for reply in (first, again, third)} == {run_id}
    assert await runs(other) == 1
    queued = await other.fetchrow("SELECT * FROM partita.projection_queue")
    assert queued is not None
    assert queued["run_id"] == run_id


async def test_an_idempotency_key_is_bound_to_its_input(engine: Engine, other: Connection) -> None:
    first = await engine.start(request(idempotency_key="k", input={"a": 1}))
    again = await engine.start(request(idempotency_key="k", input={"a": 1}))
    assert (again.run_id, again.created) == (first.run_id, False)
    with pytest.raises(IdempotencyKeyInUseError, match="another input"):
        await engine.start(request(idempotency_key="k", input={"a": 2}))
    await engine.deploy("elsewhere", "order", support.CHAIN)
    elsewhere = await engine.start(request(namespace="elsewhere", idempotency_key="k", input={"a": 2}))
    assert elsewhere.created
    assert await runs(other) == 2


async def test_an_idempotency_key_of_another_object_is_refused(engine: Engine, other: Connection) -> None:
    await engine.start(request(cr=cr("cr-1"), idempotency_key="k"))
    with pytest.raises(IdempotencyKeyInUseError, match="another WorkflowRun"):
        await engine.start(request(cr=cr("cr-2"), idempotency_key="k"))
    assert await other.fetchval("SELECT count(*) FROM partita.run_keys") == 2


async def test_an_expired_key_is_free_again(engine: Engine, other: Connection) -> None:
    first = await engine.start(request(idempotency_key="k"))
    await other.execute("UPDATE partita.run_keys SET expires_at = clock_timestamp()")
    second = await engine.start(request(idempotency_key="k"))
    assert second.created
    assert await other.fetchval("SELECT run_id FROM partita.run_keys") == second.run_id != first.run_id


async def test_two_processes_that_start_one_object_at_once_start_one_run(
    settings: Settings, engine: Engine, other: Connection
) -> None:
    run_id = ids.derived_id("cr-1", datetime.now(UTC))
    await other.execute("BEGIN; LOCK TABLE partita.ready_tasks IN ACCESS EXCLUSIVE MODE")
    async with opened(settings) as second:
        first_start = asyncio.create_task(engine.start(request(run_id=run_id, cr=cr())))
        await blocked(other, 1)
        second_start = asyncio.create_task(second.start(request(run_id=run_id, cr=cr())))
        await blocked(other, 2)
        await other.execute("COMMIT")
        replies = await asyncio.gather(first_start, second_start)
    assert [reply.created for reply in replies] == [True, False]
    assert (await runs(other), await count(other, "ready_tasks", run_id)) == (1, 1)


@pytest.mark.parametrize(("ahead", "error"), [(timedelta(days=2), TooEarlyError), (timedelta(days=-400), ExpiredError)])
async def test_ids_outside_the_window_are_never_started(
    engine: Engine, other: Connection, ahead: timedelta, error: type[Exception]
) -> None:
    await other.execute("UPDATE partita.engine_state SET retention_floor = clock_timestamp() - interval '300 days'")
    run_id = ids.derived_id("cr-1", datetime.now(UTC) + ahead)
    with pytest.raises(error):
        await engine.start(request(run_id=run_id, cr=cr()))
    assert await other.fetchval("SELECT count(*) FROM partita.run_keys") == 0


async def test_an_id_that_is_not_ordered_by_time_is_refused(engine: Engine) -> None:
    with pytest.raises(InvalidError, match="version 7"):
        await engine.start(request(run_id=uuid4()))


async def test_bad_input_stores_nothing(engine: Engine, other: Connection) -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer", "default": 3}}, "required": ["n"]}
    await engine.deploy(support.NAMESPACE, "order", {**support.CHAIN, "inputSchema": schema, "config": {"site": "x"}})
    with pytest.raises(InvalidInputError, match="n"):
        await engine.start(request(input={"n": "three"}))
    with pytest.raises(InvalidInputError):
        await engine.start(request(input={"n": 1, "text": "x" * 2_000_000}))
    assert await runs(other) == 0
    await engine.start(request())
    stored = await other.fetchval("SELECT context_json::jsonb = $1::jsonb FROM partita.workflow_runs", CONTEXT)
    assert stored


CONTEXT = '{"input": {"n": 3}, "config": {"site": "x"}}'


async def test_a_definition_that_is_not_there_is_named(engine: Engine) -> None:
    with pytest.raises(DefinitionNotFoundError, match="shop/nothing"):
        await engine.start(request(definition="nothing"))
    with pytest.raises(DefinitionNotFoundError, match="version 9"):
        await engine.start(request(version=9))


async def test_a_version_deployed_by_another_process_is_the_one_that_starts(
    settings: Settings, engine: Engine, other: Connection
) -> None:
    await engine.start(request())
    async with opened(settings) as second:
        deployed = await second.deploy(support.NAMESPACE, "order", support.DIAMOND)
        assert (deployed.version, deployed.created) == (2, True)
        newest = await engine.start(request())
        assert await other.fetchval("SELECT version FROM partita.workflow_runs WHERE id = $1", newest.run_id) == 2
        await second.delete_definition(support.NAMESPACE, "order")
        with pytest.raises(DefinitionNotFoundError):
            await engine.start(request())


async def test_controls_that_came_with_the_object_apply_at_its_start(engine: Engine, other: Connection) -> None:
    controls = ControlsApplied(cr_generation=3, suspend=True, signals=(support.signal("early", payload=1),))
    reply = await engine.start(request(run_id=uuid7(), cr=cr(), controls=controls))
    row = await other.fetchrow("SELECT status, cr_generation, applied_suspend FROM partita.workflow_runs")
    assert row is not None
    assert tuple(row) == ("Suspended", 3, True)
    assert reply.status is RunStatus.SUSPENDED
    assert await count(other, "ready_tasks", reply.run_id) == 0
    assert await count(other, "workflow_events", reply.run_id) == 1


async def test_a_run_without_work_ends_in_its_own_start(engine: Engine, other: Connection) -> None:
    spec = {"nodes": [{"name": "sum", "compute": {"n": "${input.a + 1}"}}], "output": {"n": "${nodes.sum.output.n}"}}
    await engine.deploy(support.NAMESPACE, "order", spec)
    reply = await engine.start(request(input={"a": 1}))
    assert reply.status is RunStatus.SUCCEEDED
    assert await other.fetchval("SELECT output_json->>'n' FROM partita.workflow_runs") == "2"
    assert await count(other, "open_runs", reply.run_id) == 0
    assert await count(other, "run_endings", reply.run_id) == 1


async def test_a_start_in_a_callers_transaction_begins_after_its_commit(engine: Engine, other: Connection) -> None:
    asked = request(input={"a": 1}, tags=("t",), attributes={"k": "v"}, idempotency_key="k", cr=cr())
    transaction = other.transaction()
    await transaction.start()
    run_id = await engine.start_in(other, asked)
    assert await runs(other) == 0
    await transaction.commit()
    (row,) = await other.fetch("SELECT id, run_id, kind, body FROM partita.run_inbox")
    replies = await asyncio.gather(engine.deliver(row), engine.deliver(row))
    assert [reply.run_id for reply in replies if isinstance(reply, StartReply)] == [run_id, run_id]
    assert await other.fetchval("SELECT count(*) FROM partita.run_inbox") == 0
    assert (await engine.start(asked)).created is False
    assert [task.run_id for task in await claim(other)] == [run_id]


async def test_a_start_from_the_inbox_follows_a_definition_that_was_replaced(
    engine: Engine, other: Connection, settings: Settings
) -> None:
    await engine.start(request())
    async with opened(settings) as another:
        await another.deploy(support.NAMESPACE, "order", support.DIAMOND)
    run_id = await engine.start_in(other, request())
    (row,) = await other.fetch("SELECT id, run_id, kind, body FROM partita.run_inbox")
    assert await engine.deliver(row) == StartReply(run_id, created=True, status=RunStatus.RUNNING)
    assert await other.fetchval("SELECT version FROM partita.workflow_runs WHERE id = $1", run_id) == 2
    assert await other.fetchval("SELECT count(*) FROM partita.run_inbox") == 0


async def test_a_start_from_the_inbox_becomes_a_run_while_its_definition_is_replaced_all_the_time(
    engine: Engine, other: Connection, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_id = await engine.start_in(other, request())
    (row,) = await other.fetch("SELECT id, run_id, kind, body FROM partita.run_inbox")
    deployed: list[int] = []
    resolve = engine.definitions.resolve
    async with opened(settings) as another:

        async def overtaken(*asked: Any, **how: Any) -> Any:
            found = await resolve(*asked, **how)
            spec = {"nodes": [support.task("a")], "description": str(len(deployed))}
            deployed.append((await another.deploy(support.NAMESPACE, "order", spec)).version)
            return found

        monkeypatch.setattr(engine.definitions, "resolve", overtaken)
        assert await engine.deliver(row) == StartReply(run_id, created=True, status=RunStatus.RUNNING)
    version = await other.fetchval("SELECT version FROM partita.workflow_runs WHERE id = $1", run_id)
    assert version == deployed[-1] - 1
    assert await other.fetchval("SELECT count(*) FROM partita.run_inbox") == 0


async def test_a_delivery_that_fails_is_counted_on_its_row(engine: Engine, other: Connection) -> None:
    await engine.start_in(other, request(definition="nothing"))
    (row,) = await other.fetch("SELECT id, run_id, kind, body FROM partita.run_inbox")
    with pytest.raises(DefinitionNotFoundError):
        await engine.deliver(row)
    counted = await other.fetchrow("SELECT failures, last_error, due_at > clock_timestamp() FROM partita.run_inbox")
    assert counted is not None
    assert (counted[0], counted[2]) == (1, True)
    assert "shop/nothing" in counted[1]


async def test_deliveries_that_fail_at_the_same_time_are_all_counted(engine: Engine, other: Connection) -> None:
    for _ in range(20):
        await engine.start_in(other, request(definition="nothing"))
    rows = await other.fetch("SELECT id, run_id, kind, body FROM partita.run_inbox")
    results = await asyncio.gather(*(engine.deliver(row) for row in rows), return_exceptions=True)
    assert {type(result) for result in results} == {DefinitionNotFoundError}
    assert await other.fetchval("SELECT count(*) FROM partita.run_inbox WHERE failures = 1") == 20


async def test_a_row_that_cannot_be_read_is_counted_too(engine: Engine, other: Connection) -> None:
    await other.execute(
        "INSERT INTO partita.run_inbox (run_id, kind, body) VALUES ($1, 'signal', '{\"odd\": \"\\u0000\"}')", uuid7()
    )
    (row,) = await other.fetch("SELECT id, run_id, kind, body FROM partita.run_inbox")
    with pytest.raises(KeyError):
        await engine.deliver(row)
    assert await other.fetchval("SELECT failures FROM partita.run_inbox") == 1


@pytest.mark.parametrize("value", ["a\0b", "\ud800", "x" * 1_100_000, object(), float("nan")])
async def test_what_could_never_be_delivered_is_refused_in_the_callers_transaction(
    engine: Engine, other: Connection, value: object
) -> None:
    run_id = (await engine.start(request())).run_id
    with pytest.raises(InvalidInputError):
        await engine.start_in(other, request(input={"a": value}))
    with pytest.raises(InvalidError):
        await engine.signal_in(other, run_id, SignalReceived(id="s", name="n", payload=Payload.of(value)))
    with pytest.raises(InvalidError):
        await engine.signal_in(other, run_id, SignalReceived(id="s\0", name="n", payload=Payload.of(1)))
    assert await other.fetchval("SELECT count(*) FROM partita.run_inbox") == 0


async def test_a_delivery_that_its_run_refuses_is_a_dead_letter_with_the_reason(
    settings: Settings, engine: Engine, other: Connection
) -> None:
    await engine.deploy(support.NAMESPACE, "order", {"nodes": [{"name": "only", "waitForEvent": {"name": "go"}}]})
    ended = (await engine.start(request())).run_id
    await engine.apply(ended, CancelRequested())
    run_id = (await engine.start(request())).run_id
    for target, id_, payload in ((ended, "late", 1), (run_id, "large", "x" * 9_000), (run_id, "good", 1)):
        await engine.signal_in(other, target, SignalReceived(id=id_, name="go", payload=Payload.of(payload)))
    rows = await other.fetch("SELECT id, run_id, kind, body FROM partita.run_inbox")
    smaller = replace(settings, limits=replace(settings.limits, output_bytes=1_024))
    async with opened(smaller) as second:
        results = await asyncio.gather(*(second.deliver(row) for row in rows), return_exceptions=True)
    assert [isinstance(result, ConflictError) for result in results] == [True, True, False]
    letters = await other.fetch("SELECT dead_at IS NOT NULL AS dead, last_error FROM partita.run_inbox ORDER BY id")
    assert [row["dead"] for row in letters] == [True, True]
    assert "RunFinished" in letters[0]["last_error"]
    assert "PayloadTooLarge" in letters[1]["last_error"]
    assert await status(other, run_id) == "Succeeded"


async def test_a_run_keeps_the_version_it_started_on(engine: Engine, other: Connection) -> None:
    run_id = (await engine.start(request())).run_id
    await engine.deploy(support.NAMESPACE, "order", support.DIAMOND)
    await engine.delete_definition(support.NAMESPACE, "order")
    await support.finish(engine, other, await claim(other))
    assert await status(other, run_id) == "Succeeded"


def test_a_request_without_an_id_takes_its_own(engine: Engine) -> None:
    del engine
    first, second = request(), request()
    assert isinstance(first.request_id, UUID)
    assert first.request_id != second.request_id
    assert replace(first, priority=1).request_id == first.request_id


async def test_a_late_report_of_an_ended_run_is_stale(engine: Engine, other: Connection) -> None:
    run_id = (await engine.start(request())).run_id
    (task,) = await claim(other)
    await engine.apply(run_id, CancelRequested())
    assert (await engine.report(done(task))).outcome == "stale"
