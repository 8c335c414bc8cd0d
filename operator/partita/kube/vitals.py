"""How an operator process is: its part in the leadership, and the duties of a leader.

Invariant: whoever stops leading forgets what only a leader says. Readiness gates rolling upgrades: a standby that waits
does its work, and so does a leader whose database is away, which it says; one with a duty that has been in the same
round for half an hour does not. Trade-off: no such duty is a reason for a restart, since the others work.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from partita.kube import metric_families as families
from partita.probes.vitals import Readiness, no_duties, standing
from partita.probes.vitals import Vitals as Common

STANDING_SECONDS = 1_800.0
"""How long one round may take: far longer than any that gets on, and its requests are bounded by seconds."""
NO_DATABASE = "database: not reached; see the condition Synced of the WorkflowEngine"


class Vitals(Common):
    """State of one operator process. ``clock``: seconds since some fixed moment."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(families.FAMILIES, families.DUTIES, clock=clock)
        self._state = "starting"
        self.metrics.set(families.LEADER, 0)

    @property
    def state(self) -> str:
        """``starting``, ``standby`` or ``leader``."""
        return self._state

    def become(self, state: str) -> None:
        """Enter a state; whoever stops leading forgets what only a leader says."""
        if state != "leader":
            self.metrics.clear()
            self.reports = no_duties
        self._state = state
        self.metrics.set(families.LEADER, float(state == "leader"))

    def readiness(self) -> Readiness:
        """The state; below it what keeps a leader from its work, a line each."""
        standing_still = standing(self.reports(), STANDING_SECONDS)
        away = NO_DATABASE if self.metrics.value(families.DATABASE_UP) == 0 else ""
        words = [self._state, *filter(None, (away, standing_still))]
        return Readiness(self._state != "starting" and not standing_still, "\n".join(words))
