"""Rows of ends that repeat one another: what is the same in all of them is made once a batch.

Invariant: the rows are those that ``Writes.add`` would gather for the same effects spelled out, which a test compares;
whatever stands apart (a row that was not read by this transaction, a task that is queued, a run that may leave
something behind) is left to it. Trade-off: the order of columns is relied on here as in ``columns``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, NamedTuple
from uuid import UUID

from partita.domain.state.effects import Enqueue
from partita.domain.state.repeats import Pattern, Repeat
from partita.domain.state.rows import ACTIVE, NodeKey, NodeState, RunRow, TaskRow
from partita.domain.state.slices import Slice
from partita.store import columns
from partita.store.columns import Row, says_nothing_new
from partita.store.places import PlacedRun, PlacedTask

if TYPE_CHECKING:
    from partita.store.writes import NewLease, Writes

_COMPLETED: Final = NodeState.COMPLETED
_NOBODY: Final = UUID(int=0)


class Started(NamedTuple):
    """A node that follows, as rows without what belongs to one run."""

    key: NodeKey
    attempt: int
    queue: str
    type: str
    columns: Row
    """Of its task row, all but the first."""


class Common(NamedTuple):
    """What the rows of one pattern have in common."""

    usual: bool
    """All rows are known; otherwise they are gathered in the usual way."""
    step: Row
    """Columns of ``advance_runs`` after the run's place."""
    started: tuple[Started, ...]


def add(writes: Writes, before: Slice, one: Repeat, handed: Mapping[NodeKey, NewLease]) -> bool:
    """Gather the rows of a repeat; False when they have to be gathered in the usual way."""
    pattern, run, row = one.pattern, one.before, one.row
    if not isinstance(run, PlacedRun) or not isinstance(row, PlacedTask) or row.error is not None:
        return False
    if len(handed) != len(pattern.enqueue) or (pattern.ended and not _is_known(before, run)):
        return False
    if not pattern.started.keys().isdisjoint(before.tasks):
        return False
    common = writes.common.get(pattern)
    if common is None:
        common = writes.common[pattern] = _common(pattern)
    if common.usual:
        _gather(writes, one, run, row, common, handed)
    return common.usual


def _gather(
    writes: Writes, one: Repeat, run: PlacedRun, row: PlacedTask, common: Common, handed: Mapping[NodeKey, NewLease]
) -> None:
    pattern, event = one.pattern, one.event
    run_id, generation, now = run.id, run.generation, pattern.now
    node, index = pattern.plan.key
    writes.ids.append(run_id)
    writes.steps.append((run_id, run.place, *common.step))
    writes.ends.append((run_id, row.place, node, index, now, _COMPLETED, event.output.text))
    for started in common.started:
        (name, item), attempt, queue, type_, rest = started
        lease = handed[started.key]
        writes.new_tasks.append((run_id, *rest))
        writes.leases.append(
            (run_id, lease.lease_id, lease.claim_id, now, lease.deadline_at, item, attempt, generation, name,
             lease.worker_id, queue, type_)
        )  # fmt: skip  # the order of the columns, as in the statement
    writes.history.append(
        (run_id, pattern.line, generation, now, event.started_at, index, event.attempt or None, "TaskCompleted", node,
         event.worker or None, None, None)
    )  # fmt: skip  # as above
    if pattern.ended:
        _end(writes, pattern, run, row)
    if run.cr_uid:
        delay = writes.delays.urgent if pattern.urgent else writes.delays.progress
        writes.projections.append((run_id, pattern.revision, writes.now + delay))


def _common(pattern: Pattern) -> Common:
    step = (pattern.active, pattern.done, pattern.seq, pattern.revision, pattern.finished_at, pattern.status, None)
    started = [_started(key, enqueue, pattern.started[key]) for key, enqueue in pattern.enqueue.items()]
    usual = len(pattern.started) == len(started) and all(says_nothing_new(line) for line in pattern.lines)
    return Common(usual, step, tuple(started))


def _started(key: NodeKey, enqueue: Enqueue, task: TaskRow) -> Started:
    rest = columns.task_row(_NOBODY, task, enqueue.queue)[1:]
    return Started(key, enqueue.attempt, enqueue.queue, enqueue.type, rest)


def _is_known(before: Slice, run: RunRow) -> bool:
    """Whether a run that ends with this task can have left neither leases nor waits."""
    active = [one for one in before.tasks.values() if one.state in ACTIVE]
    return len(active) == run.active == 1 and not before.waits and not before.definition.subflows


def _end(writes: Writes, pattern: Pattern, run: RunRow, row: TaskRow) -> None:
    """As ``Writes.add`` does for a run that has ended."""
    run_id = run.id
    if row.ready_key is not None:
        writes.clear_ready.append((run_id, row.node, row.index, *row.ready_key))
    if run.deadline_at is not None or run.deadline_remaining_ms is not None:
        writes.clear_timers.append((run_id, None, "", 0))
    writes.endings.append(
        (run_id, pattern.finished_at, run.generation, pattern.seq, pattern.status, run.namespace, run.definition,
         run.name, run.reason)
    )  # fmt: skip  # the order of the columns, as in ``columns.ending_row``
    writes.closed.append(run_id)
