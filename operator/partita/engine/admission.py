"""Admitting starts: which of a batch's starts make a new run, and which were made before.

Invariant: everything that refuses a start is found before the first row is written, and a start that meets another
one at a unique index makes the whole batch begin again, so that nothing of a refused run is ever stored.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from uuid import UUID

from partita.domain import ids
from partita.domain.errors import ConflictError, ExpiredError, IdempotencyKeyInUseError, PartitaError
from partita.domain.state.rows import RunStatus
from partita.domain.state.slices import Slice
from partita.engine.held import HeldByObjectError
from partita.engine.likeness import Asked, Likeness, kinds_of
from partita.engine.requests import StartReply
from partita.engine.submissions import Start
from partita.engine.turns import CollidedError, Group, Turn
from partita.settings import RetentionSettings
from partita.store import fences, starts
from partita.store.database import Connection
from partita.store.slices import AskedVersion, Loaded, StoredRun
from partita.store.sql import Sql
from partita.store.starts import HeldKey, KeyRow, NewRun, RunKey

_MONTH = timedelta(days=31)
_FREE_BITS = 80
"""Bits of an id below its time."""


@dataclass(slots=True)
class Admitted:
    """The starts of a batch that make new runs."""

    groups: list[Group] = field(default_factory=list)
    """To be decided, the first of each kind too."""
    alike: list[Likeness] = field(default_factory=list)


async def admit(
    connection: Connection, sql: Sql, turns: Sequence[Asked], loaded: Loaded, retention: RetentionSettings
) -> Admitted:
    """Answer the starts that make no new run; what is to be decided for the others."""
    keys = [key for _, start in turns for key in start.keys]
    held = await starts.held_keys(connection, sql, keys) if keys else {}
    stored = loaded.runs
    oldest, newest = _window(loaded, retention)
    for turn, start in turns:
        found: StartReply | PartitaError | None = None
        if held or start.run_id in stored:
            found = _existing(start, stored.get(start.run_id), held)
        if found is None and not oldest <= start.run_id.int >> _FREE_BITS <= newest:
            found = _unacceptable(start, loaded, retention)
        if found is not None:
            turn.settle(found)
    _check_versions(turns, loaded.startable)
    await _take_inbox(connection, sql, turns)
    alone, kinds = kinds_of([asked for asked in turns if not asked[0].settled])
    alike = [Likeness(_group(*kind[0]), kind[1:]) for kind in kinds]
    return Admitted([_group(*one) for one in alone] + [kind.first for kind in alike], alike)


def _window(loaded: Loaded, retention: RetentionSettings) -> tuple[int, int]:
    """Milliseconds since 1970 between which an id is surely acceptable; outside of them it is looked at closely."""
    newest = ids.to_milliseconds(loaded.now) + retention.accept_ahead_ms - 1
    return ids.to_milliseconds(loaded.retention_floor) + 1, newest


def _existing(start: Start, stored: StoredRun | None, held: dict[RunKey, HeldKey]) -> StartReply | PartitaError | None:
    """The answer of a start whose run, or whose key's run, exists."""
    request = start.request
    if stored is not None:
        same = stored.start_request_id == request.request_id
        if same or (request.cr is not None and stored.row.cr_uid == request.cr.uid):
            return StartReply(stored.row.id, created=same and start.tried, status=stored.row.status)
        return ConflictError(
            f"run {start.run_id}: runId: was started by another request; expected an id that was not used before",
            hint=f"partita get {start.run_id}",
        )
    for key in start.keys:
        holder = held.get(key)
        if holder is not None:
            return _held(start, key, holder)
    return None


def _held(start: Start, key: RunKey, holder: HeldKey) -> StartReply | PartitaError:
    if key.scope == "idempotency" and (refusal := _not_shared(start, key, holder)):
        return refusal
    if holder.status is None:
        return ExpiredError(f"run {holder.run_id}: was started before and its month has been dropped")
    return StartReply(holder.run_id, created=False, status=holder.status)


def _not_shared(start: Start, key: RunKey, holder: HeldKey) -> PartitaError | None:
    """Why a key's run is not this start's: it is of another order, or it belongs to another object."""
    words = f"run {start.run_id}: idempotencyKey: {key.key!r} belongs to"
    hint = f"partita get {holder.run_id}"
    if holder.input_hash != start.input_hash:
        message = f"{words} a run with another input, {holder.run_id}; expected a key of its own"
        return IdempotencyKeyInUseError(message, hint=hint)
    if start.request.cr is not None and holder.cr_uid not in ("", start.request.cr.uid):
        message = f"{words} another WorkflowRun, {holder.run_id}; expected a key of its own"
        return HeldByObjectError(message, hint=hint, run_id=holder.run_id)
    return None


def _unacceptable(start: Start, loaded: Loaded, retention: RetentionSettings) -> PartitaError | None:
    try:
        ids.check_acceptable(
            start.run_id, floor=loaded.retention_floor, now=loaded.now, ahead_ms=retention.accept_ahead_ms
        )
    except PartitaError as error:
        return error
    return None


def versions_of(starts: Iterable[Start]) -> list[AskedVersion]:
    """The versions that these starts take, unless a run has decided on them."""
    different = {(id(one.version), one.request.version is not None): one for one in starts if not one.decided}
    asked = {AskedVersion(one.version.id, one.version.version, exact) for (_, exact), one in different.items()}
    return sorted(asked)


def _check_versions(turns: Sequence[Asked], usable: Container[tuple[UUID, int]]) -> None:
    """Starts whose version was replaced or deleted meanwhile are answered with None: resolve it again."""
    for turn, start in turns:
        if not (turn.settled or start.decided) and (start.version.id, start.version.version) not in usable:
            turn.settle(None)


async def _take_inbox(connection: Connection, sql: Sql, turns: Sequence[Asked]) -> None:
    """The inbox row of a relayed start goes with its run; one that is gone was relayed by another process."""
    relayed = [start.inbox_id for turn, start in turns if start.inbox_id is not None and not _comes_again(turn)]
    if not relayed:
        return
    taken = await fences.take_inbox(connection, sql, relayed)
    for turn, start in turns:
        if start.inbox_id is not None and start.inbox_id not in taken and not turn.settled:
            turn.settle(StartReply(start.run_id, created=False, status=RunStatus.PENDING))


def _comes_again(turn: Turn) -> bool:
    """Refused, or sent back (None) to take another version: either needs its inbox row then."""
    return turn.settled and not isinstance(turn.answer, StartReply)


def _group(turn: Turn, start: Start) -> Group:
    turn.event = start.event
    slice_ = Slice(start.version.definition.flow(start.event.subflow), None, start.input, whole=True)
    slice_.timers, slice_.waits, slice_.signals, slice_.leased = [], [], [], set()
    return Group(start.run_id, start.version, slice_, [turn])


async def take_keys(connection: Connection, sql: Sql, new: Admitted, retention: RetentionSettings) -> list[NewRun]:
    """Insert the keys of all starts; the new runs, which are inserted with what else is written.

    Raises CollidedError when another transaction came first.
    """
    own = [(group, start) for group in new.groups if isinstance(start := group.turns[0].submission, Start)]
    copied = [start for kind in new.alike for _, start in kind.others]
    keys = [key for start in (*(start for _, start in own), *copied) for key in _key_rows(start, retention)]
    if not await starts.insert_keys(connection, sql, keys):
        raise CollidedError
    return [_new_run(group, start) for group, start in own]


def _key_rows(start: Start, retention: RetentionSettings) -> list[KeyRow]:
    if not start.keys:
        return []
    expires = ids.time_of(start.run_id) + _MONTH * retention.months
    return [KeyRow(*key, start.run_id, start.input_hash, expires) for key in start.keys]


def _new_run(group: Group, start: Start) -> NewRun:
    request, cr = start.request, start.request.cr
    if group.effects is None:
        raise CollidedError
    return NewRun(
        effects=group.effects,
        definition_id=start.version.id,
        start_request_id=request.request_id,
        started_by=request.started_by,
        cluster_uid=cr.cluster_uid if cr else None,
        engine_id=cr.engine_id if cr else None,
        idempotency_key=request.idempotency_key,
        tags=request.tags,
        attributes=dict(request.attributes),
        input=start.input,
        config=start.version.config,
    )


def run_keys(run_namespace: str, cluster_uid: str | None, cr_uid: str | None, key: str | None) -> tuple[RunKey, ...]:
    """The names that a start claims."""
    keys = []
    if cluster_uid is not None and cr_uid is not None:
        keys.append(RunKey("cr", cluster_uid, cr_uid))
    if key is not None:
        keys.append(RunKey("idempotency", run_namespace, key))
    return tuple(keys)
