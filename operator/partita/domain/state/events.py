"""What may happen to a run.

Invariant: an event says what happened and nothing about what follows; everything it claims about leases and timers has
already been fenced by the shell (the returned row of the delete is the fence), so that ``decide`` need not doubt it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from datetime import datetime
from typing import Literal
from uuid import UUID

from partita.domain.payload import Payload
from partita.domain.record import record
from partita.domain.state.rows import ErrorInfo, Parent, RunStatus, SignalRow, TimerKind


@record(kw_only=True)
class RunStarted:
    """A new run. The input has its defaults applied and fits the schema; the slice's run row is None."""

    run_id: UUID
    namespace: str
    name: str
    definition: str
    version: int
    input: Payload
    priority: int = 0
    timeout_ms: int | None = None
    """The run's own timeout; None takes the definition's."""
    start_at: datetime | None = None
    cr_uid: str = ""
    controls: ControlsApplied | None = None
    """Controls already present on the CR when it was first seen."""
    subflow: str = ""
    parent: Parent | None = None
    mailbox_id: UUID | None = None
    depth: int = 0


@record
class TaskCompleted:
    """A fenced report: the attempt succeeded. ``started_at`` is when it was claimed."""

    node: str
    index: int
    attempt: int
    output: Payload
    worker: str
    started_at: datetime


@record(kw_only=True)
class TaskFailed:
    """A fenced report: the attempt failed."""

    node: str
    index: int
    attempt: int
    error: ErrorInfo
    worker: str
    started_at: datetime
    retryable: bool = False
    """The worker asked for a retry (``Retryable``)."""
    retry_after_ms: int | None = None


@record(kw_only=True)
class LeaseLost:
    """The worker stopped renewing, or handed the attempt back.

    ``handed_back``: a graceful stop; the attempt is queued again without being spent.
    """

    node: str
    index: int
    attempt: int
    worker: str
    started_at: datetime
    handed_back: bool = False


@record(kw_only=True)
class AttemptTimedOut:
    """The attempt's deadline passed while its worker was alive; error type ``timeout``."""

    node: str
    index: int
    attempt: int
    worker: str
    started_at: datetime


@record(kw_only=True)
class LateResult:
    """A report of an attempt whose lease is gone: it is recorded if its node was cancelled, and changes nothing."""

    node: str
    index: int
    attempt: int
    worker: str
    output: Payload | None = None
    error: ErrorInfo | None = None


@record(kw_only=True)
class ScheduleToStartExpired:
    """No worker took the task within ``scheduleToStart``; error type ``schedule_to_start``."""

    node: str
    index: int
    attempt: int


@record(kw_only=True)
class TimerDue:
    """A timer fell due; its row has been deleted."""

    kind: TimerKind
    node: str
    index: int


@record(kw_only=True)
class DeadlineReached:
    """The run's own timeout passed."""


@record(kw_only=True)
class SignalReceived:
    """A signal; ``id`` is unique in the run for ever, so sending it again changes nothing."""

    id: str
    name: str
    payload: Payload
    sender: str = ""


@record(kw_only=True)
class SuspendRequested:
    """Start nothing new; freeze waits and the deadline."""

    by: str = ""


@record(kw_only=True)
class ResumeRequested:
    """Go on, with the time that was left."""

    by: str = ""


@record(kw_only=True)
class CancelRequested:
    """End the run as Cancelled (Graceful: with undo and finally; Now: at once), or cancel some of its nodes."""

    mode: Literal["Graceful", "Now"] = "Graceful"
    nodes: tuple[str, ...] = ()
    """Only these nodes, whatever the mode; their edges die and the run goes on."""
    reason: str = ""
    by: str = ""


@record(kw_only=True)
class ControlsApplied:
    """The controls of one CR generation, applied by their edges against what was applied before.

    A generation at or below the recorded one changes nothing.
    """

    cr_generation: int
    suspend: bool = False
    cancel: CancelRequested | None = None
    cancel_nodes: tuple[str, ...] = ()
    signals: tuple[SignalReceived, ...] = ()


@record(kw_only=True)
class ChildFinished:
    """A child run has ended, or could not be started. ``attempt`` and ``child`` are the fence."""

    node: str
    index: int
    attempt: int
    child: UUID
    status: RunStatus
    output: Payload | None = None
    error: ErrorInfo | None = None
    """The child's root error; of a Cancelled child its type is ``cancelled``."""


@record(kw_only=True)
class LoopContinued:
    """To the run itself: a forEach makes its next items."""

    node: str


@record(kw_only=True)
class ParkedReleased:
    """To the run itself: nodes start that were parked because a decision had spent enough."""

    nodes: tuple[str, ...]
    """In the order in which they start."""


@record(kw_only=True)
class UndoContinued:
    """To the run itself: an undo row begins after one that ended without an attempt."""

    node: str
    index: int


@record(kw_only=True)
class MailboxContinued:
    """To the run itself: buffered signals are handed out, as far as waits stand for them."""


Continued = LoopContinued | ParkedReleased | UndoContinued | MailboxContinued
"""What a run leaves itself: it goes on, in a transaction of its own, where a decision had done enough."""


@record(kw_only=True)
class WaitOpened:
    """To the owner of a mailbox: a node of a subflow's run waits for a signal of any of these names."""

    child: UUID
    subflow: str
    node: str
    index: int
    names: tuple[str, ...]
    """Rendered; the place of a name is that of its alternative. A name that comes twice counts once."""
    place: int = 0
    """The ``seq`` that the wait had before, if it waits on after a signal that was not enough; 0: a new wait."""
    ignore_earlier: bool = False


@record(kw_only=True)
class WaitClosed:
    """To the owner of a mailbox: a node of a subflow's run does not wait any more."""

    child: UUID
    node: str
    index: int


@record(kw_only=True)
class WaitExpired:
    """To the owner of a mailbox: a wait of a subflow's run has reached its timeout; answered with WaitTimedOut unless
    a signal is on its way to it already."""

    child: UUID
    node: str
    index: int


@record(kw_only=True)
class SignalGiven:
    """From the owner of a mailbox: a signal, schema-checked, for a node of this subflow's run. The wait is closed."""

    node: str
    index: int
    signal: SignalRow
    alternative: int
    place: int
    """The wait's ``seq``, with which it may be opened again."""
    names: tuple[str, ...]
    """The names of the wait, as it was opened: with them it is opened again."""


@record(kw_only=True)
class WaitTimedOut:
    """From the owner of a mailbox: no signal came in time. The wait is closed."""

    node: str
    index: int


Event = (
    RunStarted
    | TaskCompleted
    | TaskFailed
    | LateResult
    | LeaseLost
    | AttemptTimedOut
    | ScheduleToStartExpired
    | TimerDue
    | DeadlineReached
    | SignalReceived
    | SuspendRequested
    | ResumeRequested
    | CancelRequested
    | ControlsApplied
    | ChildFinished
    | LoopContinued
    | ParkedReleased
    | UndoContinued
    | MailboxContinued
    | WaitOpened
    | WaitClosed
    | WaitExpired
    | SignalGiven
    | WaitTimedOut
)


@record
class Reply:
    """What the sender of the event is told."""

    outcome: Literal["applied", "already_applied", "stale", "refused"] = "applied"
    reason: str = ""
    """CamelCase reason when refused, such as RunFinished."""
    message: str = ""
    details: Mapping[str, str] = field(default_factory=dict)
    """For ControlsApplied: signal id → Accepted, Consumed or ``Refused: why``."""
