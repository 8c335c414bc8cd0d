"""After-images: shallow copies of rows that a decision may change, and new rows.

Invariant: a copy has every field of its original, a new row every default (a test compares both). The fields are
written out because this runs for each changed row of each event: ``dataclasses.replace`` and ``copy.copy`` take five to
ten times as long.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from partita.domain.state.rows import NodeKey, NodeState, RunRow, TaskRow

_NO_RETRIES: Final[Mapping[str, int]] = {}
_new_run = RunRow.__new__
_new_task = TaskRow.__new__


def copy_run(row: RunRow) -> RunRow:
    """A run row that may be changed."""
    copy = _new_run(RunRow)
    copy.id = row.id
    copy.namespace = row.namespace
    copy.name = row.name
    copy.definition = row.definition
    copy.version = row.version
    copy.status = row.status
    copy.stage = row.stage
    copy.generation = row.generation
    copy.revision = row.revision
    copy.seq = row.seq
    copy.reason = row.reason
    copy.active = row.active
    copy.done = row.done
    copy.total = row.total
    copy.priority = row.priority
    copy.error = row.error
    copy.pending_outcome = row.pending_outcome
    copy.deadline_at = row.deadline_at
    copy.deadline_remaining_ms = row.deadline_remaining_ms
    copy.cr_uid = row.cr_uid
    copy.cr_generation = row.cr_generation
    copy.applied_suspend = row.applied_suspend
    copy.applied_cancel = row.applied_cancel
    copy.applied_cancel_nodes = row.applied_cancel_nodes
    copy.subflow = row.subflow
    copy.parent = row.parent
    copy.mailbox_id = row.mailbox_id
    copy.depth = row.depth
    copy.created_at = row.created_at
    copy.started_at = row.started_at
    copy.finished_at = row.finished_at
    copy.retry_counts = row.retry_counts
    return copy


def new_task(key: NodeKey, kind: str) -> TaskRow:
    """A task row of a node to which nothing has happened; it may be changed."""
    made = _new_task(TaskRow)
    made.node, made.index = key
    made.kind = kind
    made.state = NodeState.PENDING
    made.attempt = made.edges_settled = made.edges_live = 0
    made.fired = made.stepped_over = False
    made.route = made.first_failed_at = made.ready_key = None
    made.retries = _NO_RETRIES
    made.input = made.output = made.error = made.event = made.detail = None
    made.queued_at = made.finished_at = None
    return made


def copy_task(row: TaskRow) -> TaskRow:
    """A task row that may be changed."""
    copy = _new_task(TaskRow)
    copy.node = row.node
    copy.index = row.index
    copy.kind = row.kind
    copy.state = row.state
    copy.attempt = row.attempt
    copy.edges_settled = row.edges_settled
    copy.edges_live = row.edges_live
    copy.fired = row.fired
    copy.route = row.route
    copy.stepped_over = row.stepped_over
    copy.retries = row.retries
    copy.first_failed_at = row.first_failed_at
    copy.ready_key = row.ready_key
    copy.input = row.input
    copy.output = row.output
    copy.error = row.error
    copy.event = row.event
    copy.detail = row.detail
    copy.queued_at = row.queued_at
    copy.finished_at = row.finished_at
    return copy
