"""The metrics of the operator, from which ``/metrics`` and a table of ``docs/metrics.md`` are written.

Invariant: a name, once released, keeps its meaning and its labels. Labels have few values: queues are the fullest
fifty, and nothing is labelled by run or definition.
"""

from __future__ import annotations

from typing import Final

from partita.probes.families import duty_families
from partita.probes.metrics import Family

LEADER: Final = Family(
    name="partita_operator_leader", kind="gauge", help="Whether this replica leads (1) or stands by (0).", everyone=True
)
EPOCH: Final = Family(name="partita_operator_epoch", kind="gauge", help="Number of the leader's term.")
DUTIES: Final = duty_families("operator", "the leader", "the term began")
RUN_OBJECTS: Final = Family(
    name="partita_operator_workflowruns", kind="gauge", help="WorkflowRun objects that the leader knows."
)
RECONCILES: Final = Family(
    name="partita_operator_reconciles_total",
    kind="counter",
    help="WorkflowRun objects taken in, by what came of it: started, applied, waiting, refused or error.",
    labels=("outcome",),
)
STATUS_WRITES: Final = Family(
    name="partita_operator_status_writes_total", kind="counter", help="Status patches sent to WorkflowRun objects."
)
STATUS_FAILURES: Final = Family(
    name="partita_operator_status_write_failures_total",
    kind="counter",
    help="Statuses that could not be written at once and are tried again.",
)
DELETED: Final = Family(
    name="partita_operator_objects_deleted_total",
    kind="counter",
    help="Finished WorkflowRun objects that were deleted, by cause: ttl or limit.",
    labels=("cause",),
)
EVENTS: Final = Family(
    name="partita_operator_events_total",
    kind="counter",
    help="Kubernetes Events by result: sent, dropped (beyond the allowed rate) or failed.",
    labels=("result",),
)
LAST_SYNC: Final = Family(
    name="partita_operator_last_sync_timestamp_seconds",
    kind="gauge",
    help="Unix time of the last round of the projector after which no status was overdue or waited for another try.",
)
LAST_RESYNC: Final = Family(
    name="partita_operator_last_resync_timestamp_seconds",
    kind="gauge",
    help="Unix time of the last complete comparison of objects and database.",
)
DATABASE_UP: Final = Family(
    name="partita_database_up", kind="gauge", help="Whether the database answers (1) or not (0)."
)
PAUSED: Final = Family(
    name="partita_engine_paused", kind="gauge", help="Whether spec.paused of the WorkflowEngine stops the engine."
)
PROJECTION_ROWS: Final = Family(
    name="partita_projection_queue_rows", kind="gauge", help="Runs whose object does not show their record yet."
)
OPEN_RUNS: Final = Family(
    name="partita_open_runs", kind="gauge", help="Runs that have not ended, counted up to 100,000."
)
READY: Final = Family(
    name="partita_ready_tasks",
    kind="gauge",
    help="Tasks that wait for a worker, counted up to 100,000 in all.",
    labels=("queue",),
)
LEASED: Final = Family(
    name="partita_leased_tasks",
    kind="gauge",
    help="Tasks that workers hold, counted up to 100,000 in all.",
    labels=("queue",),
)
WORKERS: Final = Family(
    name="partita_queue_workers", kind="gauge", help="Live workers that serve a queue.", labels=("queue",)
)
OLDEST: Final = Family(
    name="partita_oldest_ready_task_age_seconds",
    kind="gauge",
    help="How long the task that has waited longest for a worker has waited.",
    labels=("queue",),
)
DEAD: Final = Family(
    name="partita_dead_letters", kind="gauge", help="Timers and messages that were given up, counted up to 1,000."
)
AHEAD: Final = Family(
    name="partita_partition_months_ahead", kind="gauge", help="Months after the present one that have their partitions."
)
FAMILIES: Final = (
    LEADER,
    EPOCH,
    *DUTIES.all,
    RUN_OBJECTS,
    RECONCILES,
    STATUS_WRITES,
    STATUS_FAILURES,
    DELETED,
    EVENTS,
    LAST_SYNC,
    LAST_RESYNC,
    DATABASE_UP,
    PAUSED,
    PROJECTION_ROWS,
    OPEN_RUNS,
    READY,
    LEASED,
    WORKERS,
    OLDEST,
    DEAD,
    AHEAD,
)
"""Those besides what every process says, in the order in which they are written."""
