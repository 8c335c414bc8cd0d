"""What a decision wants written, and what it still has to read.

Invariant: effects are after-images and row moves, never SQL and never deltas, so that the effects of several events
of one run merge by taking the later image. The shell writes a batch's effects with a constant number of statements.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from partita.domain.expressions.limits import VISITS
from partita.domain.model import Definition
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


class DefinitionName(NamedTuple):
    """A definition of the run's namespace; version None is the deployed one."""

    name: str
    version: int | None = None


@dataclass(slots=True)
class Slice:
    """The part of one run that was loaded. ``decide`` never changes it; ``absorb`` makes the next one.

    ``whole`` says that every task row (small columns) of the run is here; otherwise a key in neither ``tasks`` nor
    ``absent`` was not looked up. ``outputs`` holds the payloads that were asked for, by key: a task row's ``output``,
    ``input`` and ``event`` are filled only for those. Timers, waits and unconsumed signals are whole when not None.
    """

    definition: Definition
    run: RunRow | None
    input: Payload | None = None
    tasks: dict[NodeKey, TaskRow] = field(default_factory=dict)
    absent: set[NodeKey] = field(default_factory=set)
    whole: bool = False
    outputs: set[NodeKey] = field(default_factory=set)
    """Keys whose payload columns are loaded."""
    timers: list[TimerRow] | None = None
    waits: list[WaitRow] | None = None
    signals: list[SignalRow] | None = None
    leased: set[NodeKey] | None = None
    """Nodes with a live lease; loaded with the mailbox."""
    seen_signal_ids: set[str] = field(default_factory=set)
    """Ids recorded before, among those that the batch's events carry."""
    versions: dict[DefinitionName, int] = field(default_factory=dict)
    """Versions that were looked up; 0 where there is none that may be started."""
    output: Payload | None = None
    """The run's output if it has been evaluated; loaded with the input."""


@dataclass(slots=True)
class Need:
    """Rows that a decision lacks. The shell loads them for the whole batch and decides again."""

    rows: set[NodeKey] = field(default_factory=set)
    outputs: set[NodeKey] = field(default_factory=set)
    """Rows with their payloads; a key need not be in ``rows`` as well."""
    input: bool = False
    whole: bool = False
    """Every task row's small columns."""
    mailbox: bool = False
    """This run's timers, waits, leases and unconsumed signals, and which of the events' signal ids are recorded."""
    versions: set[DefinitionName] = field(default_factory=set)
    """Definitions of this namespace of which children are to be started."""

    def __bool__(self) -> bool:
        return bool(self.rows or self.outputs or self.input or self.whole or self.mailbox or self.versions)

    def merge(self, other: Need) -> None:
        """Add what another decision of the same run lacks."""
        self.rows |= other.rows
        self.outputs |= other.outputs
        self.input |= other.input
        self.whole |= other.whole
        self.mailbox |= other.mailbox
        self.versions |= other.versions


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


Decision = Effects | Need


@record
class Limits:
    """Bounds that decisions obey; the shell fills them from the settings."""

    output_bytes: int = 1_048_576
    attempt_timeout_ms: int = 300_000
    lost_leases: int = 10
    unknown_types: int = 10
    asked_retries: int = 3
    signals_buffered: int = 10_000
    signals_bytes: int = 16_777_216
    """Of the payloads of signals that wait to be taken."""
    child_depth: int = 50
    loop_items: int = 10_000
    loop_chunk: int = 500
    """Items of a forEach that one transaction makes."""
    visits: int = VISITS
    """What the expressions of one decision may spend before it leaves the rest to a transaction of its own."""
    drain_ms: int = 60_000
    """How long undo waits for attempts in flight."""
    undo_tries: int = 5
    """Tries of an undo task whose definition has no default retry."""
    error_message: int = 4_096
    """Characters of an error's message that are kept."""


@record
class Context:
    """What a decision may know besides the slice."""

    now: datetime
    """The database's clock, read after the run was locked."""
    limits: Limits = field(default_factory=Limits)
