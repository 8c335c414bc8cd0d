"""What a batch locks and reads: rows of the database as the records that decisions are made on.

Purpose: statement 1 and the loads after it. Invariant: ``lock_runs`` reads nothing that is decided upon; everything
else here is read after it, in the same transaction. Trade-off: rows are mapped by position, in the order that the
statements name the columns, and fields are set one by one, because names and a constructor with two dozen keywords
cost more than the statement itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

import orjson

from partita.domain.payload import Payload
from partita.domain.record import record
from partita.domain.state.rows import (
    ErrorInfo,
    NodeKey,
    NodeState,
    Parent,
    ReadyKey,
    RunStatus,
    SignalRow,
    Stage,
    TaskRow,
    TimerKind,
    TimerRow,
    WaitRow,
)
from partita.domain.state.slices import DefinitionName
from partita.store.database import Connection
from partita.store.details import detail_of
from partita.store.places import PlacedRun, PlacedTask
from partita.store.sql import Sql

_STATES = {state.value: state for state in NodeState}
_STATUSES = {status.value: status for status in RunStatus}
_STAGES = {stage.value: stage for stage in Stage}
_TIMERS = {kind.value: kind for kind in TimerKind}
_NONE: dict[str, int] = {}
_new_run = PlacedRun.__new__
_new_task = PlacedTask.__new__
_STATE = 5
"""Columns of ``load_runs`` before the run's own."""
_ID, _DEFINITION, _VERSION = 6, 7, 10
"""Columns of ``load_runs`` with the ids of run and definition, and its version."""


@record
class StoredRun:
    """A run's row, with what only the shell needs of it."""

    row: PlacedRun
    definition_id: UUID
    start_request_id: UUID


@dataclass(slots=True)
class Loaded:
    """The answer of ``load_runs``."""

    now: datetime
    """The database's clock, read after the locks were taken."""
    xid: str
    """This transaction's id, with which the outcome of an unanswered COMMIT can be asked for."""
    paused: bool
    oldest_protocol: int
    retention_floor: datetime
    runs: dict[UUID, StoredRun] = field(default_factory=dict)
    startable: set[tuple[UUID, int]] = field(default_factory=set)
    """Those of the versions that were asked for, (id, version), that may be started now."""


@dataclass(slots=True)
class Mailbox:
    """A run's timers, waits, leases and unconsumed signals."""

    timers: list[TimerRow] = field(default_factory=list)
    waits: list[WaitRow] = field(default_factory=list)
    leased: set[NodeKey] = field(default_factory=set)
    signals: list[SignalRow] = field(default_factory=list)


class TaskRequest(NamedTuple):
    """One task row to load."""

    run_id: UUID
    node: str
    item: int
    payload: bool


class AskedVersion(NamedTuple):
    """A version of a definition that is to be started."""

    definition_id: UUID
    version: int
    exact: bool
    """Named by its number: it need not be deployed."""


async def lock_runs(connection: Connection, sql: Sql, ids: Sequence[UUID], *, wait: bool = False) -> set[UUID]:
    """Lock those of the runs that exist and that no one else holds; with ``wait``, wait for the others."""
    text = sql("lock_runs_waiting" if wait else "lock_runs")
    return {record[0] for record in await connection.fetch(text, ids, min(ids), max(ids))}


async def load_runs(
    connection: Connection, sql: Sql, ids: Sequence[UUID], versions: Sequence[AskedVersion] = ()
) -> Loaded:
    """The clock, the engine's state, those of the runs that exist and those of the versions that may be started."""
    asked = zip(*versions, strict=True) if versions else ((), (), ())
    state, *records = await connection.fetch(sql("load_runs"), ids, min(ids), max(ids), *asked)
    loaded = Loaded(*tuple(state)[:_STATE])
    for row in records:
        run_id = row[_ID]
        if run_id is None:
            loaded.startable.add((row[_DEFINITION], row[_VERSION]))
        else:
            loaded.runs[run_id] = run_of(row)
    return loaded


async def load_tasks(connection: Connection, sql: Sql, wanted: Sequence[TaskRequest]) -> list[tuple[UUID, TaskRow]]:
    """Those of the task rows that exist."""
    runs, nodes, indexes, payloads = zip(*wanted, strict=True)
    records = await connection.fetch(sql("load_tasks"), runs, nodes, indexes, payloads, min(runs), max(runs))
    return [(record[0], task_of(record)) for record in records]


async def load_whole_runs(connection: Connection, sql: Sql, ids: Sequence[UUID]) -> list[tuple[UUID, TaskRow]]:
    """Every task row of these runs, without payloads."""
    records = await connection.fetch(sql("load_whole_runs"), ids, min(ids), max(ids))
    return [(record[0], task_of(record)) for record in records]


async def load_inputs(
    connection: Connection, sql: Sql, ids: Sequence[UUID]
) -> dict[UUID, tuple[Payload, Payload | None]]:
    """The inputs of these runs, and their outputs where they have been evaluated."""
    records = await connection.fetch(sql("load_inputs"), ids, min(ids), max(ids))
    return {
        record[0]: (Payload.parse(record[1] or "null"), None if record[2] is None else Payload.parse(record[2]))
        for record in records
    }


async def load_mailboxes(connection: Connection, sql: Sql, ids: Sequence[UUID]) -> dict[UUID, Mailbox]:
    """Timers, waits, leases and unconsumed signals of these runs."""
    boxes = {run_id: Mailbox() for run_id in ids}
    for run, kind, node, index, fire_at, remaining in await connection.fetch(sql("load_timers"), ids):
        boxes[run].timers.append(TimerRow(_TIMERS[kind], node, index, fire_at, remaining))
    for run, name, seq, node, index, since, child, subflow, alternative in await connection.fetch(
        sql("load_waits"), ids
    ):
        boxes[run].waits.append(WaitRow(name, seq, node, index, since, child, subflow or "", alternative or 0))
    for run, node, index in await connection.fetch(sql("load_leased"), ids):
        boxes[run].leased.add(NodeKey(node, index))
    for run, id_, name, seq, payload, sender, at in await connection.fetch(
        sql("load_signals"), ids, min(ids), max(ids)
    ):
        boxes[run].signals.append(SignalRow(id_, name, seq, Payload.parse(payload), sender, at))
    return boxes


async def seen_signals(connection: Connection, sql: Sql, sent: Iterable[tuple[UUID, str]]) -> set[tuple[UUID, str]]:
    """Which of these signals, by run and id, were recorded before."""
    runs, ids = zip(*sent, strict=True)
    records = await connection.fetch(sql("seen_signals"), runs, ids, min(runs), max(runs))
    return {(record[0], record[1]) for record in records}


async def child_versions(
    connection: Connection, sql: Sql, wanted: Sequence[tuple[str, DefinitionName]]
) -> dict[tuple[str, DefinitionName], int]:
    """The versions that children of these definitions, by namespace and name, would be started with now; 0: none."""
    places, names, versions = zip(*((space, name.name, name.version) for space, name in wanted), strict=True)
    records = await connection.fetch(sql("child_versions"), places, names, versions)
    return {(record[0], DefinitionName(record[1], record[2])): record[3] for record in records}


def error_of(text: str | None) -> ErrorInfo | None:
    """An error as it is stored; ``{type, message, details}``."""
    if text is None:
        return None
    value = orjson.loads(text)
    details = Payload.of(value["details"]) if "details" in value else None
    return ErrorInfo(value["type"], value["message"], details)


def run_of(record: Iterable[Any]) -> StoredRun:
    """A row of ``load_runs``, or the same columns of another statement."""
    row = _new_run(PlacedRun)
    (
        _, _, _, _, _, row.place, row.id, definition_id, request_id, row.created_at, row.version, row.priority,
        row.total, row.generation, row.active, row.done, row.seq, row.revision, row.cr_generation, row.started_at,
        row.finished_at, row.deadline_at, row.deadline_remaining_ms, row.applied_suspend, row.applied_cancel, status,
        stage, row.reason, row.pending_outcome, retries, error, row.namespace, row.name, row.definition, cr_uid,
        cancelled, parent_id, parent_node, parent_index, parent_attempt, row.mailbox_id, depth, subflow,
    ) = record  # fmt: skip  # one line a name would hide the order, which is what matters here
    row.status = _STATUSES[status]
    row.stage = _STAGES[stage]
    row.retry_counts = orjson.loads(retries) if retries else _NONE
    row.error = None if error is None else error_of(error)
    row.cr_uid = cr_uid or ""
    row.applied_cancel_nodes = () if cancelled is None else tuple(cancelled)
    row.parent = None if parent_id is None else Parent(parent_id, parent_node, parent_index, parent_attempt)
    row.depth = depth or 0
    row.subflow = subflow or ""
    return StoredRun(row, definition_id, request_id)


def task_of(record: Iterable[Any]) -> TaskRow:
    """A row of ``load_tasks``, or the same columns of another statement."""
    row = _new_task(PlacedTask)
    (
        _, row.place, row.node, row.index, row.kind, state, row.attempt, row.edges_settled, row.edges_live, row.fired,
        row.stepped_over, route, retries, row.first_failed_at, queue, lane, priority, seq, row.queued_at,
        row.finished_at, error, detail, output, event, input_,
    ) = record  # fmt: skip  # as above
    row.state = _STATES[state]
    row.route = None if route is None else tuple(route)
    row.retries = orjson.loads(retries) if retries else _NONE
    row.ready_key = None if seq is None else ReadyKey(queue, lane, priority, seq)
    row.error = None if error is None else error_of(error)
    row.input = None if input_ is None else Payload.parse(input_)
    row.output = None if output is None else Payload.parse(output)
    row.event = None if event is None else Payload.parse(event)
    row.detail = None if detail is None else detail_of(detail)
    return row
