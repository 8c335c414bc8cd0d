"""The metrics of a worker, from which its ``/metrics`` and a table of ``docs/metrics.md`` are written.

Invariant: a name, once released, keeps its meaning and its labels. Labels have few values: the queues are those that
the worker serves, and nothing is labelled by run, definition or type of task.
"""

from __future__ import annotations

from typing import Final

from partita.probes.families import duty_families
from partita.probes.metrics import Family

READY: Final = Family(
    name="partita_worker_ready", kind="gauge", help="Whether the worker takes tasks (1), as /readyz says, or not (0)."
)
HEARTBEAT_AGE: Final = Family(
    name="partita_worker_heartbeat_age_seconds",
    kind="gauge",
    help="How long ago the database last answered a heartbeat; there is none before the first.",
)
SLOTS: Final = Family(
    name="partita_worker_slots", kind="gauge", help="Tasks that the worker may execute at the same time."
)
USED: Final = Family(name="partita_worker_slots_used", kind="gauge", help="Slots that are taken by a task.")
ATTEMPTS: Final = Family(
    name="partita_worker_attempts_total",
    kind="counter",
    help="Attempts that ended here, by outcome: succeeded, failed, handed_back (the worker stops) or abandoned "
    "(cancelled, timed out or lost, so that nothing is reported).",
    labels=("outcome",),
)
SECONDS: Final = Family(
    name="partita_worker_attempt_seconds_total",
    kind="counter",
    help="How long these attempts took in all.",
    labels=("outcome",),
)
REPORTS: Final = Family(
    name="partita_worker_reports_total",
    kind="counter",
    help="Reports of attempts by their answer: applied, already_applied, stale (the attempt was another's by then) or "
    "unrecorded.",
    labels=("answer",),
)
CLAIMS: Final = Family(
    name="partita_worker_claims_total",
    kind="counter",
    help="Looks for work by what came of them: found, empty or failed.",
    labels=("result",),
)
TAKEN: Final = Family(
    name="partita_worker_tasks_taken_total",
    kind="counter",
    help="Tasks taken from a queue, by way: claim, or handover by the transaction of this process that made it ready.",
    labels=("queue", "way"),
)
DUTIES: Final = duty_families("worker", "the worker's process", "it began")

FAMILIES: Final = (
    READY,
    HEARTBEAT_AGE,
    SLOTS,
    USED,
    ATTEMPTS,
    SECONDS,
    REPORTS,
    CLAIMS,
    TAKEN,
    *DUTIES.all,
)
"""Those besides what every process says, in the order in which they are written."""
