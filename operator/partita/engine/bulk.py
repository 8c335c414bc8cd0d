"""Transactions of many starts at once, beside the lanes.

Purpose: a caller with thousands of runs to start has them committed in large transactions, without one task and one
wake-up for each. Invariant: every start is answered, as in a lane; starts lock no run that exists, so that these
transactions wait for nobody and the lanes not for them. Trade-off: two connections of their own, made at the first use,
so that one lot is prepared while the server works on the other.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from typing import Final

from partita.domain.errors import EngineError, PartitaError, UnavailableError
from partita.engine.batch import Tools
from partita.engine.submissions import Start
from partita.engine.transactor import Transactor
from partita.store.database import Database

_CONNECTIONS: Final = 2

Lot = Sequence[Start]


class Bulk:
    """One process's transactions of many starts."""

    def __init__(self, tools: Tools, database: Database) -> None:
        self._transactors = [
            Transactor(tools, database.dedicated(f"coordinator-starts-{number}")) for number in range(_CONNECTIONS)
        ]
        self._closing = False
        self._open: set[asyncio.Task[None]] = set()

    async def close(self) -> None:
        """Settle the lots that were begun, refuse the rest, give the connections back."""
        self._closing = True
        if self._open:
            await asyncio.wait(self._open)
        for transactor in self._transactors:
            await transactor.close()

    @property
    def transactions(self) -> int:
        """Transactions begun so far."""
        return sum(transactor.transactions for transactor in self._transactors)

    async def settle(self, lots: Iterator[Lot]) -> None:
        """Answer the starts of all lots, each in a transaction. ``lots`` is asked for the next one when it is needed.

        What is answered is the starts' futures; when the caller is cancelled, some are not.
        """
        loop = asyncio.get_running_loop()
        workers = [loop.create_task(self._work(transactor, lots)) for transactor in self._transactors]
        self._transactors.append(self._transactors.pop(0))  # callers with a single lot take turns
        for worker in workers:
            self._open.add(worker)
            worker.add_done_callback(self._open.discard)
        await asyncio.gather(*workers)

    async def _work(self, transactor: Transactor, lots: Iterator[Lot]) -> None:
        for lot in lots:
            if self._closing:
                _fail(lot, UnavailableError("engine: is stopping; expected a running process"))
                continue
            try:
                await transactor.settle(lot)
            except Exception as error:  # noqa: BLE001  # a defect fails its lot and not the caller's others
                _fail(lot, EngineError(f"engine: {type(error).__name__}: {error}"))


def _fail(lot: Lot, error: PartitaError) -> None:
    for one in lot:
        one.fail(error)
