"""Ready tasks written by hand, so that claims can be tested without a coordinator."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

import asyncpg
from uuid6 import uuid7

from partita.engine.claims import Claimer
from partita.store.claims import ClaimStore
from partita.store.database import Database
from partita.store.session import Session
from tests.engine.manual_clock import ManualClock

INSERT_READY = """
    INSERT INTO partita.ready_tasks (run_id, seq, enqueued_at, expires_at, timeout_ms, index, attempt, generation, lane,
                                     priority, queue, namespace, node, type)
    SELECT run_id, (extract(epoch FROM at - timestamptz '2024-01-01 00:00:00+00') * 1000000)::bigint << 12,
           at, $7, 60000, 0, 1, 0, $2, $3, $4, $5, 'charge', 'charge-card'
    FROM unnest($1::uuid[]) WITH ORDINALITY AS run (run_id, n),
         LATERAL (SELECT clock_timestamp() - $6::float8 * interval '1 second' AS past) AS moment,
         LATERAL (SELECT past + n * interval '1 microsecond' AS at) AS place
"""
INSERT_RECORD = """
    INSERT INTO partita.task_instances (run_id, node, kind, state, attempt, queue, input)
    SELECT run_id, 'charge', 'task', 'Queued', 1, 'default', json_build_object('run', run_id)
    FROM unnest($1::uuid[]) AS run (run_id)
"""


async def enqueue(
    connection: asyncpg.Connection[Any],
    count: int = 1,
    *,
    lane: int = 0,
    priority: int = 0,
    queue: str = "default",
    namespace: str = "shop",
    age: float = 0.0,
    expires_at: Any = None,
) -> list[UUID]:
    """Ready tasks of new runs, enqueued this many seconds ago; returns their runs in order."""
    runs: list[UUID] = [uuid7() for _ in range(count)]
    await connection.execute(INSERT_READY, runs, lane, priority, queue, namespace, age, expires_at)
    await connection.execute(INSERT_RECORD, runs)
    return runs


@dataclass
class Harness:
    """A claimer on its own connection, with a clock of the test's."""

    database: Database
    worker_id: str = "w1"
    clock: ManualClock = field(default_factory=ManualClock)

    sessions: list[Session] = field(default_factory=list)

    def session(self) -> Session:
        """A session that is closed with the harness."""
        self.sessions.append(Session(self.database, "worker"))
        return self.sessions[-1]

    async def close(self) -> None:
        """Close all sessions; their backends hand their counters in."""
        for session in self.sessions:
            await session.close()

    def claimer(self, store: ClaimStore | None = None, **options: Any) -> Claimer:
        return Claimer(
            store or ClaimStore(self.session()),
            **{
                "worker_id": self.worker_id,
                "queues": ["default"],
                "namespaces": None,
                "trail_ms": 50,
                "clock": self.clock,
                **options,
            },
        )
