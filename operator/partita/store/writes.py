"""Writing a batch: the effects of many runs as one statement a table.

Purpose: gathers rows while effects are added, then sends them. Invariant: the number of statements depends on which
tables are touched and never on how many events there are; what clears a run comes first and goes in the direction
ready_tasks → task_leases → timers → waits, one statement a table; all else is one statement (``together``). Trade-off:
every column of a changed record is sent, changed or not, unless the change is that of an ordinary step.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final, NamedTuple
from uuid import UUID

from partita.domain.state.copies import copy_task
from partita.domain.state.effects import Effects, Enqueue, HistoryEntry
from partita.domain.state.repeats import Pattern, Repeat
from partita.domain.state.rows import ACTIVE, TERMINAL, NodeKey, NodeState, ReadyKey, RunRow, Stage
from partita.domain.state.slices import Slice
from partita.store import columns, repeats, starts, together
from partita.store.columns import Row
from partita.store.database import Connection
from partita.store.places import is_end_of_task, is_step_of_run
from partita.store.sequence import ReadySequence
from partita.store.sql import Sql
from partita.store.starts import NewRun
from partita.store.together import Places, Write

_OWN_PLACES: Final = frozenset({"RunStarted", "RunFinished"})
"""Events whose line of history may be left out."""
_ALONE: Final = (
    "update_runs", "update_tasks", "put_timers", "insert_waits", "insert_signals", "consume_signals",
)  # fmt: skip  # a line a name says no more
"""Seldom needed; a statement each, so that the sets that sessions prepare stay few."""
TOGETHER: Final = (
    "insert_runs", "insert_open_runs", "advance_runs", "settle_tasks", "insert_tasks", "insert_ready", "insert_leases",
    "insert_history", "queue_projection", "delete_open_runs", "ended_runs", "insert_labels", "insert_endings",
)  # fmt: skip  # as above
"""What ordinary steps write, as one statement: none of them touches a row of another. Runs come first, so that it is
them whom another transaction's start of the same run is found by."""
COUNTED: Final = frozenset({"insert_runs", "advance_runs", "settle_tasks"})
"""Updates of rows where they were read: each has to be found there. Inserts that are counted are done in their turn."""
_PLACED: Final = frozenset({"insert_runs", "advance_runs", "insert_tasks"})
"""Rows that the run's next transaction may have to find: of a transaction of one run their places are told."""
_FEW_STARTS: Final = 16
"""New runs that are inserted with all else, by the same statement. More have two of their own."""


class NewLease(NamedTuple):
    """A task that is handed on to a worker instead of being queued."""

    lease_id: UUID
    claim_id: UUID
    worker_id: str
    deadline_at: datetime


@dataclass(frozen=True, slots=True)
class Placed:
    """Where the rows of a transaction of one run stand now."""

    now: datetime
    """The transaction's time."""
    xid: int
    """The transaction's short id, as it stands in the rows."""
    run: bytes
    """The run's row; empty when it was not written as that of an ordinary step."""
    tasks: Mapping[NodeKey, bytes]
    """Those that were inserted."""


@dataclass(frozen=True, slots=True)
class ProjectionDelays:
    """How long a run's changes are gathered before its object's status is written."""

    urgent: timedelta
    progress: timedelta


def _reported(effects: Effects, key: NodeKey) -> bool:
    """Whether the node was settled by its own report, whose fence has deleted the lease."""
    task = effects.tasks.get(key)
    return task is not None and task.state in (NodeState.COMPLETED, NodeState.FAILED)


def _stands_elsewhere(run: RunRow, entry: HistoryEntry) -> bool:
    """Whether a line of history may be left out; the run of a subflow has no row in ``run_endings``."""
    return columns.says_nothing_new(entry) and not (run.subflow and entry.event == "RunFinished")


def _end_of(effects: Effects) -> int:
    """Sequence number of the run's end."""
    for entry in reversed(effects.history):
        if entry.event == "RunFinished":
            return entry.seq
    raise AssertionError("a run ended without a line of history")


@dataclass(slots=True)
class Writes:
    """The rows of one batch, by table."""

    now: datetime
    sequence: ReadySequence
    delays: ProjectionDelays
    grace_ms: int = 0
    """How long messages are left to this process before others deliver them."""
    ids: list[UUID] = field(default_factory=list)
    started: Sequence[NewRun] = ()
    """Runs to insert, whose effects were added as well."""
    runs: list[Row] = field(default_factory=list)
    steps: list[Row] = field(default_factory=list)
    """Runs of which only the columns of an ordinary step change."""
    new_tasks: list[Row] = field(default_factory=list)
    tasks: list[Row] = field(default_factory=list)
    ends: list[Row] = field(default_factory=list)
    """Tasks of which only the columns of their end change."""
    clear_ready: list[Row] = field(default_factory=list)
    clear_leases: list[Row] = field(default_factory=list)
    clear_timers: list[Row] = field(default_factory=list)
    clear_waits: list[Row] = field(default_factory=list)
    ready: list[Row] = field(default_factory=list)
    leases: list[Row] = field(default_factory=list)
    timers: list[Row] = field(default_factory=list)
    waits: list[Row] = field(default_factory=list)
    signals: list[Row] = field(default_factory=list)
    consumed: list[Row] = field(default_factory=list)
    history: list[Row] = field(default_factory=list)
    endings: list[Row] = field(default_factory=list)
    closed: list[UUID] = field(default_factory=list)
    projections: list[Row] = field(default_factory=list)
    messages: list[Row] = field(default_factory=list)
    """Run, kind and body of each, in the order in which they are to be applied."""
    message_ids: list[int] = field(default_factory=list)
    """Their numbers in the inbox, once they are sent."""
    queues: set[str] = field(default_factory=set)
    """Queues that received ready rows."""
    common: dict[Pattern, repeats.Common] = field(default_factory=dict)
    """What repeats have in common."""
    places: Places = field(default_factory=dict)
    """Where rows stand that were written, of a transaction of one run."""

    def add(self, before: Slice, effects: Effects, handed: Mapping[NodeKey, NewLease]) -> None:
        """Gather what the events of one run change; ``before`` is the slice as it was loaded."""
        if type(effects) is not Repeat or not repeats.add(self, before, effects, handed):
            self._add(before, effects, handed)

    def _add(self, before: Slice, effects: Effects, handed: Mapping[NodeKey, NewLease]) -> None:
        run, stored = effects.run, before.run
        self.ids.append(run.id)
        if not effects.new_run and (run is not stored or effects.tasks):  # other rows tell others by the run's own
            if is_step_of_run(stored, run):
                self.steps.append(columns.step_row(run, stored.place, effects.output))
            else:
                self.runs.append(columns.run_row(run, effects.output))
        self._clear(before, effects)
        if effects.enqueue:
            self._enqueue(before, effects, handed)
        self._tasks(before, effects)
        self._mail(effects)
        for entry in effects.history:
            if entry.event not in _OWN_PLACES or not _stands_elsewhere(run, entry):
                self.history.append(columns.history_row(run, entry))
        if run.status in TERMINAL and (before.run is None or before.run.status not in TERMINAL):
            if not run.subflow:
                self.endings.append(columns.ending_row(run, _end_of(effects)))
            if not effects.new_run:
                self.closed.append(run.id)
        if effects.visible and run.cr_uid:
            delay = self.delays.urgent if effects.urgent else self.delays.progress
            self.projections.append((run.id, run.revision, self.now + delay))

    def _clear(self, before: Slice, effects: Effects) -> None:
        run_id = effects.run.id
        if effects.clear or effects.withdraw:
            keys = [key for key, task in before.tasks.items() if task.state is NodeState.QUEUED]
            self._clear_ready(run_id, before, keys)
        if effects.clear:
            self._clear_run(before, effects)
            return
        if effects.drop_work:
            self._clear_ready(run_id, before, effects.drop_work)
            self.clear_leases += [(run_id, key.node, key.index) for key in effects.drop_work]
        if effects.drop_timers:
            self.clear_timers += [(run_id, key.kind.value, key.node, key.index) for key in effects.drop_timers]
        if effects.drop_waits:
            self.clear_waits += [(run_id, key.node, key.index, None) for key in effects.drop_waits]
        if effects.drop_child_waits:
            self.clear_waits += [(run_id, wait.node, wait.index, wait.child) for wait in effects.drop_child_waits]

    def _clear_run(self, before: Slice, effects: Effects) -> None:
        """What an ended run may have left. When all its active nodes were loaded it is known what cannot be there."""
        run_id, run = effects.run.id, before.run
        active = [(key, task.state) for key, task in before.tasks.items() if task.state in ACTIVE]
        unknown = run is None or len(active) != run.active or run.stage is not Stage.MAIN  # rows that undo waits for
        if unknown or any(state is NodeState.QUEUED and not _reported(effects, key) for key, state in active):
            self.clear_leases.append((run_id, None, 0))
        waiting = unknown or any(state is NodeState.WAITING for _, state in active)
        if waiting or before.waits or before.definition.subflows:  # a cancelled child's may be on their way
            self.clear_waits.append((run_id, None, 0, None))
        if waiting or run is None or run.deadline_at is not None or run.deadline_remaining_ms is not None:
            self.clear_timers.append((run_id, None, "", 0))

    def _clear_ready(self, run_id: UUID, before: Slice, keys: list[NodeKey] | set[NodeKey]) -> None:
        for key in keys:
            task = before.tasks.get(key)
            if task is not None and task.ready_key is not None:
                self.clear_ready.append((run_id, key.node, key.index, *task.ready_key))

    def _enqueue(self, before: Slice, effects: Effects, handed: Mapping[NodeKey, NewLease]) -> None:
        run = effects.run
        for key, enqueue in effects.enqueue.items():
            task = effects.tasks.get(key)
            if task is None:
                task = effects.tasks[key] = copy_task(before.tasks[key])
            lease = handed.get(key)
            if lease is None:
                task.ready_key = self._ready(effects, enqueue)
                continue
            task.ready_key = None
            self.leases.append(
                (run.id, lease.lease_id, lease.claim_id, self.now, lease.deadline_at, enqueue.index, enqueue.attempt,
                 run.generation, enqueue.node, lease.worker_id, enqueue.queue, enqueue.type)
            )  # fmt: skip  # the order of the columns, as in the statement

    def _ready(self, effects: Effects, enqueue: Enqueue) -> ReadyKey:
        run = effects.run
        key = self.sequence.key(enqueue.queue, run.namespace, enqueue.priority)
        limit = enqueue.schedule_to_start_ms
        expires = None if limit is None else self.now + timedelta(milliseconds=limit)
        self.ready.append(columns.ready_row(run, enqueue, key, self.now, expires))
        self.queues.add(enqueue.queue)
        return key

    def _tasks(self, before: Slice, effects: Effects) -> None:
        run_id, enqueued, known, unread = effects.run.id, effects.enqueue, before.tasks, effects.unread
        for key, task in effects.tasks.items():
            enqueue, stored = enqueued.get(key), known.get(key)
            if enqueue is None and is_end_of_task(stored, task):
                self.ends.append(columns.end_row(run_id, task, stored.place))
                continue
            row = columns.task_row(run_id, task, None if enqueue is None else enqueue.queue)
            (self.new_tasks if stored is None and key not in unread else self.tasks).append(row)

    def _mail(self, effects: Effects) -> None:
        run_id = effects.run.id
        if effects.timers:
            self.timers += [columns.timer_row(run_id, timer) for timer in effects.timers.values()]
        if effects.waits:
            self.waits += [columns.wait_row(run_id, wait) for wait in effects.waits]
        if effects.record_signals:
            self.signals += [columns.signal_row(run_id, signal, self.now) for signal in effects.record_signals]
        if effects.consumed:
            self.consumed += [(run_id, one.signal_id, one.node, one.refused or None) for one in effects.consumed]

    def start(self, runs: Sequence[NewRun]) -> None:
        """Insert these runs, whose effects are added as well."""
        self.started = runs

    async def send(self, connection: Connection, sql: Sql) -> None:
        """Write everything; raises TakenError when another transaction has started one of the runs."""
        if not self.ids:
            return
        if self.started and not self._start_together():
            await starts.insert_runs(connection, sql, self.started)
            self.started = ()
        low, high = min(self.ids), max(self.ids)
        clears: tuple[tuple[str, list[Row]], ...] = (
            ("clear_ready", self.clear_ready),
            ("clear_leases", self.clear_leases),
            ("clear_timers", self.clear_timers),
            ("clear_waits", self.clear_waits),
        )
        for name, rows in clears:
            if rows:
                await connection.fetch(sql(name), *columns.arrays(rows))
        for write in self._of(_ALONE, low, high):
            await connection.fetch(sql(write.name), *write.values)
        with starts.inserting():
            self.places = await together.send(connection, sql, self._of(TOGETHER, low, high))
        if self.messages:
            self.message_ids = await insert_messages(connection, sql, self.messages, self.grace_ms)

    def at_once(self) -> Sequence[Write] | None:
        """What ``send`` would send, if that is one statement; None if it takes more, or nothing changes."""
        cleared = self.clear_ready, self.clear_leases, self.clear_timers, self.clear_waits
        alone = self.runs, self.tasks, self.timers, self.waits, self.signals, self.consumed, self.messages
        if not self.ids or any(cleared) or any(alone) or (self.started and not self._start_together()):
            return None
        return self._of(TOGETHER, min(self.ids), max(self.ids))

    def placed(self, xid: int) -> Placed:
        """Where the rows stand, of a transaction of one run that has this id and was committed."""
        runs = self.places.get("insert_runs") or self.places.get("advance_runs") or [b""]
        keys = [NodeKey(row[-1], row[1]) for row in self.new_tasks]
        tasks = dict(zip(keys, self.places.get("insert_tasks", ()), strict=True)) if self.places else {}
        return Placed(self.now, xid, runs[0], tasks)

    def _start_together(self) -> bool:
        """Whether the new runs are few and none has ended: the statement that writes its end would not see its row."""
        return len(self.started) <= _FEW_STARTS and all(one.effects.run.status not in TERMINAL for one in self.started)

    def _of(self, names: Sequence[str], low: UUID, high: UUID) -> list[Write]:
        """What there is to write for some of the blocks."""
        bounds = (low, high)
        new_runs, open_runs = starts.rows_of(self.started if "insert_runs" in names else ())
        endings = [()] if self.endings else []
        blocks: dict[str, tuple[Sequence[Row], tuple[object, ...]]] = {
            "insert_runs": (new_runs, ()),
            "insert_open_runs": (open_runs, ()),
            "advance_runs": (self.steps, bounds),
            "settle_tasks": (self.ends, bounds),
            "update_runs": (self.runs, bounds),
            "update_tasks": (self.tasks, bounds),
            "insert_tasks": (self.new_tasks, ()),
            "insert_ready": (self.ready, ()),
            "insert_leases": (self.leases, ()),
            "put_timers": (self.timers, ()),
            "insert_waits": (self.waits, ()),
            "insert_signals": (self.signals, ()),
            "consume_signals": (self.consumed, (self.now, *bounds)),
            "insert_history": (self.history, ()),
            "queue_projection": (self.projections, ()),
            "delete_open_runs": ([(run,) for run in self.closed], ()),
            "ended_runs": (self.endings, bounds),
            "insert_labels": (endings, ()),
            "insert_endings": (endings, ()),
        }
        alone = len(self.ids) == 1
        return [
            Write(
                name,
                (*columns.arrays(rows), *extra),
                len(rows),
                counted=name in COUNTED,
                placed=alone and name in _PLACED,
            )
            for name, (rows, extra) in blocks.items()
            if rows and name in names
        ]


async def insert_messages(connection: Connection, sql: Sql, rows: Sequence[Row], grace_ms: int) -> list[int]:
    """Put messages, (run, kind, body), into inboxes; their numbers. They are due for others after ``grace_ms``."""
    records = await connection.fetch(sql("insert_messages"), *zip(*rows, strict=True), grace_ms)
    return [record[0] for record in records]
