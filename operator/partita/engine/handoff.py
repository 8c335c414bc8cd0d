"""Handing the next task of a run to the worker that just reported, or to one that idles, instead of queueing it.

Purpose: saves a ready row, a claim and the worker's next look. Invariant: the lease is written by the transaction that
makes the task ready, so that the task is never in neither table; its ``claim_id``, which is the ``request_id`` of the
report or that of the idle worker's promise, finds it again when the answer was lost. Trade-off: a run in progress goes
before queued runs, unless work that is a whole level of priority more urgent waits in the queue; that is looked up once
a second, not every time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Final, NamedTuple
from uuid import UUID

from partita.domain.payload import NULL, Payload
from partita.domain.state.effects import Effects, Enqueue
from partita.domain.state.repeats import Repeat
from partita.domain.state.rows import NodeKey, RunRow, RunStatus, TaskRow
from partita.engine.eager import IdleWorkers, Promise
from partita.engine.requests import ClaimedTask, Offer
from partita.engine.submissions import Happening, Reported, Start, TimerFell
from partita.engine.turns import Group, Turn
from partita.engine.urgency import Urgency
from partita.minting import new_id
from partita.store.database import Connection
from partita.store.sql import Sql
from partita.store.writes import NewLease

_EAGER: Final = (Start, Happening, TimerFell)
"""What may go to an idle worker at once. A lease that ended is not among them: another worker may have more luck."""


class _Queued(NamedTuple):
    """What the events of a run have queued."""

    run: RunRow
    enqueue: Mapping[NodeKey, Enqueue]
    tasks: Mapping[NodeKey, TaskRow]
    """New and changed rows, those of what was queued among them."""


class _Candidate(NamedTuple):
    """A turn that made tasks ready, and the free hands for one of them."""

    group: Group
    queued: _Queued
    """By all events of the run."""
    turn: Turn
    own: Mapping[NodeKey, Enqueue]
    """What this turn alone has queued."""
    offer: Offer
    claim_id: UUID
    ended: tuple[str, int] | None
    """The attempt that was reported."""


class _Handed(NamedTuple):
    """A task that is leased by the report that made it ready."""

    run: RunRow
    turn: Turn
    key: NodeKey
    enqueue: Enqueue
    lease: NewLease
    input: Payload | None
    """The task's input, if it was made or read by this transaction."""

    @property
    def place(self) -> tuple[UUID, NodeKey]:
        """Run and row of the task."""
        return self.run.id, self.key


async def hand_on(
    connection: Connection,
    sql: Sql,
    groups: Sequence[Group],
    urgency: Urgency,
    now: datetime,
    promises: Mapping[Turn, Promise] | None = None,
) -> None:
    """Lease ready tasks to the workers whose reports made them ready, and to idle ones (``promised``)."""
    candidates = _candidates(groups, promises or {})
    if not candidates:
        return
    queues = {enqueue.queue for one in candidates for enqueue in one.own.values()}
    await urgency.look(connection, sql, queues, now)
    handed = [handed for one in candidates if (handed := _hand_on(one, urgency, now))]
    inputs = await _stored_inputs(connection, sql, handed)
    for one in handed:
        input_ = one.input
        one.turn.next = _claimed(one, inputs.get(one.place, NULL) if input_ is None else input_)


@lru_cache(maxsize=256)
def _deadline(now: datetime, timeout_ms: int) -> datetime:
    """The end of a timeout: most tasks of a batch have the same."""
    return now + timedelta(milliseconds=timeout_ms)


def promised(groups: Sequence[Group], idle: IdleWorkers) -> dict[Turn, Promise]:
    """Slots of idle workers for what happened to these runs other than by a worker's report, by turn."""
    found = {}
    for group in groups:
        effects = group.effects
        if effects is None or not (queued := _queued(effects)).enqueue or queued.run.status is not RunStatus.RUNNING:
            continue
        for turn in group.turns:
            if isinstance(turn.submission, _EAGER) and turn.decided is not None:
                queues = [enqueue.queue for enqueue in _queued(turn.decided).enqueue.values()]
                promise = idle.promise(queues, queued.run.namespace) if queues else None
                if promise is not None:
                    found[turn] = promise
    return found


def _candidates(groups: Sequence[Group], promises: Mapping[Turn, Promise]) -> list[_Candidate]:
    """Reports with an offer, and turns with a promise, that have queued something."""
    found = []
    for group in groups:
        effects = group.effects
        if effects is None:
            continue
        queued = _queued(effects)
        if not queued.enqueue or queued.run.status is not RunStatus.RUNNING:
            continue
        for turn in group.turns:
            one, decided = turn.submission, turn.decided
            if decided is None:
                continue
            if isinstance(one, Reported) and one.offer is not None:
                own = queued.enqueue if decided is effects else _queued(decided).enqueue
                if own:
                    report = one.report
                    ended = (report.node, report.index)
                    found.append(_Candidate(group, queued, turn, own, one.offer, report.request_id, ended))
            elif promises and (promise := promises.get(turn)) is not None:
                own = _queued(decided).enqueue
                found.append(_Candidate(group, queued, turn, own, promise.offer, promise.claim_id, None))
    return found


def _queued(effects: Effects) -> _Queued:
    """A repeat has queued what its pattern says, and a run that goes on is as it was before but for its counts."""
    if type(effects) is Repeat:
        return _Queued(effects.before, effects.pattern.enqueue, effects.pattern.started)
    return _Queued(effects.run, effects.enqueue, effects.tasks)


def _hand_on(one: _Candidate, urgency: Urgency, now: datetime) -> _Handed | None:
    group, offer = one.group, one.offer
    run, queued, tasks = one.queued
    if offer.slots <= 0 or not (offer.namespaces is None or run.namespace in offer.namespaces):
        return None
    for key in one.own:
        enqueue = queued.get(key)
        if enqueue is None or key in group.handed or enqueue.queue not in offer.queues:
            continue
        if key == one.ended:
            continue  # the attempt that failed just now: another worker may have more luck
        if urgency.allows(enqueue.queue, enqueue.priority, now):
            deadline = _deadline(now, enqueue.timeout_ms)
            lease = group.handed[key] = NewLease(new_id(), one.claim_id, offer.worker_id, deadline)
            task = tasks.get(key)
            return _Handed(run, one.turn, key, enqueue, lease, None if task is None else task.input)
    return None


async def _stored_inputs(
    connection: Connection, sql: Sql, handed: Sequence[_Handed]
) -> dict[tuple[UUID, NodeKey], Payload]:
    """Inputs that were stored earlier, such as those of a loop's items."""
    missing = [one.place for one in handed if one.input is None]
    if not missing:
        return {}
    runs = [run_id for run_id, _ in missing]
    nodes, indexes = [key.node for _, key in missing], [key.index for _, key in missing]
    records = await connection.fetch(sql("claimed_inputs"), runs, nodes, indexes, min(runs), max(runs))
    texts = (record["input"] or "null" for record in records)
    return {place: Payload.parse(text) for place, text in zip(missing, texts, strict=True)}


def _claimed(one: _Handed, input_: Payload) -> ClaimedTask:
    enqueue, run = one.enqueue, one.run
    return ClaimedTask(  # by position: by name it takes 1 µs more
        run.id,
        run.generation,
        enqueue.node,
        enqueue.index,
        enqueue.attempt,
        one.lease.lease_id,
        enqueue.type,
        enqueue.queue,
        run.namespace,
        input_,
        one.lease.deadline_at,
        enqueue.timeout_ms,
    )
