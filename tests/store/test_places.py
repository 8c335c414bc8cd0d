"""Rows are updated where they were read, and only by the columns of an ordinary step when no others differ."""

from __future__ import annotations

from dataclasses import fields
from datetime import UTC, datetime
from typing import Any, Final
from uuid import UUID

import pytest

from partita.domain.ids import make_id, to_milliseconds
from partita.domain.payload import Payload
from partita.domain.state.copies import copy_run, copy_task
from partita.domain.state.rows import NodeState, RunRow, RunStatus, TaskRow
from partita.store import columns, slices
from partita.store.database import Database
from partita.store.errors import MovedError
from partita.store.places import PlacedRun, PlacedTask, is_end_of_task, is_step_of_run
from partita.store.sequence import ReadySequence
from partita.store.slices import TaskRequest
from partita.store.sql import Sql
from partita.store.writes import ProjectionDelays, Writes
from tests.store.records import insert, insert_run

NOW: Final = datetime(2031, 6, 1, tzinfo=UTC)
RUN: Final = UUID(int=1)
PLACE: Final = b"\0\0\0\0\0\x01"
CONSTANT: Final = {
    RunRow: {
        "id", "namespace", "name", "definition", "version", "total", "priority", "cr_uid", "subflow", "parent",
        "mailbox_id", "depth", "created_at",
    },
    TaskRow: {"node", "index", "kind"},
}  # fmt: skip  # a line a name says no more
"""Written when the row is inserted and never again."""


def placed_run() -> PlacedRun:
    run = PlacedRun(
        id=RUN, namespace="n", name="", definition="d", version=1, status=RunStatus.RUNNING, created_at=NOW
    )  # fmt: skip
    run.place = PLACE
    return run


def placed_task() -> PlacedTask:
    task = PlacedTask(node="a", kind="task", state=NodeState.QUEUED)
    task.place = PLACE
    return task


@pytest.mark.parametrize("name", [one.name for one in fields(RunRow) if one.name not in CONSTANT[RunRow]])
def test_no_change_of_a_run_is_left_out(name: str) -> None:
    before = placed_run()
    after = copy_run(before)
    assert is_step_of_run(before, after)
    row = columns.step_row(after, PLACE, None)
    setattr(after, name, object())
    assert not is_step_of_run(before, after) or columns.step_row(after, PLACE, None) != row


@pytest.mark.parametrize("name", [one.name for one in fields(TaskRow) if one.name not in CONSTANT[TaskRow]])
def test_no_change_of_a_task_is_left_out(name: str) -> None:
    before = placed_task()
    after = copy_task(before)
    assert is_end_of_task(before, after)
    row = columns.end_row(RUN, after, PLACE)
    setattr(after, name, Payload.of("changed"))
    assert not is_end_of_task(before, after) or columns.end_row(RUN, after, PLACE) != row


def test_what_was_not_read_has_no_place() -> None:
    run, task = placed_run(), placed_task()
    assert not is_step_of_run(None, run)
    assert not is_step_of_run(copy_run(run), run)
    assert not is_end_of_task(None, task)
    assert not is_end_of_task(copy_task(task), task)


async def stored(database: Database) -> UUID:
    """A run with one task, a and index 0."""
    run_id = make_id(to_milliseconds(await database.clock()), 7)
    await insert_run(database, run_id, status="Running")
    await insert(database, "task_instances", run_id=run_id, index=0, state="Queued", kind="task", node="a", queue="q")
    return run_id


async def test_rows_are_changed_where_they_were_read(database: Database) -> None:
    run_id = await stored(database)
    dedicated, sql = database.dedicated("test"), database.sql
    async with dedicated.transaction() as connection:
        run = (await slices.load_runs(connection, sql, [run_id])).runs[run_id].row
        ((_, task),) = await slices.load_tasks(connection, sql, [TaskRequest(run_id, "a", 0, payload=True)])
        assert isinstance(task, PlacedTask)
        run_after, task_after = copy_run(run), copy_task(task)
        run_after.done, task_after.state, task_after.output = 1, NodeState.COMPLETED, Payload.of(5)
        await send(connection, "advance_runs", columns.step_row(run_after, run.place, None))
        await send(connection, "settle_tasks", columns.end_row(run_id, task_after, task.place))
    async with dedicated.transaction() as connection:
        assert (await slices.load_runs(connection, sql, [run_id])).runs[run_id].row == run_after_as_read(run, done=1)
        ((_, again),) = await slices.load_tasks(connection, sql, [TaskRequest(run_id, "a", 0, payload=True)])
        assert (again.state, again.output) == (NodeState.COMPLETED, Payload.of(5))
        with pytest.raises(MovedError, match="changed 0 rows; expected 1"):
            await send(connection, "settle_tasks", columns.end_row(run_id, task_after, task.place))
    await dedicated.close()


def run_after_as_read(run: PlacedRun, **changes: Any) -> PlacedRun:
    """The run as it is read back."""
    after = PlacedRun(**{one.name: getattr(run, one.name) for one in fields(RunRow)} | changes)
    after.place = run.place
    return after


async def send(connection: Any, name: str, row: columns.Row) -> None:
    """One row, by the statement of this name."""
    one = Writes(NOW, ReadySequence(NOW), ProjectionDelays(NOW - NOW, NOW - NOW))
    one.ids.append(row[0])
    (one.steps if name == "advance_runs" else one.ends).append(row)
    await one.send(connection, Sql("partita"))
