"""How full the engine is, for the metrics and for the status of the WorkflowEngine.

Invariant: what it reads is bounded: counts end at a limit, and the months ahead are looked at now and then only.
Trade-off: numbers are up to ten seconds old, and above the limit they say only that there are at least so many.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Any, Final

from partita.engine.service import TickingService
from partita.kube import metric_families as families
from partita.probes.metrics import Metrics
from partita.store import partitions
from partita.store.database import Database

log = logging.getLogger(__name__)

INTERVAL_SECONDS = 10.0
MONTHS_SECONDS = 600.0
MOST: Final = 100_000
"""Rows of one kind that are counted."""
DEAD_MOST: Final = 1_000
QUEUES_SHOWN: Final = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """What the engine has to do now."""

    open_runs: int = 0
    ready: int = 0
    running: int = 0
    queues: tuple[dict[str, Any], ...] = ()
    """The fullest queues as a status shows them, by name."""


class Overview(TickingService):
    """Looks at the database every ten seconds."""

    def __init__(self, database: Database, metrics: Metrics) -> None:
        super().__init__("overview")
        self._database = database
        self._metrics = metrics
        self._months_at = float("-inf")
        self.load: Load | None = None
        """None before the first look."""

    async def tick(self) -> float:
        """One look. Raises UnavailableError while the database is away."""
        counts = (await self._database.fetch("operator_counts", MOST, DEAD_MOST))[0]
        queues = await self._database.fetch("operator_queues", MOST, QUEUES_SHOWN)
        self.load = Load(
            open_runs=counts["open_runs"],
            ready=sum(row["ready"] for row in queues),
            running=sum(row["running"] for row in queues),
            queues=tuple(
                {"name": row["queue"], "ready": row["ready"], "running": row["running"], "workers": row["workers"]}
                for row in sorted(queues, key=lambda row: str(row["queue"]))
            ),
        )
        self._metrics.set(families.PROJECTION_ROWS, counts["projection_rows"])
        self._metrics.set(families.OPEN_RUNS, counts["open_runs"])
        self._metrics.set(families.DEAD, counts["dead_letters"])
        for family, column in (
            (families.READY, "ready"),
            (families.LEASED, "running"),
            (families.WORKERS, "workers"),
            (families.OLDEST, "oldest_seconds"),
        ):
            self._metrics.replace(family, {(str(row["queue"]),): float(row[column]) for row in queues})
        await self._months()
        return INTERVAL_SECONDS

    async def _months(self) -> None:
        now = self._clock.monotonic()
        if now - self._months_at >= MONTHS_SECONDS:
            self._metrics.set(families.AHEAD, (await partitions.status(self._database)).ahead)
            self._months_at = now
