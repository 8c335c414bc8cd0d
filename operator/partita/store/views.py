"""What reads return: runs, nodes, history, definitions, queues and workers as people look at them.

Invariant: a view is a copy of one moment, complete in itself; nothing decides on it. Payloads stay text until someone
asks for their value.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from partita.domain.payload import Payload
from partita.domain.record import record
from partita.domain.state.rows import ErrorInfo, Loop, Parent, RunStatus


@record(kw_only=True)
class RunView:
    """A run. ``input`` and ``output`` are None in lists."""

    id: UUID
    namespace: str
    name: str
    """The WorkflowRun object's name, or the id's text for a run without one."""
    definition: str
    version: int
    status: RunStatus
    stage: str
    generation: int
    """Retry round."""
    revision: int
    cr_generation: int
    reason: str
    priority: int
    active: int
    done: int
    total: int
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    deadline_at: datetime | None
    started_by: str
    cr_uid: str
    idempotency_key: str
    tags: tuple[str, ...]
    attributes: Mapping[str, str]
    error: ErrorInfo | None
    input: Payload | None
    output: Payload | None
    parent: Parent | None = None
    """The row of another run that waits for this one."""
    subflow: str = ""
    """The subflow that it executes; such a run is in no list but its parent's."""
    depth: int = 0
    """Ancestors."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeView:
    """A node that has begun to matter, an item or iteration of a loop, or what reverses one (``<name>~undo``)."""

    node: str
    index: int
    """0 for a plain node, GROUP for a whole loop, from 0 for its items."""
    kind: str
    state: str
    """As recorded, or ``Running`` while a worker holds the attempt."""
    attempt: int
    queue: str
    worker: str
    """The worker that holds the attempt; empty otherwise."""
    queued_at: datetime | None
    claimed_at: datetime | None
    finished_at: datetime | None
    input: Payload | None
    output: Payload | None
    error: ErrorInfo | None
    """The last error, also of a node that was tried again."""
    event: Payload | None
    loop: Loop | None = None
    """Progress, of a whole loop."""
    child: UUID | None = None
    """The child run of the current attempt."""


@dataclass(frozen=True, slots=True)
class WaitView:
    """A node that waits for a signal."""

    node: str
    index: int
    name: str
    since: datetime
    child: UUID | None = None
    """The run of a subflow whose node it is; None: the run's own."""


@dataclass(frozen=True, slots=True)
class TimerView:
    """A durable deadline. ``fire_at`` is None while the run is suspended."""

    kind: str
    node: str
    index: int
    fire_at: datetime | None
    remaining_ms: int | None
    failures: int
    last_error: str


@dataclass(frozen=True, slots=True)
class SignalView:
    """A signal that a run received."""

    id: str
    name: str
    sender: str
    payload: Payload
    created_at: datetime
    consumed_at: datetime | None
    consumed_by: str
    refused: str


@dataclass(frozen=True, slots=True)
class RunDetailView:
    """A run with everything that belongs to it but its history."""

    run: RunView
    nodes: tuple[NodeView, ...]
    waits: tuple[WaitView, ...]
    timers: tuple[TimerView, ...]
    signals: tuple[SignalView, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryView:
    """One line of a run's history."""

    seq: int
    generation: int
    at: datetime
    event: str
    node: str
    index: int
    attempt: int
    who: str
    started_at: datetime | None
    error: ErrorInfo | None
    details: Payload | None


@dataclass(frozen=True, slots=True)
class WaitingView:
    """Something that a run of a list waits for."""

    kind: str
    """``signal``, ``child``, or the kind of a timer."""
    name: str
    """The signal's name, or the child's id; empty for timers, and for the children of a loop."""
    node: str
    until: datetime | None
    child: UUID | None = None
    """The child run: of kind ``child`` the one that is waited for, of ``signal`` the one whose node waits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFilter:
    """Which runs a list shows. What is None or empty takes every run."""

    namespace: str | None = None
    definition: str | None = None
    statuses: tuple[RunStatus, ...] = ()
    """Any of them."""
    tags: tuple[str, ...] = ()
    """All of them."""
    attributes: Mapping[str, str] | None = None
    """All of them, with these values."""
    started_by: str | None = None
    created_from: datetime | None = None
    created_before: datetime | None = None
    parent: UUID | None = None
    """Children of this run, the runs of subflows too, which are in no other list."""


@dataclass(frozen=True, slots=True)
class RunPage:
    """A page of a list, newest first. A page may be short, or empty, and still have a ``cursor`` to go on from."""

    runs: tuple[RunView, ...]
    cursor: UUID | None
    """Where the next page begins; None at the end of the list."""


@dataclass(frozen=True, slots=True)
class RunCount:
    """How many runs a filter takes; at least so many where it is not exact, as counting has a limit."""

    count: int
    exact: bool


@dataclass(frozen=True, slots=True)
class DefinitionView:
    """A definition by its newest version."""

    namespace: str
    name: str
    version: int
    content_hash: str
    created_by: str
    created_at: datetime
    deleted_at: datetime | None
    deployed: int | None
    """The version that new runs take."""


@dataclass(frozen=True, slots=True)
class QueueView:
    """A queue of tasks."""

    queue: str
    depth: int
    """Tasks that are ready and not claimed."""
    oldest_at: datetime | None
    oldest_seconds: float
    """How long the oldest of them has waited, by the database's clock."""
    running: int
    workers: int
    """Live workers that serve it."""


@dataclass(frozen=True, slots=True)
class WorkerView:
    """A worker process."""

    id: str
    host: str
    started_at: datetime
    heartbeat_at: datetime
    alive: bool
    protocol: int
    slots: int
    draining: bool
    namespaces: tuple[str, ...] | None
    """None: all."""
    queues: tuple[str, ...]
    types: tuple[str, ...]
    held: int
    """Attempts that it holds."""
