"""A process that starts runs one after another and works on them itself; each start that was answered is a line."""

from __future__ import annotations

import asyncio
import os
import sys

from partita.engine import Engine, StartRequest
from partita.engine.duties import Duties
from partita.settings import Settings
from partita.worker.runtime import Worker
from tests.faults.fault_tasks import app
from tests.worker.hosted import NAMESPACE


async def main(count: int) -> None:
    """Start ``count`` runs of the definition ``order`` with the keys 0, 1, …"""
    async with await Engine.open(Settings.load(os.environ)) as engine:
        worker = Worker(engine, app, Duties(engine, listen=False).wakeups)
        await worker.start()
        for number in range(count):
            request = StartRequest(namespace=NAMESPACE, definition="order", idempotency_key=str(number))
            print((await engine.start(request)).run_id, flush=True)
        await worker.stop()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1])))
