"""Summaries of runs for their WorkflowRun objects: what is due, what it says, and what has been shown.

Purpose: the operator asks here what to write into which object's status, and says here what it wrote. Invariant: a
revision is forgotten only when the object shows it and no newer one came in the meantime, so the status converges to
the record whatever is killed in between. A projector of an earlier term sees that the epoch has moved on and ends.
Trade-off: a summary may be newer than the revision it carries; the next round then writes it once more.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from uuid import UUID

import orjson

from partita.domain.errors import PartitaError
from partita.domain.payload import Json
from partita.domain.state.rows import Detail, ErrorInfo, Loop, RunStatus
from partita.settings import LimitSettings
from partita.store.details import detail_of
from partita.store.projection import ProjectionStore, Row

NODES_SHOWN: Final = 20
SIGNALS_SHOWN: Final = 64
SUSPENSION_EVENTS: Final = ("SuspendRequested", "ResumeRequested")


class SupersededError(PartitaError):
    """Another operator has begun a later term; this one has to end."""

    reason = "Superseded"


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


class Projections:
    """The engine's side of status projection, for one term of one operator."""

    def __init__(self, store: ProjectionStore, limits: LimitSettings, engine_id: str, epoch: int) -> None:
        self._store = store
        self._limits = limits
        self._engine_id = engine_id
        self._epoch = epoch

    async def due(self, limit: int) -> list[tuple[UUID, int]]:
        """(run id, revision) of the statuses that are due, the longest due first. Raises SupersededError."""
        epoch, runs = await self._store.due(limit)
        if epoch != self._epoch:
            raise SupersededError(f"operator: term {self._epoch} is over; the database is at {epoch}")
        return runs

    async def summaries(self, ids: Sequence[UUID], listed: Mapping[UUID, Sequence[str]]) -> list[RunSummary]:
        """Summaries of these runs, without those that are gone or belong to no object of this engine.

        ``listed``: ids of signals that stand in the spec of the run's object, so that they are among the shown ones.
        """
        rows = await self._store.statuses(
            ids,
            listed,
            output_bytes=self._limits.status_output_bytes,
            nodes=NODES_SHOWN,
            signals=SIGNALS_SHOWN,
            suspension_events=SUSPENSION_EVENTS,
        )
        nodes, waiting, signals = _by_run(rows.nodes), _by_run(rows.waiting), _by_run(rows.signals)
        suspensions = {row["run_id"]: row["at"] for row in rows.suspensions}
        return [
            _summary(row, nodes[row["id"]], waiting[row["id"]], signals[row["id"]], suspensions.get(row["id"]))
            for row in rows.runs
            if row["cr_uid"] and row["engine_id"] == self._engine_id
        ]

    async def shown(self, revisions: Sequence[tuple[UUID, int]]) -> None:
        """These revisions stand in the objects (or have none to stand in)."""
        await self._store.done(revisions, self._epoch)

    async def postpone(self, ids: Sequence[UUID], pause_ms: int) -> None:
        """Try these runs again later."""
        await self._store.postpone(ids, pause_ms)

    async def requeue(self, shown: Sequence[tuple[UUID, int]]) -> None:
        """Queue the runs whose record is newer than the revision that their object shows."""
        await self._store.requeue(shown)

    async def refusals(self, limit: int) -> list[Refusal]:
        """Refusals that their objects do not show yet."""
        return [_refusal(row) for row in await self._store.refusals_due(self._engine_id, limit)]

    async def refusals_shown(self, refusals: Iterable[Refusal]) -> None:
        """These refusals stand in the objects."""
        shown = [(refusal.object.uid, refusal.object.generation, refusal.reason) for refusal in refusals]
        if shown:
            await self._store.refusals_shown(self._engine_id, shown)

    async def postpone_refusals(self, refusals: Iterable[Refusal], pause_ms: int) -> None:
        """Try these refusals again later."""
        await self._store.postpone_refusals(self._engine_id, [refusal.object.uid for refusal in refusals], pause_ms)


def _by_run(rows: Sequence[Row]) -> defaultdict[UUID, list[Row]]:
    grouped: defaultdict[UUID, list[Row]] = defaultdict(list)
    for row in rows:
        grouped[row["run_id"]].append(row)
    return grouped


def _summary(
    row: Row, nodes: list[Row], waiting: list[Row], signals: list[Row], suspension_at: datetime | None
) -> RunSummary:
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


def _refusal(row: Row) -> Refusal:
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
