"""What a worker says at its end of leases that it does not know."""

from __future__ import annotations

from partita.engine.claims import Claimer
from partita.settings import Settings
from partita.store.claims import ClaimStore
from partita.store.session import Session
from partita.worker import Tasks
from tests.worker.hosted import Host, hosted

RUNS = 6


async def claim_unknown(host: Host, worker_id: str) -> None:
    """Leases of this worker that it will never hear of."""
    session = Session(host.engine.database, "lost")
    claimer = Claimer(ClaimStore(session), worker_id=worker_id, queues=["default"], namespaces=None, trail_ms=0)
    assert len(await claimer.claim(RUNS)) == RUNS
    await session.close()


async def test_forgotten_leases_are_ended_together(settings: Settings) -> None:
    """One after the other they would not end within the seconds that a stopping worker has for it."""
    async with hosted(settings, Tasks(), duties=False, queues=("elsewhere",), heartbeat_ms=10_000) as host:
        await host.deploy({"name": "only", "task": {"type": "work"}})
        runs = [await host.start() for _ in range(RUNS)]
        assert host.worker is not None
        await claim_unknown(host, host.worker.worker_id)
        before = host.engine.coordinator.transactions
        await host.worker.stop(grace=0)
        assert host.engine.coordinator.transactions - before <= 2
        for run_id in runs:
            assert await host.events(run_id, "LeaseLost") == [("LeaseLost", "only", 1)]
        assert await host.fetch("SELECT id FROM partita.workers WHERE id = $1", host.worker.worker_id) == []
