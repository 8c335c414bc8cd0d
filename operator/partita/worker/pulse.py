"""A worker's heartbeat that says when its role may not write.

Invariant: a missing privilege is told to the worker and still counts as a failed round. Trade-off: the worker decides
how long it goes on without, since only it knows whether it ever worked.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final
from uuid import UUID

from partita.domain.errors import PartitaError, UnavailableError
from partita.domain.state.rows import NodeKey
from partita.engine.leases import Heartbeat, Holder
from partita.engine.service import Clock, Service
from partita.store.duties import WorkerStore
from partita.store.errors import PrivilegeMissingError

_HINT: Final = "the URL of a role that may write, or partita migrate --roles, as the schema's owner"


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
        self._writes = store

    async def tick(self) -> float:
        """Beat once."""
        try:
            return await super().tick()
        except UnavailableError as error:
            if isinstance(error, PrivilegeMissingError):
                self._refused(self, error)
            elif await self._may_not_write():
                self._refused(
                    self, PrivilegeMissingError(f"database: the role may only read ({error.message})", hint=_HINT)
                )
            raise

    async def _may_not_write(self) -> bool:
        """Whether a session that is read-only is so for want of privileges, and not on a standby or for a while."""
        try:
            return not await self._writes.may_write()
        except PartitaError:
            return False
