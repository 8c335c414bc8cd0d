"""What background duties read, and the few rows that are theirs to write (heartbeats, expired keys).

Invariant: nothing here changes a run. ``turn`` lets one process of the installation do a duty at a time; the fences of
the coordinator make it harmless when two do.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Final
from uuid import UUID

from partita.store.advisory import advisory_key
from partita.store.database import Connection, Database, Record
from partita.store.session import Session

TURN_IDLE: Final = "60s"
"""How long a turn at a duty may last; a round of a duty takes a fraction of that, and goes on without its turn."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Beat:
    """A worker's heartbeat."""

    worker_id: str
    lease_ms: int
    protocol: int
    slots: int
    draining: bool
    idle: bool
    namespaces: Sequence[str] | None
    queues: Sequence[str]
    types: Sequence[str]
    host: str
    first: bool
    """It makes the worker's row, which must survive a crash of the server."""


@dataclass(frozen=True, slots=True)
class HeldAttempt:
    """An attempt that a worker believes to hold."""

    run_id: UUID
    node: str
    index: int
    lease_id: UUID


class WorkerStore:
    """A worker's own row and what became of its leases."""

    def __init__(self, session: Session) -> None:
        self._session = session

    async def beat(self, beat: Beat) -> None:
        """Renew the worker's leases, all at once."""
        await self._session.fetch(
            "beat",
            beat.worker_id,
            beat.lease_ms,
            beat.protocol,
            beat.slots,
            beat.draining,
            beat.idle,
            beat.namespaces,
            beat.queues,
            beat.types,
            beat.host,
            not beat.first,
        )

    async def answer(self, worker_id: str, held: Sequence[HeldAttempt], forgotten_ms: int) -> list[Record]:
        """Attempts that are gone, and own leases older than ``forgotten_ms`` that are not among the held ones."""
        return await self._session.read(
            "beat_answer",
            worker_id,
            [attempt.run_id for attempt in held],
            [attempt.node for attempt in held],
            [attempt.index for attempt in held],
            [attempt.lease_id for attempt in held],
            forgotten_ms,
        )

    async def set_idle(self, worker_id: str, *, idle: bool) -> None:
        """Say whether the worker waits to be told of new work."""
        await self._session.fetch("set_idle", worker_id, idle)

    async def may_write(self) -> bool:
        """Whether the role has the privileges of a worker; without them trying again is of no use."""
        (row,) = await self._session.fetch("may_write", patience_ms=0)
        return bool(row["may_write"])

    async def remove(self, worker_id: str) -> None:
        """The worker has stopped."""
        await self._session.fetch("remove_worker", worker_id, patience_ms=0)


class DutyStore:
    """Candidates for the loops of timers, sweeper, inbox and upkeep."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def next_timer(self, position: datetime) -> tuple[datetime, float | None]:
        """The database's clock, and seconds until the first timer at or after the position."""
        row = await self._database.fetchrow("next_timer", position)
        assert row is not None  # noqa: S101 - a SELECT without FROM has one row
        return row["clock"], row["seconds"]

    async def due_timers(self, position: datetime, limit: int) -> list[Record]:
        """Timers that are due, oldest first."""
        return await self._database.fetch("due_timers", position, limit)

    async def lapsed_leases(self, limit: int) -> list[Record]:
        """Leases whose worker is silent or whose attempt is out of time."""
        return await self._database.fetch("lapsed_leases", limit)

    async def expired_ready_tasks(self, limit: int) -> list[Record]:
        """Ready tasks whose scheduleToStart has passed."""
        return await self._database.fetch("expired_ready_tasks", limit)

    async def due_inbox(self, kinds: Sequence[str], limit: int, position: int = 0) -> list[Record]:
        """Deliveries of these kinds that are due and have this number or a higher one."""
        return await self._database.fetch("due_inbox", kinds, limit, position)

    async def inbox_beginning(self) -> int:
        """A number below which no delivery waits, but perhaps of a transaction that has not committed yet."""
        row = await self._database.fetchrow("inbox_beginning")
        return int(row[0]) if row else 0

    async def wake_idle_workers(self, channel: str, message: str, queues: Sequence[str], but: Sequence[str]) -> bool:
        """Notify the idle workers of these queues, if there are any; the notification is committed with the read."""
        return bool(await self._database.fetch("wake_idle_workers", channel, message, queues, but))

    async def in_turn(self, duty: str, work: Callable[[], Awaitable[None]]) -> bool:
        """Do the work unless another process is doing this duty now; False if one is."""
        key = advisory_key(self._database.sql.schema, duty)
        text = self._database.sql("take_turn")

        async def run(connection: Connection) -> bool:
            async with connection.transaction():
                if not await connection.fetchval(text, key, TURN_IDLE):
                    return False
                await work()
                return True

        return await self._database.read(run)


class UpkeepStore:
    """Housekeeping statements; the connection lives for one round only."""

    def __init__(self, database: Database) -> None:
        self._database = database

    @asynccontextmanager
    async def session(self) -> AsyncIterator[Session]:
        """A session for one round."""
        session = Session(self._database, "upkeep")
        try:
            yield session
        finally:
            await session.close()

    async def remove_silent_workers(self, session: Session) -> None:
        """Forget workers that have been silent for an hour and hold nothing."""
        await session.fetch("remove_silent_workers")

    async def remove_expired_keys(self, session: Session, limit: int) -> None:
        """Forget idempotency keys whose time has passed."""
        await session.fetch("remove_expired_keys", limit)
