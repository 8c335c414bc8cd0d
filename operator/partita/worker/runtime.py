"""A worker: claims tasks, executes them in a bounded number of slots, reports, and stops in good order.

Invariant: an attempt is held from the moment its lease is known until its report is answered, and every heartbeat lists
exactly the held ones. Stopping takes nothing new, lets tasks finish for a while, and hands back what is left, so that
another worker goes on without an attempt being spent.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from time import monotonic
from typing import Final
from uuid import UUID

from partita.engine.claims import Claimer, ProtocolTooOldError
from partita.engine.engine import Engine
from partita.engine.requests import PROTOCOL, ClaimedTask, Offer
from partita.engine.service import Clock, Health, Service, SystemClock
from partita.engine.supervisor import Jobs, ServiceReport, Supervisor
from partita.engine.wakeups import Wakeups
from partita.store.claims import ClaimStore
from partita.store.duties import Beat, HeldAttempt, WorkerStore
from partita.store.errors import PrivilegeMissingError
from partita.store.session import Session
from partita.worker.attempts import Abandoned, Attempt, HandedBack
from partita.worker.builtins import Builtins
from partita.worker.farewell import SECONDS as LAST_WORD
from partita.worker.farewell import Farewell
from partita.worker.identity import new_worker_id
from partita.worker.intake import Intake
from partita.worker.pulse import Pulse
from partita.worker.registry import Tasks
from partita.worker.reports import Reporter
from partita.worker.subtasks import install
from partita.worker.tally import Tally, Way
from partita.worker.timeouts import Timeouts
from partita.worker.unless import unless

log = logging.getLogger(__name__)

_LAST_REPORTS: Final = 5.0
"""Seconds that a stopping worker waits for the answers to its last reports."""


class Worker:
    """Executes tasks for one process. ``start`` and ``stop`` once; the engine stays its owner's."""

    def __init__(
        self,
        engine: Engine,
        tasks: Tasks,
        wakeups: Wakeups | None = None,
        *,
        builtins: Builtins | None = None,
        clock: Clock | None = None,
    ) -> None:
        """``wakeups``: those of this process; without them the worker finds work by looking. ``builtins``: None makes
        them with the process's environment, which raises InvalidError for bad credentials."""
        self._engine = engine
        self._wakeups = wakeups
        self._tasks = tasks
        self._builtins = builtins or Builtins(engine, os.environ)
        self._settings = engine.settings.worker
        self._clock = clock
        self._monotonic = (clock or SystemClock()).monotonic
        self._output_bytes = engine.settings.limits.output_bytes
        self._attempts: dict[UUID, Attempt] = {}
        self._timeouts = Timeouts()
        self._jobs = Jobs("attempt", self._slot_freed)
        self._supervisor = Supervisor(clock=clock)
        self._executor = ThreadPoolExecutor(self._settings.slots, thread_name_prefix="partita-task")
        self._stop_wanted = asyncio.Event()
        self._promised = 0
        """Slots kept free for tasks of transactions in progress."""
        self._promises_ended = asyncio.Event()
        self._leaving = asyncio.Event()
        """It has no more use for a database that is away."""
        self.tally = Tally()
        self.queues = frozenset(self._settings.queues)
        self.serves_all_namespaces = not self._settings.namespaces
        self._pulse: Callable[[], Health] = lambda: Health(0, None)
        """How its heartbeat is."""
        self.draining = False
        self.ended = False
        """It has stopped; False after ``stop`` while functions still run in threads: only the process can end these."""
        self.stop_reason = ""
        """Why the worker stops by itself; empty while it does not."""

    async def start(self) -> None:
        """Begin to take tasks; the database need not be reachable yet. A role that may not write it wants to stop."""
        install(asyncio.get_running_loop())
        self.worker_id = new_worker_id()
        namespaces = list(self._settings.namespaces) or None
        self._offer = Offer(
            worker_id=self.worker_id,
            queues=self.queues,
            namespaces=frozenset(namespaces) if namespaces else None,
        )
        self._session = Session(self._engine.database, "worker", ending=self._leaving)
        self._store = WorkerStore(self._session)
        self._reporter = Reporter(self._engine, self.worker_id, tally=self.tally, clock=self._clock)
        claimer = Claimer(
            ClaimStore(self._session),
            worker_id=self.worker_id,
            queues=sorted(self.queues),
            namespaces=namespaces,
            trail_ms=self._engine.settings.engine.claim_trail_ms,
            clock=self._clock,
        )
        self.intake = Intake(
            claimer, self._store, self, self._settings, self._too_old, self._lacking, clock=self._clock
        )
        self.heartbeat = Pulse(
            self._store,
            self,
            self._engine.coordinator.lease_returned,
            self._lacking,
            interval_ms=self._settings.heartbeat_ms,
            clock=self._clock,
        )
        self._pulse = lambda: self.heartbeat.health
        self._supervisor.start(self.heartbeat)
        await unless(self._stop_wanted, self.heartbeat.ticked())
        self._supervisor.start(self.intake)
        if self._wakeups is not None:
            self._wakeups.add(self)
        self._engine.coordinator.idle.add(self)
        self._engine.notices.outdated.append(self._outdated)
        log.info(
            "worker %s serves %s in queues %s", self.worker_id, ", ".join(self._tasks), ", ".join(sorted(self.queues))
        )

    def want_stop(self, reason: str = "") -> None:
        """Ask whoever runs this worker to stop it."""
        self.stop_reason = self.stop_reason or reason
        self._stop_wanted.set()

    async def wait_stop_wanted(self) -> None:
        """Wait until the worker should be stopped."""
        await self._stop_wanted.wait()

    async def stop(self, *, grace: float | None = None) -> None:
        """Take nothing new, let tasks finish for ``grace`` seconds (None: the setting), hand back the rest.

        A database that is away is waited for as long as something is held, which ends a few seconds after ``grace``;
        a worker that holds nothing needs none, since there is nothing to hand back and its row goes by itself.
        """
        self.draining = True
        self._engine.coordinator.idle.remove(self)
        self._engine.notices.outdated.remove(self._outdated)
        if self._wakeups is not None:
            self._wakeups.remove(self)
        idle = not self._jobs and not self._promised
        if idle:
            self._leaving.set()
        await self._supervisor.stop_one(self.intake, grace=LAST_WORD if idle else _LAST_REPORTS)
        self.heartbeat.wake()
        await self._end_promises()
        if not await self._jobs.join(self._settings.stop_grace_ms / 1000 if grace is None else grace):
            for attempt in tuple(self._attempts.values()):
                attempt.give_up(HandedBack(), "the worker stops")
        ended = await self._jobs.join(_LAST_REPORTS)
        self._reporter.give_up()
        self._leaving.set()
        farewell = Farewell(self._store, self, self._engine.coordinator.lease_returned, self.worker_id)
        await farewell.lose_forgotten()
        await self._supervisor.stop(grace=LAST_WORD)
        await self._jobs.cancel()
        await farewell.sign_off()
        await self._session.close()
        await self._builtins.close()
        self._executor.shutdown(wait=False, cancel_futures=True)
        self.ended = ended

    async def abort(self) -> None:
        """Stop at once; what it held is found by the sweeper. Also after a ``start`` that was cancelled."""
        self.draining = True
        self._engine.coordinator.idle.remove(self)
        self._reporter.give_up()
        await self._supervisor.stop(grace=0)
        await self._jobs.cancel(_LAST_REPORTS)
        await self._builtins.close()
        self._executor.shutdown(wait=False, cancel_futures=True)
        await self._session.close()

    def report(self) -> tuple[ServiceReport, ...]:
        """State of the worker's own services."""
        return self._supervisor.report()

    def free(self) -> int:
        """Slots without a task."""
        return 0 if self.draining else self._settings.slots - len(self._jobs) - self._promised

    def used(self) -> int:
        """Slots with a task."""
        return len(self._jobs)

    def heartbeat_age(self) -> float | None:
        """Seconds since the database last answered a heartbeat; None before the first."""
        last = self._pulse().last_tick
        return None if last is None else self._monotonic() - last

    def wake(self) -> None:
        """There is work in one of its queues."""
        self.intake.hint()

    def take(self, tasks: Sequence[ClaimedTask]) -> None:
        """Execute these tasks, each in a slot."""
        for claimed in tasks:
            self._begin(claimed, "claim")

    def promise(self) -> Offer | None:
        """Keep a slot free for a task that is about to be ready; None unless the worker has nothing to do."""
        if not self.intake.found_nothing or self.free() <= self.intake.asking:
            return None
        self._promised += 1
        self._promises_ended.clear()
        return self._offer

    def keep(self, task: ClaimedTask) -> None:
        """Execute this task in a slot that was promised."""
        self._end_promise()
        self._begin(task, "handover")

    def release(self) -> None:
        """A promised slot is not needed."""
        self._end_promise()
        self._slot_freed()

    def doubt(self, claim_id: UUID) -> None:
        """A promised slot's task may have been leased under this id."""
        self.release()
        self.intake.doubt(claim_id)

    def beat(self) -> Beat:
        """What the heartbeat says."""
        return Beat(
            worker_id=self.worker_id,
            lease_ms=self._settings.lease_ms,
            protocol=PROTOCOL,
            slots=self._settings.slots,
            draining=self.draining,
            idle=self.intake.idle and not self.draining,
            namespaces=self._settings.namespaces or None,
            queues=sorted(self.queues),
            types=list(self._tasks),
            host=socket.gethostname(),
            first=self.heartbeat.health.last_tick is None,
        )

    def held(self) -> Sequence[HeldAttempt]:
        """Attempts whose end has not been answered yet."""
        tasks = [attempt.claimed for attempt in self._attempts.values()]
        return [HeldAttempt(task.run_id, task.node, task.index, task.lease_id) for task in tasks]

    def abandon(self, attempt: HeldAttempt) -> None:
        """End an attempt that is no longer this worker's; one that is being reported is answered there."""
        found = self._attempts.get(attempt.lease_id)
        if found is None:
            return
        if not found.executing:
            self._reporter.lease_gone(attempt.lease_id)
        else:
            found.give_up(Abandoned("no longer leased to this worker (cancelled, timed out or lost)"), "abandoned")

    def _begin(self, claimed: ClaimedTask, way: Way) -> None:
        self.tally.took(claimed.queue, way)
        self._jobs.spawn(self._occupy_slot(self._hold(claimed)), f"{claimed.node}/{claimed.run_id}")

    def _hold(self, claimed: ClaimedTask) -> Attempt:
        function = self._tasks.get(claimed.type) or self._builtins.get(claimed.type)
        attempt = Attempt(claimed, function, self._executor, self._output_bytes, self._timeouts)
        self._attempts[claimed.lease_id] = attempt
        if self.draining:
            attempt.give_up(HandedBack(), "the worker stops")
        return attempt

    async def _occupy_slot(self, attempt: Attempt) -> None:
        """Execute an attempt, and what comes with the answer to its report, until nothing does."""
        runner = asyncio.current_task()
        while True:
            try:
                began = monotonic()
                outcome = await attempt.execute(runner)
                self.tally.ended(outcome, monotonic() - began)
                offer = None if self.draining or attempt.thread_runs() else self._offer
                claimed = await self._reporter.report(attempt.claimed, outcome, offer)
                following = None if claimed is None else self._hold(claimed)
            finally:
                self._attempts.pop(attempt.claimed.lease_id, None)
                if attempt.thread_runs():
                    await attempt.settled()
            if following is None:
                return
            self.tally.took(following.claimed.queue, "handover")
            attempt = following

    def _end_promise(self) -> None:
        self._promised -= 1
        if not self._promised:
            self._promises_ended.set()

    def _slot_freed(self) -> None:
        if not self.draining:
            self.intake.slot_freed()

    def _too_old(self, error: ProtocolTooOldError) -> None:
        log.error("%s; this worker hands its tasks back and stops", error)
        self.want_stop(str(error))

    def _lacking(self, service: Service, error: PrivilegeMissingError) -> None:
        """The role may not do what a service does: hopeless when it never could, else for as long as a lease lasts."""
        last = service.health.last_tick
        if last is None or self._monotonic() - last > self._settings.lease_ms / 1000:
            log.error("%s; this worker stops", error)
            self.draining = True
            self.want_stop(str(error))

    def _outdated(self) -> None:
        self.want_stop("the schema demands a newer engine protocol")

    async def _end_promises(self) -> None:
        """Wait for transactions that may hand a task over; it is handed back then."""
        if self._promised:
            with suppress(TimeoutError):
                async with asyncio.timeout(_LAST_REPORTS):
                    await self._promises_ended.wait()
