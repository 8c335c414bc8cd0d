"""A queue of submissions in front of one connection: group commit.

Purpose: while a transaction is in flight its successors gather, and the next one takes them all. Invariant: nothing
waits when nothing is in flight; a run that another process holds never stops the others (it is skipped, and after
some skips waited for on a connection of its own); the queue is bounded. Trade-off: no linger; a lone request pays one
transaction, and only load makes batches large.
"""

from __future__ import annotations

import asyncio
from collections import deque
from uuid import UUID

from partita.domain.errors import EngineError, OverloadedError, UnavailableError
from partita.engine.submissions import Start, Submission
from partita.engine.transactor import Transactor
from partita.settings import EngineSettings

_PAUSE = 0.002
"""Seconds before a skipped run is tried again when there is nothing else to do; doubles with its first few skips."""
_DOUBLINGS = 5
_HOT = 1.0
"""Seconds in which a run that was skipped too often is waited for without being tried: others compete for it. Whoever
tries, instead of waiting, may take the run before those that wait, and so keep them from their turn for long."""
_TURN = 0.05
"""Seconds that a run waits for the connection on which runs are waited for. Another run may keep it for as long as a
process that was frozen keeps that run locked."""
_GRACE = 2.0
"""Seconds that a transaction has to end when the process stops and nobody waits for its outcome any more."""


class Lane:
    """The runs of one process whose ids fall into this lane."""

    def __init__(self, transactor: Transactor, patient: Transactor, settings: EngineSettings) -> None:
        self._transactor = transactor
        self._patient = patient
        self._settings = settings
        self._queue: deque[Submission] = deque()
        self._wake = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._closing = False
        self._held: dict[UUID, asyncio.Task[None]] = {}
        """Runs that are being waited for, each by one task."""
        self._hot: dict[UUID, float] = {}
        """Runs that were skipped too often lately, and the loop's time until which that counts."""
        self._taken: list[Submission] = []
        """What the transaction in progress settles."""
        self._waited: dict[UUID, list[Submission]] = {}
        """What is to happen to the held runs."""

    def open(self) -> None:
        """Begin to work."""
        self._task = asyncio.get_running_loop().create_task(self._work(), name="partita-lane")

    async def close(self) -> None:
        """Settle what was accepted, and end. A transaction that nobody waits for any more is given up after a moment:
        on a database that hangs it would not end.
        """
        self._closing = True
        self._wake.set()
        if self._task is not None:
            while owed := self._owed():
                await asyncio.wait(owed)
            await self._end({self._task, *self._held.values()})
        await self._transactor.close()

    def _owed(self) -> set[asyncio.Future[object]]:
        """Answers that are owed. Looked for at the end only: to keep a set of them took 1 µs a submission."""
        waited = [one for of_run in self._waited.values() for one in of_run]
        return {one.future for one in (*self._queue, *self._taken, *waited) if not one.future.done()}

    async def _end(self, tasks: set[asyncio.Task[None]]) -> None:
        _, hanging = await asyncio.wait(tasks, timeout=_GRACE)
        for task in hanging:
            task.cancel()
        await asyncio.gather(*hanging, return_exceptions=True)
        for task in tasks - hanging:
            task.result()

    @property
    def waiting(self) -> int:
        """Submissions that no transaction has taken yet."""
        return len(self._queue)

    @property
    def transactions(self) -> int:
        """Transactions begun so far."""
        return self._transactor.transactions

    def put(self, submission: Submission) -> None:
        """Accept a submission; raises OverloadedError when the queue is full and UnavailableError after ``close``."""
        if self._closing:
            raise UnavailableError("engine: is stopping; expected a running process")
        if len(self._queue) >= self._settings.queue_size:
            raise OverloadedError(
                f"engine: {len(self._queue)} requests wait already; expected fewer than "
                f"PARTITA_ENGINE_QUEUE_SIZE={self._settings.queue_size}",
                hint="send it again later",
            )
        self._queue.append(submission)
        self._wake.set()

    async def _work(self) -> None:
        while self._queue or self._held or not self._closing:
            self._wake.clear()
            batch = self._taken = self._take()
            if not batch:
                await self._wake.wait()
                continue
            skipped = await _settle(self._transactor, batch)
            if skipped:
                await self._put_back(skipped)

    def _take(self) -> list[Submission]:
        """The next batch: in order of arrival, but for runs that are being waited for and for what must not share a
        transaction with the start of its run or a second start of the same key."""
        batch: list[Submission] = []
        later: list[Submission] = []
        apart: set[object] = set()  # names that a start of this batch claims, and runs that have other submissions
        starts: set[object] = set()
        size, queue, held = self._settings.batch_size, self._queue, self._held
        hot = self._hottest() if self._hot else None
        alone: list[Submission] = []
        while queue and len(batch) + len(alone) < size:
            one = queue.popleft()
            if one.future.done():
                continue
            if one.run_id in held or one.run_id in starts:
                later.append(one)
            elif one.run_id == hot:
                alone.append(one)
            elif isinstance(one, Start):
                names = {one.run_id, *one.keys}
                (batch if apart.isdisjoint(names) else later).append(one)
                starts.add(one.run_id)
                apart |= names
            else:
                batch.append(one)
                apart.add(one.run_id)
        queue.extendleft(reversed(later))
        if hot is not None and alone:
            self._hold(hot, alone)
        return batch

    def _hottest(self) -> UUID | None:
        """A run for which others compete and that is to be waited for at once: one at a time, as it takes a connection;
        a second one is tried, and skipped, like any other."""
        now = asyncio.get_running_loop().time()
        self._hot = {run_id: until for run_id, until in self._hot.items() if until > now}
        return None if self._held else next((one.run_id for one in self._queue if one.run_id in self._hot), None)

    async def _put_back(self, skipped: list[Submission]) -> None:
        """Skipped submissions ride the next batch; after too many skips their run is waited for."""
        for one in skipped:
            one.skips += 1
        patient = {one.run_id for one in skipped if one.skips >= self._settings.skips_before_blocking}
        self._queue.extendleft(reversed([one for one in skipped if one.run_id not in patient]))
        for run_id in patient:
            self._hot[run_id] = asyncio.get_running_loop().time() + _HOT
            self._hold(run_id, [one for one in skipped if one.run_id == run_id])
        if self._queue and len(self._queue) <= len(skipped):
            await self._pause(max(one.skips for one in skipped))

    def _hold(self, run_id: UUID, submissions: list[Submission]) -> None:
        """Wait for a run, beside the batches."""
        self._waited[run_id] = submissions
        self._held[run_id] = asyncio.get_running_loop().create_task(self._wait_for(run_id, submissions))

    async def _wait_for(self, run_id: UUID, submissions: list[Submission]) -> None:
        over = all(one.expires <= asyncio.get_running_loop().time() for one in submissions)
        left = await _settle(self._patient, submissions, wait=True, turn_seconds=None if over else _TURN)
        del self._held[run_id], self._waited[run_id]
        if left:  # another run keeps the connection: meanwhile this one is tried again
            self._hot.pop(run_id, None)
        self._queue.extendleft(reversed(left))
        self._wake.set()

    async def _pause(self, skips: int) -> None:
        """Give the other process a moment, unless something else arrives."""
        self._wake.clear()
        try:
            async with asyncio.timeout(_PAUSE * 2 ** min(skips, _DOUBLINGS)):
                await self._wake.wait()
        except TimeoutError:
            return


async def _settle(
    transactor: Transactor, batch: list[Submission], *, wait: bool = False, turn_seconds: float | None = None
) -> list[Submission]:
    """Settle a batch; a defect of this program fails the batch and not the lane."""
    try:
        return await transactor.settle(batch, wait=wait, turn_seconds=turn_seconds)
    except Exception as error:  # noqa: BLE001  # a lane that died would leave every later caller without an answer
        for one in batch:
            one.fail(EngineError(f"engine: {type(error).__name__}: {error}"))
        return []
