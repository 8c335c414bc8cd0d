"""The duties that every process with a coordinator shares, so that workers go on while the operator is away.

Invariant: the same services run in workers and in the operator; turns by advisory lock keep all but one waiting.
"""

from __future__ import annotations

from partita.engine.engine import Engine
from partita.engine.inbox import Inbox
from partita.engine.service import Clock, Service
from partita.engine.sweeper import Sweeper
from partita.engine.timers import Timers
from partita.engine.upkeep import Upkeep
from partita.engine.wakeups import WakeupListener, Wakeups
from partita.store.duties import DutyStore, UpkeepStore


class Duties:
    """The services of one process, to be handed to its supervisor: ``supervisor.start(*duties.services)``."""

    def __init__(self, engine: Engine, *, listen: bool = False, clock: Clock | None = None) -> None:
        """``listen``: a worker of this process waits for work (behind a transaction-pooling proxy it has to poll)."""
        settings, notices = engine.settings, engine.notices
        store = DutyStore(engine.database)
        self.wakeups = Wakeups(engine.database, clock=clock)
        self.timers = Timers(
            store,
            engine.coordinator,
            longest_ms=settings.engine.timer_tick_ms,
            trail_ms=settings.engine.claim_trail_ms,
            clock=clock,
        )
        self.sweeper = Sweeper(store, engine.coordinator, interval_ms=settings.engine.sweep_interval_ms, clock=clock)
        self.inbox = Inbox(store, engine, longest_ms=settings.engine.inbox_tick_ms, clock=clock)
        self.upkeep = Upkeep(store, UpkeepStore(engine.database), settings, clock=clock)
        notices.ready.append(self.wakeups.enqueued)
        notices.timer.append(self.timers.timers_set)
        services: list[Service] = [self.wakeups, self.timers, self.sweeper, self.inbox, self.upkeep]
        if listen and not settings.database.pooled:
            services.append(WakeupListener(engine.database, self.wakeups, clock=clock))
        self.services = tuple(services)
