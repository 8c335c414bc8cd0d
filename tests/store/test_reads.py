"""Reads for people, on rows written directly."""

from __future__ import annotations

from datetime import datetime, timedelta
from uuid import UUID, uuid4

import pytest

from partita.domain.errors import NotFoundError
from partita.domain.ids import Month, make_id, time_of, to_milliseconds
from partita.domain.payload import Payload
from partita.domain.state.rows import RunStatus
from partita.store import reads
from partita.store.database import Database
from partita.store.sql import blocks
from partita.store.views import HistoryView, WaitingView
from tests.store.records import end_run, insert, insert_run, open_run


@pytest.fixture
async def now(database: Database) -> datetime:
    """The database's clock, somewhat later than the month's start so that the hour before belongs to the month."""
    return max(await database.clock(), Month.of(await database.clock()).start + timedelta(hours=2))


async def make(database: Database, at: datetime, status: str = "Succeeded", **columns: object) -> UUID:
    """A run with the rows that its status needs."""
    run_id = make_id(to_milliseconds(at), uuid4().int)
    await insert_run(database, run_id, status=status, **columns)
    namespace, definition = str(columns.get("namespace", "shop")), str(columns.get("definition", "order"))
    if status in {"Succeeded", "Failed", "Cancelled"}:
        await end_run(database, run_id, status, namespace=namespace, definition=definition)
    else:
        await open_run(database, run_id, namespace=namespace, definition=definition)
    return run_id


async def test_a_run_is_read_with_all_that_belongs_to_it(database: Database, now: datetime) -> None:
    run_id = await make(
        database,
        now,
        "Running",
        tags='["eu"]',
        attributes='{"team": "red"}',
        context_json='{"input": {"n": 1}, "config": {}}',
        output_json='{"ok": true}',
        error_json='{"type": "timeout", "message": "too slow", "details": [1]}',
    )
    for node, state in (("pay", "Queued"), ("ship", "Pending"), ("ask", "Waiting")):
        await insert(database, "task_instances", run_id=run_id, node=node, kind="task", state=state, queue="default")
    await insert(
        database, "task_leases", run_id=run_id, node="pay", index=0, attempt=1, generation=0, lease_id=uuid4(),
        claim_id=uuid4(), claimed_at=now, deadline_at=now, worker_id="w1", queue="default", type="charge-card",
    )  # fmt: skip
    await insert(database, "waits", run_id=run_id, since=now, seq=1, index=0, name="approval", node="ask")
    await insert(database, "timers", run_id=run_id, fire_at=now, index=0, kind="eventTimeout", node="ask")
    await insert(database, "workflow_events", run_id=run_id, seq=1, created_at=now, id="s1", name="x", payload="[2]")
    detail = await reads.get_run(database, run_id)
    run = detail.run
    assert (run.id, run.status, run.tags, run.attributes) == (run_id, RunStatus.RUNNING, ("eu",), {"team": "red"})
    assert run.input is not None
    assert run.output is not None
    assert run.error is not None
    assert (run.input.value, run.output.value) == ({"n": 1}, {"ok": True})
    assert (run.error.type, run.error.message, run.error.details and run.error.details.value) == (
        "timeout",
        "too slow",
        [1],
    )
    assert {node.node: (node.state, node.worker) for node in detail.nodes} == {
        "pay": ("Running", "w1"),
        "ship": ("Pending", ""),
        "ask": ("Waiting", ""),
    }
    assert [(wait.node, wait.name) for wait in detail.waits] == [("ask", "approval")]
    assert [(timer.kind, timer.fire_at) for timer in detail.timers] == [("eventTimeout", now)]
    assert [(signal.id, signal.payload.value) for signal in detail.signals] == [("s1", [2])]
    assert await reads.waiting(database, [run_id]) == {run_id: (WaitingView("signal", "approval", "ask", None),)}


async def test_an_unknown_run_is_not_found(database: Database, now: datetime) -> None:
    with pytest.raises(NotFoundError, match="its month has been dropped"):
        await reads.get_run(database, make_id(to_milliseconds(now), 1))
    with pytest.raises(NotFoundError, match="shop/none"):
        await reads.find_run(database, "shop", "none")


async def test_a_name_means_the_unfinished_run_before_the_newest_finished_one(
    database: Database, now: datetime
) -> None:
    old = await make(database, now + timedelta(seconds=1), "Failed")
    new = await make(database, now + timedelta(seconds=2), "Succeeded")
    await database.read(lambda c: c.execute("UPDATE partita.run_endings SET name = 'a'"))
    assert await reads.find_run(database, "shop", "a") == new
    running = await make(database, now, "Running")
    await database.read(lambda c: c.execute("UPDATE partita.open_runs SET name = 'a'"))
    assert await reads.find_run(database, "shop", "a") == running
    assert old != new


async def test_history_is_read_in_pages(database: Database, now: datetime) -> None:
    run_id = await make(database, now)
    error = '{"type":"t","message":"m"}'
    for seq in range(2, 6):
        await insert(database, "run_history", run_id=run_id, seq=seq, at=now, event="TaskFailed", error=error)
    for limit in (1, 3, 6):
        lines: list[HistoryView] = []
        while page := await reads.history(database, run_id, after=lines[-1].seq if lines else 0, limit=limit):
            assert len(page) <= limit
            lines += page
        assert [line.seq for line in lines] == [1, 2, 3, 4, 5, 6]
    assert lines[1].error is not None
    assert (lines[1].error.type, lines[1].who, lines[1].index) == ("t", "", 0)


async def test_history_tells_start_and_success_without_rows_of_their_own(database: Database, now: datetime) -> None:
    done, failed, begun = [await make(database, now, status) for status in ("Succeeded", "Failed", "Running")]
    created = (await reads.get_run(database, done)).run.created_at
    first, last = await reads.history(database, done)
    assert (first.event, first.seq, first.at, first.generation, first.who) == ("RunStarted", 1, created, 0, "")
    assert (last.event, last.seq, last.at, last.node, last.error) == ("RunFinished", 6, time_of(done), "", None)
    assert last.details == Payload.of({"status": "Succeeded"})
    for run_id in (failed, begun):  # how a run failed has a row of its own, with the error
        assert [line.event for line in await reads.history(database, run_id)] == ["RunStarted"]
    await insert(database, "run_history", run_id=begun, seq=1, at=now, event="SomethingElse")
    assert [line.event for line in await reads.history(database, begun)] == ["SomethingElse"]


async def test_definitions_are_listed_by_their_newest_version(database: Database) -> None:
    for name, version, deployed in (("a", 1, True), ("a", 2, False), ("b", 1, True), ("c", 1, False)):
        await insert(
            database, "workflow_definitions", id=UUID(int=ord(name)), version=version, namespace="shop", name=name,
            spec_json="{}", content_hash=f"h{version}", deployed=deployed,
        )  # fmt: skip
    await database.read(
        lambda c: c.execute("UPDATE partita.workflow_definitions SET deleted_at = now() WHERE name = 'c'")
    )
    found = await reads.definitions(database, "shop")
    assert [(each.name, each.version, each.deployed) for each in found] == [("a", 2, 1), ("b", 1, 1)]
    assert [each.name for each in await reads.definitions(database, after=("shop", "a"), deleted=True)] == ["b", "c"]
    assert len(await reads.definitions(database, limit=1)) == 1


async def test_queues_and_workers(database: Database, now: datetime) -> None:
    await insert(
        database, "workers", id="w1", expires_at=now + timedelta(days=9), protocol=1, slots=4, queues=["q1", "q2"]
    )
    await insert(database, "workers", id="w2", expires_at=now - timedelta(days=9), protocol=1, slots=4, queues=["q3"])
    clock = await database.clock()
    for seconds in (5, 50):
        await insert(
            database, "ready_tasks", run_id=uuid4(), seq=1, enqueued_at=clock - timedelta(seconds=seconds),
            timeout_ms=1, index=0, attempt=1, generation=0, lane=0, priority=0, queue="q1", namespace="shop",
            node="a", type="t",
        )  # fmt: skip
    found = {queue.queue: queue for queue in await reads.queues(database)}
    assert set(found) == {"q1", "q2"}
    assert (found["q1"].depth, found["q1"].workers, found["q2"].depth) == (2, 1, 0)
    assert 50 <= found["q1"].oldest_seconds < 120
    listed = await reads.workers(database)
    assert [(worker.id, worker.alive, worker.queues, worker.held) for worker in listed] == [
        ("w1", True, ("q1", "q2"), 0),
        ("w2", False, ("q3",), 0),
    ]


def test_no_list_skips_rows_or_counts_runs() -> None:
    for block in blocks().values():
        if block.source.startswith(("reads.sql", "lists.sql")):
            text = block.text.upper().replace("OFFSET 0)", "")
            for edge in ("OFFSET $3 - 1 LIMIT 1", "OFFSET 7 LIMIT 1"):  # the last row of a window of bounded size
                text = text.replace(edge, "")
            assert "OFFSET" not in text, block.name
            text = block.text.replace("count(*) < $3", "")  # whether a window of at most $3 ids is full
            assert "count(" not in text or block.name in {"queues", "workers_page", "list_count"}, block.name
