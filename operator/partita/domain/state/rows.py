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


class NodeKey(NamedTuple):
    """A node of a run; ``index`` counts items of a loop and is 0 for a node outside one."""

    node: str
    index: int = 0  # type: ignore[assignment]  # hides tuple.index, which nobody calls on a key


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
    """The part of a run that executes. Undo and finally have their place here and come with their node kinds."""

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


@record
class ErrorInfo:
    """An error as expressions and people see it: ``{type, message, details}``."""

    type: str
    message: str
    details: Payload | None = None


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
    """With failFast false: the reason with which the run will end once its independent branches have finished."""
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
    created_at: datetime
    started_at: datetime | None = None
    finished_at: datetime | None = None
    retry_counts: Mapping[str, int] = field(default_factory=dict)
    """Reserved for controls with counters (the CR's ``retry``)."""


@dataclass(slots=True, kw_only=True)
class TaskRow:
    """``task_instances``: one row for each node that has begun to matter (an edge settled, or it fired)."""

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


@record
class SignalRow:
    """``workflow_events``: a recorded signal that no wait has taken yet; the lowest seq of a name is the oldest."""

    id: str
    name: str
    seq: int
    payload: Payload
    sender: str
    created_at: datetime
