"""Summaries of runs for their WorkflowRun objects: what a status says, made of the rows that were read for it.

Invariant: a summary is bounded however large its run is: the newest of the nodes, waits and signals, and no output that
is large. Trade-off: what is left out is found in the record only.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from uuid import UUID

import orjson

from partita.domain.payload import Json
from partita.domain.state.rows import Detail, ErrorInfo, Loop, RunStatus
from partita.store.details import detail_of
from partita.store.projection import Row

NODES_SHOWN: Final = 20
SIGNALS_SHOWN: Final = 64
SUSPENSION_EVENTS: Final = ("SuspendRequested", "ResumeRequested")


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectRef:
    """A WorkflowRun object."""

    uid: str
    namespace: str
    name: str
    generation: int
    """metadata.generation that the record (or the refusal) answers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeSummary:
    """One node of a run as people see it."""

    name: str
    state: str
    """As in ``NodeState``, and Running for an attempt that a worker holds."""
    attempt: int
    message: str
    loop: Loop | None = None
    """Progress of a loop, which is one node here."""
    child: UUID | None = None
    """The child run of the current attempt."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitSummary:
    """Something that a run waits for."""

    kind: str
    """``signal``, ``child``, or a TimerKind."""
    name: str
    """Name of the signal, or id of the child; empty for timers, and for the children of a loop."""
    node: str
    until: datetime | None
    dead: str | None
    """Why the engine gave up on this timer; None when it did not."""
    child: UUID | None = None
    """The child run: of kind ``child`` the one that is waited for, of ``signal`` the one whose node waits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SignalSummary:
    """What became of a signal: Accepted, Consumed or Refused."""

    id: str
    state: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSummary:
    """A run as its object shows it, read at ``now`` of the database."""

    run_id: UUID
    revision: int
    object: ObjectRef
    definition: str
    version: int
    status: RunStatus
    stage: str
    """The part of the run that executes, or did last: main, undo or finally."""
    reason: str
    done: int
    total: int
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    suspension_at: datetime | None
    """When it was last suspended or resumed; None if never."""
    error: ErrorInfo | None
    """The error that ended it, without its details."""
    output: Json
    """The output of a succeeded run when it is small; else None."""
    nodes: tuple[NodeSummary, ...]
    waits: tuple[WaitSummary, ...]
    signals: tuple[SignalSummary, ...]
    """Oldest first."""
    now: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """An object without a run, read at ``now`` of the database."""

    object: ObjectRef
    reason: str
    message: str
    waiting: bool
    """The start is tried again when the definition appears."""
    created_at: datetime
    now: datetime


def summary_of(
    row: Row, nodes: list[Row], waiting: list[Row], signals: list[Row], suspension_at: datetime | None
) -> RunSummary:
    """A run's summary, of the rows that were read for it."""
    return RunSummary(
        run_id=row["id"],
        revision=row["revision"],
        object=ObjectRef(
            uid=row["cr_uid"], namespace=row["namespace"], name=row["name"], generation=row["cr_generation"]
        ),
        definition=row["definition"],
        version=row["version"],
        status=RunStatus(row["status"]),
        stage=row["stage"],
        reason=row["reason"],
        done=row["done"],
        total=row["total"],
        created_at=row["created_at"],
        started_at=row["started_at"],
        finished_at=row["finished_at"],
        suspension_at=suspension_at,
        error=_run_error(row),
        output=_json(row["output"]),
        nodes=tuple(_node(node) for node in nodes),
        waits=tuple(_wait(wait) for wait in waiting),
        signals=_signals(signals),
        now=row["now"],
    )


def _node(row: Row) -> NodeSummary:
    name = f"{row['node']}[{row['index']}]" if row["index"] > 0 else row["node"]
    detail = detail_of(row["detail"]) or Detail()
    return NodeSummary(
        name=name,
        state=row["state"],
        attempt=row["attempt"],
        message=_error(row),
        loop=detail.loop,
        child=detail.child,
    )


def _wait(row: Row) -> WaitSummary:
    return WaitSummary(
        kind=row["kind"],
        name=row["name"],
        node=row["node"],
        until=row["until"],
        dead=row["dead"],
        child=row["child"],
    )


def _signals(rows: list[Row]) -> tuple[SignalSummary, ...]:
    """The newest signals and the listed ones (which come before other old ones), oldest first, each once."""
    unique = {row["id"]: row for row in sorted(rows, key=lambda row: bool(row["listed"]))}
    kept = sorted(unique.values(), key=lambda row: (row["listed"], row["seq"]))[-SIGNALS_SHOWN:]
    return tuple(_signal(row) for row in sorted(kept, key=lambda row: int(row["seq"])))


def _signal(row: Row) -> SignalSummary:
    state = "Refused" if row["refused"] is not None else "Consumed" if row["consumed_by"] else "Accepted"
    return SignalSummary(id=row["id"], state=state, message=row["refused"] or "")


def refusal_of(row: Row) -> Refusal:
    """A refusal, of its row."""
    return Refusal(
        object=ObjectRef(
            uid=row["cr_uid"], namespace=row["cr_namespace"], name=row["cr_name"], generation=row["cr_generation"]
        ),
        reason=row["reason"],
        message=row["message"],
        waiting=row["waiting"],
        created_at=row["created_at"],
        now=row["now"],
    )


def _run_error(row: Row) -> ErrorInfo | None:
    return ErrorInfo(row["error_type"], row["error_message"] or "") if row["error_type"] else None


def _error(row: Row) -> str:
    return ": ".join(part for part in (row["error_type"], row["error_message"]) if part)


def _json(text: Any) -> Json:
    return orjson.loads(text) if isinstance(text, str) else text
