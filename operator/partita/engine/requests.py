"""What callers ask of the engine and what they are answered.

Invariant: a request carries its ``request_id`` from the moment it is made, so that whoever does not hear the answer
sends the same request again and the change happens once. The trade-off is that a caller who wants a second, equal
change has to make a second request.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from datetime import datetime
from uuid import UUID

from partita.domain.model import Definition
from partita.domain.payload import Json, Payload
from partita.domain.record import record
from partita.domain.state.events import ControlsApplied
from partita.domain.state.rows import ErrorInfo, RunStatus
from partita.minting import new_id

PROTOCOL = 2
"""The engine protocol that this program speaks; a schema may demand a newer one, and then the process stops."""


@record(kw_only=True)
class CrRef:
    """The WorkflowRun object that asks for a run."""

    cluster_uid: str
    engine_id: str
    """Cluster uid and namespace of the installation."""
    uid: str
    namespace: str
    name: str
    generation: int


@record(kw_only=True)
class StartRequest:
    """Start a run of a definition. ``version`` None takes the deployed one."""

    namespace: str
    definition: str
    name: str = ""
    """What people call the run besides its id; not unique. That of an object is its name; empty is none."""
    input: Json = field(default_factory=dict)
    version: int | None = None
    run_id: UUID | None = None
    """None takes ``request_id``, which is a UUIDv7, so that the same request can never start two runs."""
    request_id: UUID = field(default_factory=new_id)
    cr: CrRef | None = None
    idempotency_key: str | None = None
    start_at: datetime | None = None
    priority: int = 0
    tags: tuple[str, ...] = ()
    attributes: Mapping[str, str] = field(default_factory=dict)
    timeout_ms: int | None = None
    """The run's own timeout; None takes the definition's."""
    started_by: str = ""
    controls: ControlsApplied | None = None
    """Controls that the object carried when it was first seen."""


@record
class StartReply:
    """The run that the request stands for; ``created`` is False when it had been started before."""

    run_id: UUID
    created: bool
    status: RunStatus


@record
class Report:
    """A worker's word on an attempt: exactly one of output, error and handed_back.

    The first seven fields are the fence: a report counts only while this worker holds this lease.
    """

    run_id: UUID
    generation: int
    node: str
    index: int
    attempt: int
    lease_id: UUID
    worker_id: str
    request_id: UUID = field(default_factory=new_id)
    output: Payload | None = None
    error: ErrorInfo | None = None
    retryable: bool = False
    retry_after_ms: int | None = None
    handed_back: bool = False
    """A graceful stop: the attempt is queued again and not spent."""


@record(kw_only=True)
class Offer:
    """A worker's free hands, sent with a report: it would take the next task of the same run at once."""

    worker_id: str
    queues: frozenset[str]
    namespaces: frozenset[str] | None = None
    """None means all."""
    slots: int = 1


@record
class ClaimedTask:
    """An attempt that is leased to a worker."""

    run_id: UUID
    generation: int
    node: str
    index: int
    attempt: int
    lease_id: UUID
    type: str
    queue: str
    namespace: str
    input: Payload
    deadline: datetime
    """End of the attempt's timeout, by the database's clock."""
    timeout_ms: int


@record
class ReportReply:
    """What became of a report: ``applied``, ``already_applied`` or ``stale``; ``next`` is already leased."""

    outcome: str
    next: ClaimedTask | None = None


@record
class Deployed:
    """The version that a spec stands for; ``created`` is False when an earlier version was deployed again."""

    version: int
    content_hash: str
    created: bool


@record
class Version:
    """A stored definition version, parsed."""

    id: UUID
    version: int
    definition: Definition
    config: Payload | None
    """The definition's constants, encoded once; None when it has none."""
