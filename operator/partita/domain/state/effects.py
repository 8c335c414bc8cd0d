"""What a decision wants written.

Invariant: effects are after-images and row moves, never SQL and never deltas, so that the effects of several events
of one run merge by taking the later image. The shell writes a batch's effects with a constant number of statements.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, NamedTuple
from uuid import UUID

from partita.domain.payload import Payload
from partita.domain.record import record
from partita.domain.state.events import Event, Reply
from partita.domain.state.rows import (
    ErrorInfo,
    NodeKey,
    Parent,
    RunRow,
    SignalRow,
    TaskRow,
    TimerKind,
    TimerRow,
    WaitRow,
)
from partita.domain.state.slices import Need


@record
class Enqueue:
    """A task attempt that is ready for a worker now; its task row carries the input."""

    node: str
    index: int
    attempt: int
    type: str
    queue: str
    priority: int
    timeout_ms: int
    """The attempt's timeout, counted from the claim."""
    schedule_to_start_ms: int | None = None


@record
class TimerKey:
    """A timer to delete."""

    kind: TimerKind
    node: str
    index: int


class ChildWait(NamedTuple):
    """Waits that this run keeps for a node of a subflow's run."""

    child: UUID
    node: str
    index: int  # type: ignore[assignment]  # hides tuple.index, which nobody calls on a key


@record
class Consumed:
    """A buffered signal that a wait took, or refused; ``signal_id`` names its record."""

    signal_id: str
    node: str
    refused: str = ""
    """Why it was refused (it breaks the wait's schema, or came before a wait that ignores earlier ones)."""


@record
class RecordedSignal:
    """A signal to record: unconsumed (buffered), consumed by a node at once, or refused with the reason."""

    row: SignalRow
    consumed_by: str = ""
    refused: str = ""


@record
class HistoryEntry:
    """One line of ``run_history``; an attempt's entry carries worker, start, end and error."""

    seq: int
    event: str
    at: datetime
    node: str = ""
    index: int = 0
    attempt: int = 0
    who: str = ""
    """The worker of an attempt, or who sent a control or signal."""
    started_at: datetime | None = None
    error: ErrorInfo | None = None
    details: Mapping[str, object] | None = None


@record(kw_only=True)
class ChildStart:
    """Start a child run; everything about it is decided, so that starting it twice is starting it once."""

    definition: str
    """Name of the child's definition; for a subflow the parent's own."""
    version: int
    subflow: str = ""
    input: Payload
    parent: Parent | None
    """None: detached."""
    mailbox_id: UUID | None = None
    depth: int
    timeout_ms: int | None = None
    priority: int = 0
    started_by: str = ""


@record
class Message:
    """What another run is to do or to know: a row of ``run_inbox``, inserted by the transaction that causes it and
    deleted by the one that applies it. Messages of one decision are applied in their order."""

    run_id: UUID
    event: Event | ChildStart


@dataclass(slots=True)
class Effects:
    """Everything one event (or several of one run, merged) changes.

    Deletions apply before insertions, so that one key may be in both. When nothing changed, ``run`` is the slice's own
    row. A payload that is None in a task's after-image leaves the stored one as it is.
    """

    run: RunRow
    new_run: bool = False
    input: Payload | None = None
    """The run's input, stored once at its start."""
    output: Payload | None = None
    """The run's output, set when it ends."""
    tasks: dict[NodeKey, TaskRow] = field(default_factory=dict)
    unread: set[NodeKey] = field(default_factory=set)
    """After-images of rows that are stored although the slice does not hold them: items of a loop whose turn came."""
    enqueue: dict[NodeKey, Enqueue] = field(default_factory=dict)
    timers: dict[TimerKey, TimerRow] = field(default_factory=dict)
    """New or moved timers."""
    drop_timers: set[TimerKey] = field(default_factory=set)
    waits: list[WaitRow] = field(default_factory=list)
    drop_waits: set[NodeKey] = field(default_factory=set)
    """Nodes of this run whose own waits are deleted; those that it keeps for a child's node of the same name stay."""
    drop_child_waits: set[ChildWait] = field(default_factory=set)
    """Waits that are deleted although a child's: all alternatives of its node. Names differ from ``drop_waits``, as a
    child's nodes may be called like this run's."""
    drop_work: set[NodeKey] = field(default_factory=set)
    """Nodes whose ready row and lease are deleted (cancelled, or overtaken)."""
    withdraw: bool = False
    """The run is being suspended: ready rows of its queued tasks go, leases stay. At resume every Queued task without
    a lease is enqueued again. The slice was whole, so that the keys of the ready rows are known."""
    clear: bool = False
    """The run ended: ready rows, leases, timers and waits go, in this order. If anything was Queued, the slice was
    whole, and the Cancelled after-images keep the keys of the ready rows."""
    record_signals: list[RecordedSignal] = field(default_factory=list)
    consumed: list[Consumed] = field(default_factory=list)
    history: list[HistoryEntry] = field(default_factory=list)
    messages: list[Message] = field(default_factory=list)
    """To other runs, or to this one when a heavy event goes on in a transaction of its own."""
    visible: bool = False
    """Something that the CR's status shows has changed: project it."""
    urgent: bool = False
    """Phase, condition or waitingFor changed (projected within 100 ms); otherwise only progress."""
    reply: Reply = field(default_factory=Reply)

    def full(self) -> Effects:
        """Effects whose fields may be changed one by one: these, unless they only refer to others (``repeats``)."""
        return self


APPLIED: Final = Reply()


def new_effects(run: RunRow) -> Effects:
    """Effects that change nothing yet. Every decision has its own: the fields are set here one by one, because the
    class's constructor calls a factory for each of its containers, which takes twice as long.
    """
    made = _new(Effects)
    made.run = run
    made.new_run = made.withdraw = made.clear = made.visible = made.urgent = False
    made.input = made.output = None
    made.tasks, made.enqueue, made.timers = {}, {}, {}
    made.unread, made.drop_timers = set(), set()
    made.drop_waits, made.drop_child_waits, made.drop_work = set(), set(), set()
    made.waits, made.record_signals, made.consumed, made.history, made.messages = [], [], [], [], []
    made.reply = APPLIED
    return made


_new: Final = Effects.__new__
Decision = Effects | Need
