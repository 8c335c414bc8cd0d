"""Undo: what Completed nodes did is reversed, the last one first, one at a time.

Invariant: each row with an ``order`` is undone once, by an undo row of its own. The whole run is read once, when undo
begins: undo rows are made a chunk at a time, each names the next, and the last one keeps the keys of what is left, so
that going on reads one row. Trade-off: those keys are written once a chunk, against reading the run again.

Before the first one, attempts in flight of nodes that can be undone are waited for (the drain): their rows stay as they
are, a success makes them Completed, and an outcome that nobody knows is undone as if it were one.
"""

from __future__ import annotations

from itertools import groupby
from typing import Final, TypeAlias

from partita.domain.error_types import EXPRESSION, INPUT_TOO_LARGE
from partita.domain.errors import InvalidError
from partita.domain.expressions import ExpressionError
from partita.domain.payload import Json, Payload
from partita.domain.state.draft import Draft
from partita.domain.state.effects import TimerKey
from partita.domain.state.events import Reply, UndoContinued
from partita.domain.state.failing import fail, oversize
from partita.domain.state.launching import launch
from partita.domain.state.plan import NodePlan
from partita.domain.state.reading import Lacking
from partita.domain.state.rows import (
    GROUP,
    UNDO,
    Detail,
    ErrorInfo,
    NodeKey,
    NodeState,
    Stage,
    TaskRow,
    TimerKind,
    is_undo,
)
from partita.domain.state.scope import error_view, render

Rest: TypeAlias = tuple[tuple[str, tuple[int, ...]], ...]
_DRAIN: Final = TimerKey(TimerKind.DRAIN, "", 0)
_PAYLOADS: Final = frozenset({"input", "output"})


def in_flight(draft: Draft) -> set[NodeKey]:
    """What undo waits for: leased attempts of nodes that can be undone, since they may yet succeed, and every child,
    since it has its own undo and finally, which come before its parent's. Raises Lacking.
    """
    nodes = draft.plan.nodes
    rows = [row for row in draft.unsettled() if row.index != GROUP]
    queued = {row.key for row in rows if row.state is NodeState.QUEUED and nodes[row.node].undo is not None}
    return {row.key for row in rows if _has_child(row)} | (queued & draft.leased() if queued else set())


def _has_child(row: TaskRow) -> bool:
    return row.state is NodeState.WAITING and row.detail is not None and row.detail.child is not None


def is_due(draft: Draft) -> bool:
    """Whether anything has Completed that can be undone. Raises Lacking."""
    return any(row.detail is not None and row.detail.order for row in draft.rows())


def draining(draft: Draft, plan: NodePlan) -> bool:
    """Whether the node's attempt only runs on because undo waits for what becomes of it."""
    return plan.stage is Stage.MAIN and draft.run.stage is Stage.UNDO


def wait_for_attempts(draft: Draft) -> None:
    """Undo begins when the attempts in flight have ended, or after a while."""
    draft.set_timer(TimerKind.DRAIN, "", draft.limits.drain_ms)


def unknown(draft: Draft, plan: NodePlan, row: TaskRow, error: ErrorInfo) -> None:
    """Nobody can tell what became of the attempt of a row (an image): it is undone, with the output null."""
    row.error = error
    if plan.undo is not None:
        draft.to_undo(row, draft.next_seq())
    draft.settle(plan, row, NodeState.CANCELLED)


def undo_begins(draft: Draft) -> bool:
    """Start with the row that completed last, once nothing is waited for; whether there is any. Raises Lacking."""
    rows = draft.rows()
    if any(is_undo(row.node) for row in rows):
        return False
    before = draft.slice.run
    if before is not None and before.stage is Stage.UNDO:
        draft.effects.timers.pop(_DRAIN, None)
        draft.effects.drop_timers.add(_DRAIN)
    due = [(row.detail.order, row) for row in rows if row.detail is not None and row.detail.order]
    due.sort(key=lambda pair: pair[0], reverse=True)
    _make_chunk(draft, [NodeKey(row.node + UNDO, row.index) for _, row in due])
    return bool(due)


def undo_is_over(draft: Draft) -> bool:
    """Whether every undo row has ended. Raises Lacking."""
    return not any(is_undo(row.node) for row in draft.unsettled())


def _make_chunk(draft: Draft, keys: list[NodeKey]) -> None:
    """Make undo rows, as many as fit a transaction, and start the first; the last one keeps what is left."""
    if not keys:
        return
    chunk, rest = keys[: draft.limits.loop_chunk], keys[draft.limits.loop_chunk :]
    for key, following in zip(chunk, [*chunk[1:], None], strict=True):
        row = draft.make(draft.plan.nodes[key.node], key.index)
        if following is not None:
            row.detail = Detail(undo_next=following)
        elif rest:
            row.detail = Detail(undo_rest=_packed(rest))
    start_undo(draft, chunk[0])


def _packed(keys: list[NodeKey]) -> Rest:
    grouped = groupby(keys, key=lambda key: key.node)
    return tuple((node, tuple(key.index for key in group)) for node, group in grouped)


def _unpacked(rest: Rest) -> list[NodeKey]:
    return [NodeKey(node, index) for node, indexes in rest for index in indexes]


def undone(draft: Draft, row: TaskRow) -> None:
    """An undo row has ended: the next of the chain starts. One that failed is reported and holds up none.

    After one that had no attempt the next starts in a transaction of its own, since a chain of those has no bound.
    Raises Lacking.
    """
    if row.state is NodeState.FAILED:
        draft.note("UndoFailed", key=row.key, error=row.error)
    detail = row.detail
    if detail is None:
        return
    following = detail.undo_next
    if following is None:
        _make_chunk(draft, _unpacked(detail.undo_rest))
    elif row.attempt:
        start_undo(draft, following)
    else:
        draft.send(draft.run.id, UndoContinued(node=following.node, index=following.index))


def undo_continued(draft: Draft, event: UndoContinued) -> None:
    """The next undo row starts. Raises Lacking."""
    key = NodeKey(event.node, event.index)
    plan = draft.plan.nodes.get(key.node)
    row = None if plan is None or plan.undoes is None or draft.terminal else draft.row(key)
    if row is None or row.state is not NodeState.PENDING:
        draft.reply(Reply("stale"))
        return
    draft.begin()
    start_undo(draft, key)


def start_undo(draft: Draft, key: NodeKey) -> None:
    """Begin the first attempt of an undo row; in a suspended run it is parked. Raises Lacking."""
    plan = draft.plan.nodes[key.node]
    row = _row(draft, plan, key)
    image = draft.image(plan, row)
    image.fired = True
    draft.visible()
    if draft.suspended:
        return
    try:
        image.input = _input(draft, plan, key.index)
        error = oversize(draft, image.input, "input", INPUT_TOO_LARGE)
        if error is None:
            launch(draft, plan, image)
    except ExpressionError as problem:
        error = ErrorInfo(EXPRESSION, problem.message)
    except InvalidError as problem:
        error = ErrorInfo(EXPRESSION, str(problem))
    if error is not None:
        fail(draft, plan, image, error)


def _row(draft: Draft, plan: NodePlan, key: NodeKey) -> TaskRow:
    """The undo row; what starting it reads is asked for at the same time."""
    try:
        row = draft.row(key)
    except Lacking:
        if plan.undoes is not None and _reads_payloads(plan):
            draft.lacking().outputs.add(NodeKey(plan.undoes.name, key.index))
        raise
    assert row is not None  # noqa: S101  # made with its chunk
    return row


def _reads_payloads(plan: NodePlan) -> bool:
    template = plan.node.input
    return template is not None and not _PAYLOADS.isdisjoint(template.refs.names)


def _input(draft: Draft, plan: NodePlan, index: int) -> Payload:
    template = plan.node.input
    if template is None:
        return Payload("{}", {})
    return Payload.of(render(draft, plan, template, **_reversed(draft, plan, index)))


def _reversed(draft: Draft, plan: NodePlan, index: int) -> dict[str, Json]:
    """``input``, ``output`` and ``error`` of the row that is undone."""
    assert plan.undoes is not None  # noqa: S101  # of undo rows only
    row = draft.row(NodeKey(plan.undoes.name, index))
    assert row is not None  # noqa: S101  # an undo row reverses a row
    if _reads_payloads(plan) and not (draft.fresh or row.key in draft.slice.outputs):
        draft.lacking().outputs.add(row.key)
        raise Lacking
    return {
        "input": row.input.value if row.input is not None else None,
        "output": row.output.value if row.output is not None else None,
        "error": error_view(row.error),
    }
