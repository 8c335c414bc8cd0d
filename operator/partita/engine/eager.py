"""Idle workers of this process, to which a task is handed in the transaction that makes it ready.

Purpose: a lone start, signal or timer saves the ready row, the claim and its commit, and the worker's next look.
Invariant: a worker promises a free slot before the transaction and is told of the outcome after it, whatever that is:
here is the task, or give the slot back and, where nobody knows, look whether the lease, whose ``claim_id`` the promise
names, exists after all. Trade-off: only a worker that found its queues empty when it last looked promises anything, so
that a new run passes no queued one; under load all work goes through the queue.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol
from uuid import UUID

from partita.engine.requests import ClaimedTask, Offer
from partita.minting import new_id


class IdleWorker(Protocol):
    """A worker of this process."""

    def promise(self) -> Offer | None:
        """Keep a slot free for one task; None unless it has one and found nothing to do when it last looked."""
        ...

    def keep(self, task: ClaimedTask) -> None:
        """Execute this task in the promised slot."""
        ...

    def release(self) -> None:
        """The promised slot is not needed."""
        ...

    def doubt(self, claim_id: UUID) -> None:
        """The promised slot's task may or may not have been leased under this id."""
        ...


@dataclass(slots=True)
class Promise:
    """A slot that waits for the outcome of a transaction."""

    worker: IdleWorker
    offer: Offer
    claim_id: UUID
    task: ClaimedTask | None = None
    """What the transaction leased, if it commits."""

    def committed(self) -> None:
        """The transaction took effect."""
        if self.task is None:
            self.worker.release()
        else:
            self.worker.keep(self.task)

    def failed(self, *, unknown: bool) -> None:
        """The transaction did not, or nobody knows."""
        if self.task is None or not unknown:
            self.worker.release()
        else:
            self.worker.doubt(self.claim_id)


class IdleWorkers:
    """Those of one process."""

    def __init__(self) -> None:
        self._workers: list[IdleWorker] = []

    def add(self, worker: IdleWorker) -> None:
        """Ask this worker from now on."""
        self._workers.append(worker)

    def remove(self, worker: IdleWorker) -> None:
        """Ask this worker no more. What it has promised stays promised."""
        self._workers = [other for other in self._workers if other is not worker]

    def promise(self, queues: Iterable[str], namespace: str) -> Promise | None:
        """A free slot of a worker that serves one of these queues in this namespace."""
        wanted = frozenset(queues)
        for worker in self._workers:
            offer = worker.promise()
            if offer is None:
                continue
            if offer.queues & wanted and (offer.namespaces is None or namespace in offer.namespaces):
                return Promise(worker, offer, new_id())
            worker.release()
        return None
