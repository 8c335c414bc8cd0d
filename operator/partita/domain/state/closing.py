"""How a run leaves its stages: main, then undo, then finally, then the end.

Invariant: the status and reason are fixed before a stage is left (see ``ending``); nothing of a stage is unsettled when
the next one begins, but for attempts that undo waits for; after the end no ready row, lease, timer or wait is left. A
suspended run leaves main and begins what follows, in which everything is parked.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from typing import Final

from partita.domain.error_types import CANCELLED, TIMEOUT
from partita.domain.state.draft import Draft
from partita.domain.state.effects import TimerKey
from partita.domain.state.ending import end_settled, finally_failed
from partita.domain.state.events import ChildFinished
from partita.domain.state.node_cancels import cancel_node
from partita.domain.state.nodes import start
from partita.domain.state.reading import Lacking
from partita.domain.state.releasing import cancel_quietly, hurry_children, let_go, mark_cancelled, release
from partita.domain.state.rows import (
    SETTLED,
    TERMINAL,
    ErrorInfo,
    NodeKey,
    NodeState,
    RunStatus,
    Stage,
    TimerKind,
    coming,
)
from partita.domain.state.undo import in_flight, is_due, undo_begins, undo_is_over, unknown, wait_for_attempts

_RUN_ENDED: Final = ErrorInfo(CANCELLED, "the run ended before this node did")
_NONE: Final[frozenset[NodeKey]] = frozenset()


def advance(draft: Draft) -> bool:
    """Leave the run's stage if it is over; whether there are edges to follow now. Raises Lacking."""
    run = draft.run
    if draft.need is not None or run.status in TERMINAL:
        return False
    if run.stage is Stage.MAIN:
        if not draft.ended:
            if run.done < draft.plan.main_total:
                return False
            end_settled(draft)
        return _leave_main(draft)
    if draft.ended:
        return _finish(draft)
    return _go_on_undoing(draft) if run.stage is Stage.UNDO else _finish_finally(draft)


def _leave_main(draft: Draft) -> bool:
    undoing, waited_for = _undo_is_needed(draft)
    if not undoing and (draft.at_once or not draft.plan.finally_roots):
        return _finish(draft)
    if draft.run.done < draft.plan.main_total:
        _cancel_unsettled(draft, waited_for)
    _begin_closing(draft)
    if not undoing:
        return _begin_finally(draft)
    _enter(draft, Stage.UNDO, "UndoStarted")
    if waited_for:
        wait_for_attempts(draft)
    return True


def _undo_is_needed(draft: Draft) -> tuple[bool, AbstractSet[NodeKey]]:
    """Whether the stage undo comes, and what it waits for: also a run that has nothing to undo does not tell others of
    its end in finally before its children have ended.
    """
    undoable = draft.plan.undoable
    if draft.at_once or not (undoable or draft.plan.finally_roots) or coming(draft.run)[0] is RunStatus.SUCCEEDED:
        return False, _NONE
    waited_for = in_flight(draft) if draft.run.done < draft.plan.main_total else _NONE
    return bool(waited_for) or (undoable and is_due(draft)), waited_for


def _begin_closing(draft: Draft) -> None:
    """The run's own deadline ends with main; a run that never began begins with what follows."""
    run = draft.run
    if run.deadline_at is not None or run.deadline_remaining_ms is not None:
        _drop_timer(draft, TimerKind.DEADLINE)
        run.deadline_at = run.deadline_remaining_ms = None
    if run.started_at is None:
        _drop_timer(draft, TimerKind.START)
        run.started_at = draft.now
        if run.status is RunStatus.PENDING:
            run.status = RunStatus.RUNNING


def _drop_timer(draft: Draft, kind: TimerKind) -> None:
    key = TimerKey(kind, "", 0)
    draft.effects.timers.pop(key, None)
    draft.effects.drop_timers.add(key)


def _enter(draft: Draft, stage: Stage, event: str) -> None:
    run = draft.run
    status, reason = coming(run)
    run.stage = stage
    draft.ended = False
    draft.note(event, key=draft.cause, error=run.error, details=_details(status, reason))
    draft.visible(urgent=True)


def _go_on_undoing(draft: Draft) -> bool:
    """The first undo row, once nothing is waited for; what follows, once the last has ended."""
    if draft.run.active or draft.suspended:
        return False
    if undo_begins(draft):
        return True
    if not undo_is_over(draft):
        return False
    return _begin_finally(draft) if draft.plan.finally_roots else _finish(draft)


def drain_over(draft: Draft) -> bool:
    """Undo has waited long enough: what has not ended is undone too. False if it waits no more. Raises Lacking."""
    plans = draft.plan.nodes
    waiting = draft.run.stage is Stage.UNDO and not draft.terminal
    late = [row for row in draft.unsettled() if plans[row.node].stage is Stage.MAIN] if waiting else []
    if late:
        draft.begin()
        draft.note("TimerDue", details={"kind": TimerKind.DRAIN.value})
    written = {name: position for position, name in enumerate(plans)}
    for row in sorted(late, key=lambda one: (written[one.node], one.index)):
        image = draft.image(plans[row.node], row)
        if row.state is NodeState.QUEUED:
            release(draft, plans[row.node], image)
        unknown(draft, plans[row.node], image, _RUN_ENDED)
    return bool(late)


def _begin_finally(draft: Draft) -> bool:
    _enter(draft, Stage.FINALLY, "FinallyStarted")
    final = draft.plan.definition.finally_
    if final is not None and final.timeout_ms is not None:
        begin_deadline(draft, final.timeout_ms)
    for name in draft.run.applied_cancel_nodes:
        plan = draft.plan.nodes[name]
        if plan.stage is Stage.FINALLY:
            cancel_node(draft, plan, ErrorInfo(CANCELLED, "the node was cancelled before its stage began"))
    for plan in draft.plan.finally_roots:
        try:
            if plan.name not in draft.run.applied_cancel_nodes:
                start(draft, plan, None)
        except Lacking:
            continue
    return True


def begin_deadline(draft: Draft, timeout_ms: int) -> None:
    """Let the deadline of the run, or of its stage finally, begin to count; not while the run is suspended."""
    run = draft.run
    draft.set_timer(TimerKind.DEADLINE, "", timeout_ms)
    if draft.suspended:
        run.deadline_remaining_ms = timeout_ms
    else:
        run.deadline_at = draft.effects.timers[TimerKey(TimerKind.DEADLINE, "", 0)].fire_at
        run.deadline_remaining_ms = None


def _finish_finally(draft: Draft) -> bool:
    """The end, once every node of finally has settled; while none is active some may be parked."""
    if draft.run.active or not _all_settled(draft):
        return False
    return _finish(draft)


def _all_settled(draft: Draft) -> bool:
    plans = [plan for plan in draft.plan.nodes.values() if plan.stage is Stage.FINALLY]
    rows = [draft.row(plan.key) for plan in plans]
    return all(row is not None and row.state in SETTLED for row in rows)


def finally_deadline(draft: Draft) -> None:
    """The stage finally took longer than its timeout: what runs of it is cancelled. Raises Lacking."""
    finally_failed(draft, ErrorInfo(TIMEOUT, "finally did not end within its timeout"))
    draft.stop()


def _cancel_unsettled(draft: Draft, waited_for: AbstractSet[NodeKey] = _NONE) -> None:
    """Cancel what has not settled, giving back all that it holds; what undo waits for runs on."""
    for row in draft.unsettled():
        plan = draft.plan.nodes[row.node]
        if row.key in waited_for:
            let_go(draft, plan, row)
        else:
            cancel_quietly(draft, plan, draft.image(plan, row), _RUN_ENDED)


def _finish(draft: Draft) -> bool:
    """The run ends now; what it holds goes as a whole."""
    run, effects = draft.run, draft.effects
    if draft.ended and (run.stage is not Stage.MAIN or run.done < draft.plan.main_total):
        for row in draft.unsettled():
            plan = draft.plan.nodes[row.node]
            image = draft.image(plan, row)
            let_go(draft, plan, image, "Now" if draft.at_once else "Graceful")
            mark_cancelled(draft, plan, image, _RUN_ENDED)
    if draft.at_once:
        hurry_children(draft)
    effects.enqueue.clear()
    effects.timers.clear()
    effects.waits.clear()
    effects.clear = True
    run.status, run.reason = coming(run)
    run.pending_outcome = ""
    run.active = 0
    run.finished_at = draft.now
    draft.ended = True
    draft.note("RunFinished", key=draft.cause, error=run.error, details=_details(run.status, run.reason))
    draft.visible(urgent=True)
    _tell_parent(draft)
    return False


def _details(status: RunStatus, reason: str) -> dict[str, object]:
    return {"status": status.value, "reason": reason} if reason else {"status": status.value}


def _tell_parent(draft: Draft) -> None:
    """A child has ended for good: the row that waits for it is told how."""
    run = draft.run
    parent = run.parent
    if parent is not None:
        output = None
        if run.status is RunStatus.SUCCEEDED:  # in main it has been evaluated just now
            output = draft.effects.output if run.stage is Stage.MAIN else draft.output()
        event = ChildFinished(
            node=parent.node,
            index=parent.index,
            attempt=parent.attempt,
            child=run.id,
            status=run.status,
            output=output,
            error=run.error,
        )
        draft.send(parent.run_id, event)
