"""Handing the next task of a run to the worker that just reported, instead of queueing it.

Purpose: saves a ready row, a claim and the worker's next look. Invariant: the lease is written by the transaction that
makes the task ready, so that the task is never in neither table; the report's ``request_id`` is its ``claim_id``, by
which the answer can be found again when it was lost. Trade-off: a run in progress goes before queued runs, unless
work that is a whole level of priority more urgent waits in the queue; that is looked up once a second, not every time.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

from partita.domain.state.effects import Enqueue
from partita.domain.state.rows import NodeKey, RunStatus
from partita.engine.requests import ClaimedTask, Offer
from partita.engine.submissions import Reported
from partita.engine.turns import Group, Turn
from partita.minting import new_id
from partita.store.database import Connection
from partita.store.sql import Sql
from partita.store.writes import NewLease

LEVEL: Final = timedelta(seconds=30)
"""Age that one level of priority is worth."""
_FRESH: Final = timedelta(seconds=1)


class Urgency:
    """What waits in the queues, as it was at most a second ago."""

    __slots__ = ("_looked", "_since")

    def __init__(self) -> None:
        self._looked: dict[str, datetime] = {}
        self._since: dict[str, datetime] = {}

    async def look(self, connection: Connection, sql: Sql, queues: set[str], now: datetime) -> None:
        """Look at those queues whose picture is older than a second."""
        stale = [queue for queue in queues if queue not in self._looked or now - self._looked[queue] > _FRESH]
        if not stale:
            return
        found = dict(tuple(record) for record in await connection.fetch(sql("urgent_work"), stale))
        for queue in stale:
            self._looked[queue] = now
            if queue in found:
                self._since[queue] = found[queue]
            else:
                self._since.pop(queue, None)

    def allows(self, queue: str, priority: int, now: datetime) -> bool:
        """Whether a task that is ready now may go before what waits in its queue."""
        since = self._since.get(queue)
        return since is None or now - priority * LEVEL < since + LEVEL


async def hand_on(connection: Connection, sql: Sql, groups: Sequence[Group], urgency: Urgency, now: datetime) -> None:
    """Lease ready tasks to the workers whose reports made them ready."""
    candidates = [(group, turn, offer) for group in groups for turn in group.turns if (offer := _offer(turn))]
    queues = {enqueue.queue for _, turn, _ in candidates if turn.decided for enqueue in turn.decided.enqueue.values()}
    if not queues:
        return
    await urgency.look(connection, sql, queues, now)
    for group, turn, offer in candidates:
        _hand_on(group, turn, offer, urgency, now)


def _offer(turn: Turn) -> Offer | None:
    one = turn.submission
    return one.offer if isinstance(one, Reported) and one.offer is not None and one.offer.slots > 0 else None


def _hand_on(group: Group, turn: Turn, offer: Offer, urgency: Urgency, now: datetime) -> None:
    effects = group.effects
    if effects is None or turn.decided is None or effects.run.status is not RunStatus.RUNNING:
        return
    if offer.namespaces is not None and effects.run.namespace not in offer.namespaces:
        return
    for key in turn.decided.enqueue:
        enqueue = effects.enqueue.get(key)
        if enqueue is None or key in group.handed or enqueue.queue not in offer.queues:
            continue
        if urgency.allows(enqueue.queue, enqueue.priority, now):
            turn.next = _lease(group, turn, offer, enqueue, now)
        if turn.next is not None:
            return


def _lease(group: Group, turn: Turn, offer: Offer, enqueue: Enqueue, now: datetime) -> ClaimedTask | None:
    effects, one = group.effects, turn.submission
    if effects is None or not isinstance(one, Reported):
        return None
    task = effects.tasks.get(NodeKey(enqueue.node, enqueue.index))
    if task is None or task.input is None:
        return None  # a retry: its input was not read, and whoever claims it will
    deadline = now + timedelta(milliseconds=enqueue.timeout_ms)
    lease = NewLease(new_id(), one.report.request_id, offer.worker_id, deadline)
    group.handed[task.key] = lease
    return ClaimedTask(
        run_id=effects.run.id,
        generation=effects.run.generation,
        node=enqueue.node,
        index=enqueue.index,
        attempt=enqueue.attempt,
        lease_id=lease.lease_id,
        type=enqueue.type,
        queue=enqueue.queue,
        namespace=effects.run.namespace,
        input=task.input,
        deadline=deadline,
        timeout_ms=enqueue.timeout_ms,
    )
