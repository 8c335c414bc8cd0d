"""Handing the next task of a run to the worker that just reported, instead of queueing it.

Purpose: saves a ready row, a claim and the worker's next look. Invariant: the lease is written by the transaction that
makes the task ready, so that the task is never in neither table; the report's ``request_id`` is its ``claim_id``, by
which the answer can be found again when it was lost. Trade-off: a run in progress goes before queued runs, unless
work that is a whole level of priority more urgent waits in the queue; that is looked up once a second, not every time.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from functools import lru_cache
from typing import NamedTuple
from uuid import UUID

from partita.domain.payload import NULL, Payload
from partita.domain.state.effects import Effects, Enqueue
from partita.domain.state.rows import NodeKey, RunStatus
from partita.engine.requests import ClaimedTask, Offer, Report
from partita.engine.submissions import Reported
from partita.engine.turns import Group, Turn
from partita.engine.urgency import Urgency
from partita.minting import new_id
from partita.store.database import Connection
from partita.store.sql import Sql
from partita.store.writes import NewLease


class _Candidate(NamedTuple):
    """A report that made tasks ready and brings free hands."""

    group: Group
    effects: Effects
    """Of all events of the run."""
    turn: Turn
    decided: Effects
    """Of this report alone."""
    report: Report
    offer: Offer


class _Handed(NamedTuple):
    """A task that is leased by the report that made it ready."""

    effects: Effects
    turn: Turn
    key: NodeKey
    enqueue: Enqueue
    lease: NewLease

    @property
    def place(self) -> tuple[UUID, NodeKey]:
        """Run and row of the task."""
        return self.effects.run.id, self.key

    @property
    def input(self) -> Payload | None:
        """The task's input, if it was made or read by this transaction."""
        task = self.effects.tasks.get(self.key)
        return None if task is None else task.input


async def hand_on(connection: Connection, sql: Sql, groups: Sequence[Group], urgency: Urgency, now: datetime) -> None:
    """Lease ready tasks to the workers whose reports made them ready."""
    candidates = _candidates(groups)
    if not candidates:
        return
    queues = {enqueue.queue for one in candidates for enqueue in one.decided.enqueue.values()}
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


def _candidates(groups: Sequence[Group]) -> list[_Candidate]:
    """Reports with an offer that have queued something."""
    found = []
    for group in groups:
        effects = group.effects
        if effects is None or not effects.enqueue or effects.run.status is not RunStatus.RUNNING:
            continue
        for turn in group.turns:
            one, decided = turn.submission, turn.decided
            if isinstance(one, Reported) and one.offer is not None and decided is not None and decided.enqueue:
                found.append(_Candidate(group, effects, turn, decided, one.report, one.offer))
    return found


def _hand_on(one: _Candidate, urgency: Urgency, now: datetime) -> _Handed | None:
    group, effects, report, offer = one.group, one.effects, one.report, one.offer
    if offer.slots <= 0 or not (offer.namespaces is None or effects.run.namespace in offer.namespaces):
        return None
    for key in one.decided.enqueue:
        enqueue = effects.enqueue.get(key)
        if enqueue is None or key in group.handed or enqueue.queue not in offer.queues:
            continue
        if key == (report.node, report.index):
            continue  # the attempt that failed just now: another worker may have more luck
        if urgency.allows(enqueue.queue, enqueue.priority, now):
            deadline = _deadline(now, enqueue.timeout_ms)
            lease = group.handed[key] = NewLease(new_id(), report.request_id, offer.worker_id, deadline)
            return _Handed(effects, one.turn, key, enqueue, lease)
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
    enqueue, run = one.enqueue, one.effects.run
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
