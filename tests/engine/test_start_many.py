"""Many starts in one call: each is answered as if it had come alone, for a constant number of statements a kind."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, TypeAlias
from uuid import uuid4

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
    PartitaError,
    TooEarlyError,
    UnavailableError,
)
from partita.domain.payload import Json
from partita.domain.state.rows import RunStatus
from partita.engine import Engine, StartReply, StartRequest
from partita.engine.many import MOST
from partita.settings import Settings
from tests.engine import support
from tests.engine.proxy import Loss, proxy_to
from tests.engine.support import blocked, claim, opened, task

Connection: TypeAlias = "asyncpg.Connection[Any]"
SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}}
BOUNDED = {**support.CHAIN, "timeout": "1h"}
TWO_ROOTS = {"nodes": [task("a", input={"x": 1}), task("b", priority=2), task("c", "a", "b")]}
READING = {"nodes": [task("a", input={"n": "${get(input, 'n', 0)}"})]}
OWN = ("id", "run_id", "start_request_id", "created_at", "started_at", "queued_at", "enqueued_at", "seq", "ready_seq")
TIMES = ("deadline_at", "fire_at", "expires_at")
DOUBLED = "SELECT seq FROM partita.ready_tasks GROUP BY queue, lane, priority, seq HAVING count(*) > 1"
KEPT = """
SELECT count(*) FROM partita.task_instances AS task
JOIN partita.ready_tasks AS ready ON ready.run_id = task.run_id AND ready.node = task.node
 AND (ready.queue, ready.lane, ready.priority, ready.seq)
     = (task.queue, task.ready_lane, task.ready_priority, task.ready_seq)
"""
"""Tasks that keep the place of their own ready row."""


def asked(count: int, **fields: Any) -> list[StartRequest]:
    return [StartRequest(**{"namespace": support.NAMESPACE, "definition": "order", **fields}) for _ in range(count)]


def created(answers: Sequence[StartReply | PartitaError]) -> list[bool]:
    """Which runs are new; an error is raised."""
    replies = []
    for answer in answers:
        if isinstance(answer, PartitaError):
            raise answer
        replies.append(answer.created)
    return replies


@pytest.fixture(autouse=True)
async def deployed(engine: Engine) -> None:
    await engine.deploy(support.NAMESPACE, "order", support.CHAIN)


async def rows(connection: Connection, table: str) -> int:
    return int(await connection.fetchval(f"SELECT count(*) FROM partita.{table}"))  # noqa: S608  # names of this file


async def test_many_runs_start_and_work(engine: Engine, other: Connection) -> None:
    requests = asked(30)
    replies = await engine.start_many(requests)
    assert created(replies) == [True] * 30
    assert [reply.run_id for reply in replies if isinstance(reply, StartReply)] == [one.request_id for one in requests]
    tasks = await claim(other)
    assert {one.run_id for one in tasks} == {one.request_id for one in requests}
    await support.finish(engine, other, tasks)
    assert await other.fetchval("SELECT count(*) FROM partita.run_endings WHERE status = 'Succeeded'") == 30
    assert await rows(other, "open_runs") == 0


async def test_each_request_is_answered_by_itself(engine: Engine, other: Connection) -> None:
    await engine.deploy(support.NAMESPACE, "picky", {**support.CHAIN, "inputSchema": SCHEMA})
    await other.execute("UPDATE partita.engine_state SET retention_floor = clock_timestamp() - interval '300 days'")
    used = await engine.start(asked(1)[0])
    now = datetime.now(UTC)
    bad: dict[int, tuple[StartRequest, type[PartitaError]]] = {
        2: (asked(1, definition="nothing")[0], DefinitionNotFoundError),
        5: (asked(1, definition="picky", input={"n": "x"})[0], InvalidInputError),
        7: (asked(1, run_id=uuid4())[0], InvalidError),
        9: (asked(1, run_id=used.run_id)[0], ConflictError),
        11: (asked(1, run_id=ids.make_id(ids.to_milliseconds(now - timedelta(days=400)), 1))[0], ExpiredError),
        13: (asked(1, run_id=ids.make_id(ids.to_milliseconds(now + timedelta(days=2)), 1))[0], TooEarlyError),
        15: (asked(1, version=9)[0], DefinitionNotFoundError),
        17: (asked(1, priority=9)[0], PartitaError),  # what only the database refuses
    }
    requests = asked(20)
    for place, (request, _) in bad.items():
        requests[place] = request
    answers = await engine.start_many(requests)
    assert {place for place, answer in enumerate(answers) if not isinstance(answer, StartReply)} == bad.keys()
    assert [type(answers[place]) for place in bad if place != 17] == [kind for at, (_, kind) in bad.items() if at != 17]
    assert await rows(other, "workflow_runs") == 13
    assert await rows(other, "ready_tasks") == 13


async def test_a_request_that_comes_twice_starts_one_run(engine: Engine, other: Connection) -> None:
    requests = asked(12)
    answers = await engine.start_many([*requests, *requests, requests[0], requests[0]])
    assert created(answers) == [True] * 12 + [False] * 14
    assert created(await engine.start_many(requests)) == [False] * 12
    assert await rows(other, "workflow_runs") == 12


async def test_a_key_stands_for_one_run_within_a_call_and_across_calls(engine: Engine, other: Connection) -> None:
    same = [asked(1, idempotency_key=f"k{number}", input={"n": number})[0] for number in range(10)]
    doubles = [asked(1, idempotency_key=f"k{number}", input={"n": number})[0] for number in range(10)]
    clash = asked(1, idempotency_key="k3", input={"n": 99})[0]
    answers = await engine.start_many([*same, *doubles, clash])
    assert created(answers[:20]) == [True] * 10 + [False] * 10
    first, second = answers[:10], answers[10:20]
    assert [a.run_id for a in first if isinstance(a, StartReply)] == [
        a.run_id for a in second if isinstance(a, StartReply)
    ]
    assert isinstance(answers[20], IdempotencyKeyInUseError)
    again = await engine.start_many([clash, *asked(9), same[0]])
    assert isinstance(again[0], IdempotencyKeyInUseError)
    assert created(again[1:]) == [True] * 9 + [False]
    assert await rows(other, "run_keys") == 10
    assert await rows(other, "workflow_runs") == 19


async def test_too_many_are_refused_and_none_is_no_call(engine: Engine, other: Connection) -> None:
    with pytest.raises(InvalidError, match="at most 10,000"):
        await engine.start_many(asked(1) * (MOST + 1))
    assert await engine.start_many([]) == []
    assert await rows(other, "workflow_runs") == 0


@pytest.mark.parametrize("loss", [Loss.ANSWER, Loss.REQUEST])
async def test_a_commit_whose_answer_is_lost_starts_each_run_once(
    settings: Settings, other: Connection, loss: Loss
) -> None:
    async with proxy_to(settings.database.url) as proxy:
        moved = replace(settings, database=replace(settings.database, url=proxy.url))
        async with opened(moved, batch_size=20) as behind:
            created(await behind.start_many(asked(1)))
            proxy.loss = loss
            requests = asked(50)
            answers = await behind.start_many(requests)
            assert proxy.lost == 1
            assert created(answers) == [True] * 50
            assert created(await behind.start_many(requests)) == [False] * 50
    assert await rows(other, "workflow_runs") == await rows(other, "ready_tasks") == 51


async def test_two_callers_that_start_the_same_runs_at_once_start_each_once(
    settings: Settings, engine: Engine, other: Connection
) -> None:
    requests = asked(60, input={"n": 1})
    await other.execute("BEGIN; LOCK TABLE partita.ready_tasks IN ACCESS EXCLUSIVE MODE")
    async with opened(settings) as second:
        first_call = asyncio.create_task(engine.start_many(requests[:40]))
        await blocked(other, 1)
        second_call = asyncio.create_task(second.start_many(list(reversed(requests[20:]))))
        await blocked(other, 2)
        await other.execute("COMMIT")
        first, last = await asyncio.gather(first_call, second_call)
    begun = dict.fromkeys((request.request_id for request in requests), 0)
    for answer in [*first, *last]:
        assert isinstance(answer, StartReply), answer
        begun[answer.run_id] += answer.created
    assert set(begun.values()) == {1}
    assert await rows(other, "workflow_runs") == await rows(other, "ready_tasks") == 60


async def test_calls_of_one_process_that_overlap_start_each_run_once(engine: Engine, other: Connection) -> None:
    requests = asked(40, idempotency_key=None)
    calls = [engine.start_many(requests), engine.start_many(list(reversed(requests))), engine.start_many(requests[5:])]
    answers = await asyncio.gather(*calls)
    assert sum(sum(created(each)) for each in answers) == 40
    assert await rows(other, "workflow_runs") == 40


@contextmanager
def statements(engine: Engine) -> Iterator[list[str]]:
    """Statements that the engine's connections for many starts send meanwhile."""
    seen: list[str] = []

    def note(record: Any) -> None:
        seen.append(record.query)

    with ExitStack() as stack:
        for transactor in engine.coordinator.bulk._transactors:
            connection = transactor._connection._connection
            if connection is not None:
                stack.enter_context(connection.query_logger(note))
        yield seen


async def connect(engine: Engine) -> None:
    """Let both connections be made, and prepare what they send."""
    for _ in range(2):
        created(await engine.start_many(asked(20)))


@pytest.mark.parametrize("spec", [support.CHAIN, BOUNDED, READING])
async def test_the_number_of_statements_does_not_depend_on_the_number_of_starts(
    settings: Settings, other: Connection, spec: Json
) -> None:
    async with opened(settings, batch_size=500) as engine:
        await engine.deploy(support.NAMESPACE, "order", spec)
        await connect(engine)
        counts = []
        for number in (1, 20, 500):
            with statements(engine) as seen:
                created(await engine.start_many(asked(number)))
            counts.append(len(seen))
    assert counts[1] == counts[2], counts
    assert counts[0] <= counts[1] <= 14, counts
    assert await rows(other, "workflow_runs") == 561


async def test_lots_are_committed_in_transactions_of_their_own(settings: Settings, other: Connection) -> None:
    async with opened(settings, batch_size=50) as engine:
        await connect(engine)
        before = engine.coordinator.transactions
        created(await engine.start_many(asked(400)))
        assert engine.coordinator.transactions - before == 8
    assert await rows(other, "workflow_runs") == 440


async def snapshot(connection: Connection, order: Sequence[str]) -> list[dict[str, Any]]:
    """Every row of the runs that were started, by run in this order, without what is each run's own or a moment."""
    found = []
    for table, key in (
        ("workflow_runs", "id"),
        ("open_runs", "run_id"),
        ("task_instances", "run_id"),
        ("ready_tasks", "run_id"),
        ("timers", "run_id"),
    ):
        query = f"SELECT * FROM partita.{table} ORDER BY {key}"  # noqa: S608  # names of this file only
        for row in await connection.fetch(query):
            values = dict(row)
            seen = {name: values[name] is not None for name in TIMES if name in values}
            place = order.index(str(values[key]))
            own = {name: value for name, value in values.items() if name not in (*OWN, *TIMES)}
            found.append({"table": table, "place": place, **own, **{f"has {name}": is_ for name, is_ in seen.items()}})
    return sorted(found, key=lambda row: (row["table"], row["place"], row.get("node", "")))


@pytest.mark.parametrize("spec", [support.CHAIN, BOUNDED, TWO_ROOTS, READING, support.APPROVAL, support.PAUSE])
async def test_runs_that_are_copied_have_the_rows_of_runs_that_are_started_alone(
    engine: Engine, other: Connection, spec: Json
) -> None:
    await engine.deploy(support.NAMESPACE, "order", {**spec, "config": {"site": "north"}})
    shapes: list[dict[str, Any]] = [
        {"name": f"run-{n}", "input": {"n": n}, "tags": ("t", str(n)), "attributes": {"k": str(n)}} for n in range(12)
    ]
    common: dict[str, Any] = {"priority": 1, "timeout_ms": 3_600_000, "started_by": "me"}
    snapshots = []
    for many in (False, True):
        requests = [asked(1, **shape, **common, idempotency_key=f"{n}")[0] for n, shape in enumerate(shapes)]
        if many:
            created(await engine.start_many(requests))
        else:
            for request in requests:
                await engine.start(request)
        order = [str(request.request_id) for request in requests]
        snapshots.append(await snapshot(other, order))
        doubled = await other.fetch(DOUBLED)
        assert (doubled, await other.fetchval(KEPT)) == ([], await rows(other, "ready_tasks"))
        tables = "workflow_runs, open_runs, task_instances, ready_tasks, timers, run_keys, waits"
        await other.execute(f"TRUNCATE {', '.join(f'partita.{table}' for table in tables.split(', '))}")
    assert snapshots[0] == snapshots[1]
    assert len(snapshots[0]) >= 36


async def test_runs_that_read_their_input_are_decided_one_by_one(engine: Engine, other: Connection) -> None:
    await engine.deploy(support.NAMESPACE, "order", READING)
    requests = [asked(1, input={"n": number})[0] for number in range(20)]
    created(await engine.start_many(requests))
    found = await other.fetch("SELECT run_id, input->>'n' AS n FROM partita.task_instances")
    assert {row["run_id"]: int(row["n"]) for row in found} == {
        request.request_id: number for number, request in enumerate(requests)
    }


async def test_a_paused_engine_starts_runs_that_nobody_claims(engine: Engine, other: Connection) -> None:
    await other.execute("UPDATE partita.engine_state SET paused = true")
    answers = await engine.start_many(asked(20))
    assert {answer.status for answer in answers if isinstance(answer, StartReply)} == {RunStatus.RUNNING}
    assert await rows(other, "task_leases") == 0
    assert await rows(other, "ready_tasks") == 20


async def test_a_version_that_was_replaced_by_another_process_is_followed(
    settings: Settings, engine: Engine, other: Connection
) -> None:
    created(await engine.start_many(asked(10)))
    async with opened(settings) as second:
        await second.deploy(support.NAMESPACE, "order", support.DIAMOND)
        created(await engine.start_many(asked(10)))
        assert await other.fetchval("SELECT count(*) FROM partita.workflow_runs WHERE version = 2") == 10
        await second.delete_definition(support.NAMESPACE, "order")
        answers = await engine.start_many(asked(10))
    assert {type(answer) for answer in answers} == {DefinitionNotFoundError}


async def test_a_definition_that_is_replaced_all_the_time_starts_what_was_deployed_when_asked(
    settings: Settings, engine: Engine, other: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    deployed: list[int] = []
    resolve = engine.definitions.resolve
    async with opened(settings) as another:

        async def overtaken(*words: Any, **how: Any) -> Any:
            found = await resolve(*words, **how)
            spec = {"nodes": [support.task("a")], "description": str(len(deployed))}
            deployed.append((await another.deploy(support.NAMESPACE, "order", spec)).version)
            return found

        monkeypatch.setattr(engine.definitions, "resolve", overtaken)
        assert created(await engine.start_many(asked(10))) == [True] * 10
    assert len(deployed) <= 6
    assert await other.fetchval("SELECT min(version) = max(version) FROM partita.workflow_runs")


async def test_an_engine_that_is_closed_answers_that_it_is_stopping(settings: Settings, other: Connection) -> None:
    async with opened(settings) as engine:
        created(await engine.start_many(asked(1)))
        await other.execute("BEGIN; LOCK TABLE partita.ready_tasks IN ACCESS EXCLUSIVE MODE")
        running = asyncio.create_task(engine.start_many(asked(20)))
        await blocked(other)
        closing = asyncio.create_task(engine.close())
        await other.execute("COMMIT")
        await closing
        assert created(await running) == [True] * 20
        answers = await engine.start_many(asked(3))
    assert {type(answer) for answer in answers} <= {UnavailableError, DefinitionNotFoundError}
    assert await rows(other, "workflow_runs") == 21


async def test_many_starts_in_a_callers_transaction_take_one_statement(engine: Engine, other: Connection) -> None:
    requests = asked(50, input={"n": 1}, tags=("t",))
    transaction = other.transaction()
    await transaction.start()
    run_ids = await engine.start_many_in(other, requests)
    assert await other.fetchval("SELECT count(DISTINCT cmin::text) FROM partita.run_inbox") == 1
    assert await rows(other, "workflow_runs") == 0
    await transaction.commit()
    assert run_ids == [request.request_id for request in requests]
    inbox = await other.fetch("SELECT id, run_id, kind, body FROM partita.run_inbox")
    replies = await asyncio.gather(*map(engine.deliver, inbox))
    assert created([reply for reply in replies if isinstance(reply, StartReply)]) == [True] * 50
    assert await rows(other, "run_inbox") == 0
    assert {one.run_id for one in await claim(other)} == set(run_ids)


async def test_what_could_never_be_delivered_keeps_all_of_a_call_out_of_the_transaction(
    engine: Engine, other: Connection
) -> None:
    with pytest.raises(InvalidInputError, match="NUL"):
        await engine.start_many_in(other, [*asked(3), *asked(1, input={"a": "a\0b"})])
    with pytest.raises(InvalidError, match="at most 10,000"):
        await engine.start_many_in(other, asked(1) * (MOST + 1))
    ahead = ids.make_id(ids.to_milliseconds(datetime.now(UTC)) + 10**9, 1)
    with pytest.raises(TooEarlyError):
        await engine.start_many_in(other, asked(1, run_id=ahead))
    assert await engine.start_many_in(other, []) == []
    assert await rows(other, "run_inbox") == 0


async def test_a_start_in_a_transaction_may_be_repeated(engine: Engine, other: Connection) -> None:
    requests = asked(2, run_id=uuid7())
    await engine.start_many_in(other, requests[:1])
    await engine.start_many_in(other, requests[:1])
    inbox = await other.fetch("SELECT id, run_id, kind, body FROM partita.run_inbox")
    replies = await asyncio.gather(*map(engine.deliver, inbox))
    assert sorted(created([reply for reply in replies if isinstance(reply, StartReply)])) == [False, True]
