"""A worker played by hand: claims and reports without a runtime."""

from __future__ import annotations

from typing import Any

from partita.engine.claims import Claimer
from partita.engine.requests import ClaimedTask, Report
from partita.store.claims import ClaimStore
from partita.store.session import Session
from tests.worker.hosted import Host

LIVE_WORKER = (
    "INSERT INTO partita.workers (id, heartbeat_at, expires_at, protocol, slots, queues)"
    " VALUES ($1, clock_timestamp(), clock_timestamp() + $2 * interval '1 second', 1, 1, '{default}')"
    " ON CONFLICT (id) DO UPDATE SET heartbeat_at = excluded.heartbeat_at, expires_at = excluded.expires_at"
)


async def claim(host: Host, worker_id: str = "w1", *, alive_for: float = 60.0) -> ClaimedTask:
    """Claim one task for a worker that is written into the table by hand."""
    session = Session(host.engine.database, "claimer")
    await host.engine.database.read(lambda connection: connection.execute(LIVE_WORKER, worker_id, alive_for))
    store = ClaimStore(session)
    claimer = Claimer(store, worker_id=worker_id, queues=["default"], namespaces=None, trail_ms=50)
    (task,) = await claimer.claim(1)
    await session.close()
    return task


def done(task: ClaimedTask, worker_id: str = "w1", **options: Any) -> Report:
    return Report(
        run_id=task.run_id,
        generation=task.generation,
        node=task.node,
        index=task.index,
        attempt=task.attempt,
        lease_id=task.lease_id,
        worker_id=worker_id,
        **options,
    )
