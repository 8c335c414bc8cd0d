"""``decide``: what one event does to one run.

Invariant: pure. The same slice, event and context give the same effects; the slice is left as it was; time comes from
the context and chance from nowhere. An event that is late, stale or repeated gives effects that change nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from partita.domain.errors import NotFoundError
from partita.domain.state.attempts import (
    attempt_timed_out,
    lease_lost,
    schedule_to_start_expired,
    task_completed,
    task_failed,
)
from partita.domain.state.child_ends import child_finished
from partita.domain.state.controls import apply_controls, cancel, resume, suspend
from partita.domain.state.draft import Draft
from partita.domain.state.edges import propagate
from partita.domain.state.effects import Decision, Effects
from partita.domain.state.events import (
    AttemptTimedOut,
    CancelRequested,
    ChildFinished,
    ControlsApplied,
    DeadlineReached,
    Event,
    LateResult,
    LeaseLost,
    LoopContinued,
    MailboxContinued,
    ParkedReleased,
    Reply,
    ResumeRequested,
    RunStarted,
    ScheduleToStartExpired,
    SignalGiven,
    SignalReceived,
    SuspendRequested,
    TaskCompleted,
    TaskFailed,
    TimerDue,
    UndoContinued,
    WaitClosed,
    WaitExpired,
    WaitOpened,
    WaitTimedOut,
)
from partita.domain.state.late_results import late_result
from partita.domain.state.lifecycle import deadline_reached, new_run, run_started, timer_due
from partita.domain.state.loops import loop_continued
from partita.domain.state.mailbox import hand_out, receive
from partita.domain.state.parking import parked_released
from partita.domain.state.reading import Lacking
from partita.domain.state.repeats import kind_of, remember, repeat
from partita.domain.state.rows import RunRow
from partita.domain.state.shared_mailbox import signal_given, wait_closed, wait_expired, wait_opened, wait_timed_out
from partita.domain.state.slices import Context, Slice
from partita.domain.state.undo import undo_continued


def decide(slice_: Slice, event: Event, context: Context) -> Decision:
    """What the event changes, or which rows have to be loaded to tell.

    Raises NotFoundError for an event on a run that does not exist. With a ``whole`` slice at most two more rounds are
    asked for: one for the mailbox, and one for the outputs and the input.
    """
    run = slice_.run
    if run is None:
        if not isinstance(event, RunStarted):
            raise NotFoundError(f"{type(event).__name__}: the run does not exist")
        run = new_run(event, slice_.definition, context.now)
    elif type(event) is TaskCompleted:
        return _end_of_task(slice_, run, event, context)
    return _decided(slice_, run, event, context)


def _end_of_task(slice_: Slice, run: RunRow, event: TaskCompleted, context: Context) -> Decision:
    """Most events of most batches are ends of tasks, and most of these repeat one another."""
    kind = kind_of(slice_, run, event)
    if kind is None:
        return _decided(slice_, run, event, context)
    found = repeat(slice_, run, event, context, kind)
    if found is not None:
        return found
    decision = _decided(slice_, run, event, context)
    if isinstance(decision, Effects):
        remember(slice_, run, event, context, kind, decision)
    return decision


def _decided(slice_: Slice, run: RunRow, event: Event, context: Context) -> Decision:
    draft = Draft(slice_, context, run)
    try:  # noqa: SIM105  # suppress() takes three times as long, on the path of every event
        _HANDLERS[type(event)](draft, event)
    except Lacking:
        pass
    return draft.seal() if draft.need is None else draft.need


def _signal_received(draft: Draft, event: SignalReceived) -> None:
    draft.reply(receive(draft, event))
    propagate(draft)


def _loop_continued(draft: Draft, event: LoopContinued) -> None:
    loop_continued(draft, event)
    propagate(draft)


def _parked_released(draft: Draft, event: ParkedReleased) -> None:
    parked_released(draft, event)
    propagate(draft)


def _undo_continued(draft: Draft, event: UndoContinued) -> None:
    undo_continued(draft, event)
    propagate(draft)


def _mailbox_continued(draft: Draft, _event: MailboxContinued) -> None:
    if draft.terminal:
        draft.reply(Reply("stale"))
        return
    hand_out(draft)
    propagate(draft)


_HANDLERS: Mapping[type, Callable[[Draft, Any], None]] = {  # Any: each handler takes the type of its key
    RunStarted: run_started,
    TaskCompleted: task_completed,
    TaskFailed: task_failed,
    LeaseLost: lease_lost,
    AttemptTimedOut: attempt_timed_out,
    ScheduleToStartExpired: schedule_to_start_expired,
    TimerDue: timer_due,
    DeadlineReached: deadline_reached,
    SignalReceived: _signal_received,
    SuspendRequested: suspend,
    ResumeRequested: resume,
    CancelRequested: cancel,
    ControlsApplied: apply_controls,
    ChildFinished: child_finished,
    LateResult: late_result,
    WaitOpened: wait_opened,
    WaitClosed: wait_closed,
    WaitExpired: wait_expired,
    SignalGiven: signal_given,
    WaitTimedOut: wait_timed_out,
    LoopContinued: _loop_continued,
    ParkedReleased: _parked_released,
    UndoContinued: _undo_continued,
    MailboxContinued: _mailbox_continued,
}
