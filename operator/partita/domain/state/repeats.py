"""Ends of plain tasks that repeat one another: the first of a kind is decided, the others are read off it.

Purpose: in a batch of hundreds of reports most end the same node of runs that stand alike; what follows differs in ids,
workers and outputs only. Invariant: a repeat equals the decision that it saves, field by field, which a test compares
and which each pattern has to show of itself before it is used; so only ends are repeated that evaluate nothing, read no
row but their own, and tell no other run. Trade-off: what counts as plain is written here a second time; whatever is not
known to be plain is decided.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any, Final

from partita.domain.state.copies import copy_run, copy_task
from partita.domain.state.effects import APPLIED, Effects, Enqueue, HistoryEntry, new_effects
from partita.domain.state.events import TaskCompleted
from partita.domain.state.plan import NodePlan, plan_of
from partita.domain.state.rows import NodeKey, NodeState, RunRow, RunStatus, Stage, TaskRow
from partita.domain.state.slices import Context, Slice


@dataclass(slots=True, eq=False)
class Pattern:
    """What the ends of one kind come to."""

    plan: NodePlan
    now: datetime
    ended: bool
    """The run ends with it."""
    urgent: bool
    status: RunStatus
    active: int
    done: int
    seq: int
    revision: int
    finished_at: datetime | None
    started: dict[NodeKey, TaskRow]
    """New rows: the nodes that follow."""
    enqueue: dict[NodeKey, Enqueue]
    line: int
    """Sequence number of the line of history that tells of the task's end."""
    lines: tuple[HistoryEntry, ...]
    """The lines after it."""


class Repeat(Effects):
    """The effects of an end that repeats another one.

    Whoever knows of repeats reads the four fields below and changes nothing; for all others the usual fields are made
    when one of them is asked for.
    """

    __slots__ = ("before", "event", "pattern", "row")
    pattern: Pattern
    before: RunRow
    """The run as it was read."""
    row: TaskRow
    """The task's row as it was read."""
    event: TaskCompleted

    def __getattr__(self, name: str) -> Any:
        """Called for what has not been set: the usual fields are filled in, all at once."""
        if name not in _FIELDS:
            raise AttributeError(name)
        full = self.full()
        for field in _FIELDS:
            setattr(self, field, getattr(full, field))
        return getattr(self, name)

    def full(self) -> Effects:
        """Effects of the usual kind."""
        return spelled_out(self.pattern, self.before, self.row, self.event)


_FIELDS: Final = frozenset(field.name for field in fields(Effects))
_new: Final = Repeat.__new__


def kind_of(slice_: Slice, run: RunRow, event: TaskCompleted) -> Hashable | None:
    """What an end has in common with those that it may repeat; None when it must be decided by itself."""
    plan = plan_of(slice_.definition).nodes.get(event.node)
    if plan is None or not plan.plain or event.index != plan.key.index or not _is_plain(run):
        return None
    row = slice_.tasks.get(plan.key)
    if row is None or row.state is not NodeState.QUEUED or row.attempt != event.attempt:
        return None
    if row.detail is not None or row.route is not None or row.stepped_over:
        return None
    return plan, run.active, run.done, run.seq, run.revision, run.priority


def _is_plain(run: RunRow) -> bool:
    """Whether nothing but its counts decides what comes next, and nobody else is to be told of it."""
    if run.status is not RunStatus.RUNNING or run.stage is not Stage.MAIN:
        return False
    if run.pending_outcome or run.reason or run.subflow or run.applied_cancel_nodes:
        return False
    return run.error is None and run.parent is None and run.mailbox_id is None


def repeat(slice_: Slice, run: RunRow, event: TaskCompleted, context: Context, kind: Hashable) -> Repeat | None:
    """The effects of an end of this kind if one was decided before; None when it has to be decided."""
    pattern: Pattern | None = context.patterns.get(kind)
    if pattern is None or event.output.size() > context.limits.output_bytes:
        return None
    made = _new(Repeat)
    made.pattern, made.before, made.event = pattern, run, event
    made.row = slice_.tasks[pattern.plan.key]
    made.reply, made.messages = APPLIED, []  # asked for by everyone
    return made


def remember(
    slice_: Slice, run: RunRow, event: TaskCompleted, context: Context, kind: Hashable, effects: Effects
) -> None:
    """Keep what was decided for an end of this kind, if it can be repeated."""
    if kind in context.patterns:
        return
    plan = plan_of(slice_.definition).nodes[event.node]
    pattern, row = _pattern(plan, effects, context.now), slice_.tasks[plan.key]
    faithful = pattern is not None and spelled_out(pattern, run, row, event) == effects
    context.patterns[kind] = pattern if faithful else None


def _pattern(plan: NodePlan, effects: Effects, now: datetime) -> Pattern | None:
    run, lines = effects.run, effects.history
    if not lines:
        return None
    return Pattern(
        plan=plan,
        now=now,
        ended=effects.clear,
        urgent=effects.urgent,
        status=run.status,
        active=run.active,
        done=run.done,
        seq=run.seq,
        revision=run.revision,
        finished_at=run.finished_at,
        started={key: copy_task(row) for key, row in effects.tasks.items() if key != plan.key},
        enqueue=dict(effects.enqueue),
        line=lines[0].seq,
        lines=tuple(lines[1:]),
    )


def line_of(pattern: Pattern, event: TaskCompleted) -> HistoryEntry:
    """The line of history that tells of the task's end."""
    node, index = pattern.plan.key
    return HistoryEntry(
        pattern.line, "TaskCompleted", pattern.now, node, index, event.attempt, event.worker, event.started_at
    )


def spelled_out(pattern: Pattern, before: RunRow, row: TaskRow, event: TaskCompleted) -> Effects:
    """The effects of an end of this kind as a decision of its own would have made them."""
    run = copy_run(before)
    run.status, run.active, run.done, run.seq = pattern.status, pattern.active, pattern.done, pattern.seq
    run.revision, run.finished_at = pattern.revision, pattern.finished_at
    task = copy_task(row)
    task.state, task.output, task.error, task.finished_at = NodeState.COMPLETED, event.output, None, pattern.now
    effects = new_effects(run)
    effects.tasks[pattern.plan.key] = task
    for key, started in pattern.started.items():
        effects.tasks[key] = copy_task(started)
    effects.enqueue.update(pattern.enqueue)
    effects.history = [line_of(pattern, event), *pattern.lines]
    effects.visible, effects.urgent, effects.clear = True, pattern.urgent, pattern.ended
    return effects
