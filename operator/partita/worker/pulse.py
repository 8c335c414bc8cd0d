"""A worker's heartbeat that says when its role may not write.

Invariant: a missing privilege is told to the worker and still counts as a failed round. Trade-off: the worker decides
how long it goes on without, since only it knows whether it ever worked.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from uuid import UUID

from partita.domain.state.rows import NodeKey
from partita.engine.leases import Heartbeat, Holder
from partita.engine.service import Clock, Service
from partita.store.duties import WorkerStore
from partita.store.errors import PrivilegeMissingError


class Pulse(Heartbeat):
    """The heartbeat of a worker process."""

    def __init__(
        self,
        store: WorkerStore,
        holder: Holder,
        lose: Callable[[UUID, NodeKey, int, UUID], Awaitable[object]],
        refused: Callable[[Service, PrivilegeMissingError], None],
        *,
        interval_ms: int,
        clock: Clock | None = None,
    ) -> None:
        super().__init__(store, holder, lose, interval_ms=interval_ms, clock=clock)
        self._refused = refused

    async def tick(self) -> float:
        """Beat once."""
        try:
            return await super().tick()
        except PrivilegeMissingError as error:
            self._refused(self, error)
            raise
