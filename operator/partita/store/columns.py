"""Records as the tuples that a batch's statements take, in the order of their columns.

Invariant: one function a table, and the order of its tuple is the order of the parameters in ``writes.sql`` and
``starts.sql``. Trade-off: order instead of names, since a tuple a row and one ``zip`` a statement cost a tenth of
anything that looks columns up.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final
from uuid import UUID

import orjson

from partita.domain.payload import Payload, encode
from partita.domain.state.effects import Enqueue, HistoryEntry, RecordedSignal
from partita.domain.state.rows import ErrorInfo, ReadyKey, RunRow, RunStatus, TaskRow, TimerRow, WaitRow
from partita.store.details import detail_text

Row = tuple[Any, ...]
_SUCCESS: Final = {"status": RunStatus.SUCCEEDED.value}


def arrays(rows: Sequence[Row]) -> list[Row]:
    """The rows as one array a column. A column that is null in every row becomes an empty array, which costs nothing
    to send and which ``unnest`` fills up with nulls."""
    length = len(rows)
    return [() if column[0] is None and column.count(None) == length else column for column in zip(*rows, strict=True)]


def error_text(error: ErrorInfo | None) -> str | None:
    """An error as it is stored."""
    if error is None:
        return None
    value = {"type": error.type, "message": error.message}
    return encode(value if error.details is None else {**value, "details": error.details.value}, "error")


def _text(payload: Payload | None) -> str | None:
    return None if payload is None else payload.text


def kin_row(run: RunRow) -> Row:
    """``insert_runs``: whose child the run is; all null for a run of its own."""
    parent = run.parent
    place = (None, None, None, None) if parent is None else (parent.run_id, parent.node, parent.index, parent.attempt)
    return (*place, run.mailbox_id, run.depth or None, run.subflow or None)


def step_row(run: RunRow, place: bytes, output: Payload | None) -> Row:
    """``advance_runs``: what an ordinary step changes."""
    return (run.id, place, run.active, run.done, run.seq, run.revision, run.finished_at, run.status, _text(output))


def end_row(run_id: UUID, task: TaskRow, place: bytes) -> Row:
    """``settle_tasks``: what the end of a task changes."""
    return (run_id, place, task.node, task.index, task.finished_at, task.state, _text(task.output))


def run_row(run: RunRow, output: Payload | None) -> Row:
    """``update_runs``: the columns that change."""
    return (
        run.id,
        run.generation,
        run.active,
        run.done,
        run.seq,
        run.revision,
        run.cr_generation,
        run.started_at,
        run.finished_at,
        run.deadline_at,
        run.deadline_remaining_ms,
        run.applied_suspend,
        run.applied_cancel,
        ",".join(run.applied_cancel_nodes) or None,
        run.status,
        run.stage,
        run.reason,
        run.pending_outcome,
        orjson.dumps(dict(run.retry_counts)).decode() if run.retry_counts else None,
        error_text(run.error),
        _text(output),
    )


def task_row(run_id: UUID, task: TaskRow, queue: str | None) -> Row:
    """``insert_tasks`` and ``update_tasks``."""
    lane: int | None = None
    priority: int | None = None
    seq: int | None = None
    if task.ready_key is not None:
        queue, lane, priority, seq = task.ready_key
    return (
        run_id,
        task.index,
        task.attempt,
        task.edges_settled,
        task.edges_live,
        lane,
        priority,
        seq,
        task.queued_at,
        task.first_failed_at,
        task.finished_at,
        task.fired,
        task.stepped_over,
        task.state,
        orjson.dumps(dict(task.retries)).decode() if task.retries else None,
        None if task.route is None else ",".join(task.route),
        _text(task.output),
        error_text(task.error),
        _text(task.event),
        _text(task.input),
        None if task.detail is None else detail_text(task.detail),
        queue,
        task.kind,
        task.node,
    )


def ready_row(run: RunRow, enqueue: Enqueue, key: ReadyKey, now: datetime, expires_at: datetime | None) -> Row:
    """``insert_ready``."""
    return (
        run.id,
        key.seq,
        now,
        expires_at,
        enqueue.timeout_ms,
        enqueue.index,
        enqueue.attempt,
        run.generation,
        key.lane,
        key.priority,
        key.queue,
        run.namespace,
        enqueue.node,
        enqueue.type,
    )


def history_row(run: RunRow, entry: HistoryEntry) -> Row:
    """``insert_history``."""
    return (
        run.id,
        entry.seq,
        run.generation,
        entry.at,
        entry.started_at,
        entry.index if entry.node else None,
        entry.attempt or None,
        entry.event,
        entry.node or None,
        entry.who or None,
        error_text(entry.error),
        None if entry.details is None else encode(entry.details, "details"),
    )


def says_nothing_new(entry: HistoryEntry) -> bool:
    """Whether a line of history says only what ``workflow_runs`` or ``run_endings`` say: two lines of every run.
    ``reads.history`` puts them back."""
    if entry.event == "RunStarted":
        return True
    return entry.event == "RunFinished" and entry.error is None and entry.details == _SUCCESS


def timer_row(run_id: UUID, timer: TimerRow) -> Row:
    """``put_timers``."""
    return (run_id, timer.fire_at, timer.remaining_ms, timer.index, timer.kind, timer.node)


def wait_row(run_id: UUID, wait: WaitRow) -> Row:
    """``insert_waits``."""
    return (
        run_id,
        wait.since,
        wait.seq,
        wait.index,
        wait.name,
        wait.node,
        wait.child,
        wait.subflow or None,
        wait.alternative or None,
    )


def signal_row(run_id: UUID, signal: RecordedSignal, now: datetime) -> Row:
    """``insert_signals``."""
    row = signal.row
    return (
        run_id,
        row.seq,
        row.created_at,
        now if signal.consumed_by else None,
        signal.consumed_by or None,
        signal.refused or None,
        row.id,
        row.name,
        row.sender,
        row.payload.text,
    )


def ending_row(run: RunRow, seq: int) -> Row:
    """``insert_endings``."""
    return (
        run.id,
        run.finished_at,
        run.generation,
        seq,
        run.status,
        run.namespace,
        run.definition,
        run.name,
        run.reason,
    )
