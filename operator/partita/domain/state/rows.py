"""The records that a decision is made on, shaped like the columns that hold them.

Invariant: rows are never changed in place once they are in a slice; ``decide`` makes after-images. They carry no
behaviour. The trade-off is copying a small object for each changed row, against ever having to ask whether a decision
that was discarded has left traces.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from typing import Final, NamedTuple
from uuid import UUID

from partita.domain.payload import Payload
from partita.domain.record import record

GROUP: Final = -1
"""Index of the row that stands for a whole forEach or repeat; its items and iterations count from 0."""
UNDO: Final = "~undo"
"""Ends the name of the row that reverses a node: ``charge~undo``, with the index of the row that it reverses."""


class NodeKey(NamedTuple):
    """A row of a run: a node, or with ``index`` an item or iteration of a loop (GROUP: the loop itself)."""

    node: str
    index: int = 0  # type: ignore[assignment]  # hides tuple.index, which nobody calls on a key


def is_undo(node: str) -> bool:
    """Whether rows of this name reverse rows of another."""
    return node.endswith(UNDO)


class RunStatus(StrEnum):
    """A run's status, spelled as people see it (the CR's ``phase``)."""

    PENDING = "Pending"
    RUNNING = "Running"
    SUSPENDED = "Suspended"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"
    CANCELLED = "Cancelled"


TERMINAL = frozenset({RunStatus.SUCCEEDED, RunStatus.FAILED, RunStatus.CANCELLED})


class Stage(StrEnum):
    """The part of a run that executes: its nodes, then what reverses them, then what runs after every end."""

    MAIN = "main"
    UNDO = "undo"
    FINALLY = "finally"


class NodeState(StrEnum):
    """A node's recorded state. ``Running`` is never recorded: it is a Queued task with a live lease."""

    PENDING = "Pending"
    QUEUED = "Queued"
    WAITING = "Waiting"
    COMPLETED = "Completed"
    FAILED = "Failed"
    SKIPPED = "Skipped"
    CANCELLED = "Cancelled"


SETTLED = frozenset({NodeState.COMPLETED, NodeState.FAILED, NodeState.SKIPPED, NodeState.CANCELLED})
ACTIVE = frozenset({NodeState.QUEUED, NodeState.WAITING})


class TimerKind(StrEnum):
    """What falls due when a timer fires."""

    WAIT = "wait"
    """A wait node's time has come."""
    EVENT_TIMEOUT = "eventTimeout"
    """A waitForEvent waited long enough."""
    BACKOFF = "backoff"
    """A failed attempt may be tried again."""
    DEADLINE = "deadline"
    """The run's own timeout; node is empty."""
    START = "start"
    """The run's ``startAt``; node is empty."""
    DELAY = "delay"
    """The next iteration of a repeat may start."""
    DRAIN = "drain"
    """Undo has waited long enough for attempts in flight; node is empty."""


@record
class ErrorInfo:
    """An error as expressions and people see it: ``{type, message, details}``."""

    type: str
    message: str
    details: Payload | None = None


@record
class Parent:
    """The row of another run that waits for this one."""

    run_id: UUID
    node: str
    index: int
    attempt: int


@dataclass(slots=True, kw_only=True)
class RunRow:
    """``workflow_runs``: small columns only; the input and the output are loaded when a decision needs them."""

    id: UUID
    namespace: str
    name: str
    """The CR's name; empty for a run without a CR, which is called by its id."""
    definition: str
    """The definition's name."""
    version: int
    status: RunStatus
    stage: Stage = Stage.MAIN
    generation: int = 0
    """Retry round; part of every fence."""
    revision: int = 0
    """Grows with every change that people can see; the projector's fence."""
    seq: int = 0
    """Last sequence number used in ``run_history``, or to order waits and signals."""
    reason: str = ""
    """CamelCase reason of a terminal status, such as NodeFailed or DeadlineExceeded."""
    active: int = 0
    """Nodes that are Queued or Waiting."""
    done: int = 0
    """Settled nodes."""
    total: int = 0
    """Nodes of the definition."""
    priority: int = 0
    error: ErrorInfo | None = None
    pending_outcome: str = ""
    """The status and reason with which the run will end, such as ``Failed/NodeFailed`` (see ``coming``): in the stages
    undo and finally, and in main with failFast false once a node has failed."""
    deadline_at: datetime | None = None
    deadline_remaining_ms: int | None = None
    """What is left of the deadline while it does not run: the run is suspended, or has not started yet."""
    cr_uid: str = ""
    """UID of the WorkflowRun object; empty for a run without a CR."""
    cr_generation: int = 0
    """The CR's metadata.generation that was last applied."""
    applied_suspend: bool = False
    """The ``suspend`` of the last applied CR generation: controls act on its edges."""
    applied_cancel: bool = False
    applied_cancel_nodes: tuple[str, ...] = ()
    """Nodes that were cancelled by their names, whoever asked: a name acts once."""
    subflow: str = ""
    """The subflow of the definition that this run executes; empty for the definition itself."""
    parent: Parent | None = None
    """Who waits for this run; None for a run of its own, also for a detached child."""
    mailbox_id: UUID | None = None
    """The run whose signals this one waits for: the root of a tree of subflows; None: its own."""
    depth: int = 0
    """Ancestors, detached ones included."""
    created_at: datetime
    started_at: datetime | None = None
    finished_at: datetime | None = None
    retry_counts: Mapping[str, int] = field(default_factory=dict)
    """Reserved for controls with counters (the CR's ``retry``)."""


def coming(run: RunRow) -> tuple[RunStatus, str]:
    """The status and reason that are fixed; Succeeded if none are."""
    if not run.pending_outcome:
        return RunStatus.SUCCEEDED, ""
    status, _, reason = run.pending_outcome.partition("/")
    return RunStatus(status), reason


@record
class Loop:
    """Where a forEach or repeat stands; on its group row, written as absolute values under the run's lock."""

    total: int
    """Items; 0 for a repeat."""
    born: int = 0
    """Rows made so far, from index 0."""
    next: int = 0
    """The first index that has not started."""
    running: int = 0
    """Parts that are Queued or Waiting; those that a suspension keeps from starting are not."""
    completed: int = 0
    failed: int = 0
    closing: str = ""
    """Why no further item starts while some are in flight: ``joined`` or ``failed``; empty while it goes on."""
    keyed: bool = False
    """The items are those of an object."""
    faulty: int = 0
    """Items made and not started whose input could not be evaluated; their rows keep the error until their turn."""
    size: int = 0
    """Bytes that the outputs, or what was collected, come to so far; so that too much is never loaded."""


@record(kw_only=True)
class Detail:
    """What only some rows have: one json column that is null for all others."""

    loop: Loop | None = None
    """Of a group row."""
    child: UUID | None = None
    """The child run of the current attempt."""
    version: int = 0
    """Version of the child's definition, fixed when the node started; 0 for a subflow, which has its parent's."""
    collected: Payload | None = None
    """Of an iteration: what ``collect`` gathered."""
    order: int = 0
    """Of a row that is undone unless the run succeeds: when it Completed, as a number of the run's history. A Cancelled
    row has it if nobody can tell whether its attempt succeeded."""
    undo_next: NodeKey | None = None
    """Of an undo row: the undo row that comes after it."""
    undo_rest: tuple[tuple[str, tuple[int, ...]], ...] = ()
    """Of the last undo row that has been made: the undo rows that come after it, as names and their indexes."""


@dataclass(slots=True, kw_only=True)
class TaskRow:
    """``task_instances``: one row for each node that has begun to matter (an edge settled, or it fired), and one for
    each item of a loop that was made."""

    node: str
    index: int = 0
    kind: str
    state: NodeState
    attempt: int = 0
    """Attempts begun; 0 for nodes without attempts."""
    edges_settled: int = 0
    edges_live: int = 0
    fired: bool = False
    """The join fired. A Pending row that has fired is parked: it starts when the suspended run is resumed."""
    route: tuple[str, ...] | None = None
    """Targets chosen by switch, onError or onTimeout; None when the node does not choose."""
    stepped_over: bool = False
    """Skipped by its own ``when``: its edges are live."""
    retries: Mapping[str, int] = field(default_factory=dict)
    """Retries used, by tier number; ``lost`` counts lost leases, ``asked`` retries asked for by a worker, ``unknown``
    attempts whose worker did not know the type. A tier with ``maxElapsed`` keeps the time of its first failure in
    ``<number>.since``, in ms since 1970."""
    first_failed_at: datetime | None = None
    ready_key: ReadyKey | None = None
    """Where its ready row was put, so that clearing it needs no index on run_id."""
    input: Payload | None = None
    output: Payload | None = None
    error: ErrorInfo | None = None
    event: Payload | None = None
    """Envelope of the signal that a waitForEvent took: ``{name, id, sender, time}``."""
    detail: Detail | None = None
    queued_at: datetime | None = None
    finished_at: datetime | None = None

    @property
    def key(self) -> NodeKey:
        """The row's key within its run."""
        return NodeKey(self.node, self.index)


class ReadyKey(NamedTuple):
    """The index key of a ready row: (queue, lane, priority, seq)."""

    queue: str
    lane: int
    priority: int
    seq: int


FROZEN: Final = datetime.max.replace(tzinfo=UTC)
"""``fire_at`` of a timer of a suspended run (``infinity`` in the database)."""


@record
class TimerRow:
    """``timers``: one durable deadline of a run. While the run is suspended ``fire_at`` is far and remaining is set."""

    kind: TimerKind
    node: str
    index: int
    fire_at: datetime
    remaining_ms: int | None = None


@record
class WaitRow:
    """``waits``: a node that waits for a signal of this name; the lowest seq of a name is served first."""

    name: str
    seq: int
    node: str
    index: int
    since: datetime
    child: UUID | None = None
    """The subflow's run that waits, if it is not this one: its signals come to the root's mailbox."""
    subflow: str = ""
    """The subflow that the child executes; with ``node`` it names the wait's schema."""
    alternative: int = 0
    """Which of the node's alternatives this name belongs to."""


@record
class SignalRow:
    """``workflow_events``: a recorded signal that no wait has taken yet; the lowest seq of a name is the oldest."""

    id: str
    name: str
    seq: int
    payload: Payload
    sender: str
    created_at: datetime
