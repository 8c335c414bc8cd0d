"""Every setting of every process, in one frozen tree.

Purpose: one place that names each number, with its unit, its default and its bounds; all processes (operator, worker,
CLI) read the same tree from the environment. Invariant: a tree that exists is valid, since ``load`` reports every bad
variable at once and refuses the whole. Trade-off: settings are read once at start and never change while a process
runs, so that no part of it can see two values.

A field ``batch_size`` of the section ``engine`` is read from ``PARTITA_ENGINE_BATCH_SIZE``. Names that end in ``_ms``
are milliseconds, in ``_bytes`` bytes. No field may end in ``port``, ``host`` or ``addr``: Kubernetes sets variables
such as ``PARTITA_OPERATOR_PORT`` in every pod beside a Service of that name.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from partita.database_url import url_problem
from partita.domain.errors import InvalidError, Problem
from partita.engine_spec import engine_spec_problem
from partita.environment import read, variable
from partita.listening import listening_problem
from partita.targets import target_problem

FIXED: Final = {"PARTITA_MIGRATIONS_URL": ("database", "migrations_url")}
_URLS: Final = ("url", "migrations_url", "read_url")
_IDENTIFIER: Final = r"(?!pg_|information_schema$)[a-z_][a-z0-9_]{0,47}"


def _int(default: int, low: int, high: int) -> int:
    """A whole number within bounds (both included)."""
    return field(default=default, metadata={"low": low, "high": high})


def _text(default: str, pattern: str, expected: str) -> str:
    """A text that matches a pattern as a whole; ``expected`` says it in words."""
    return field(default=default, metadata={"pattern": pattern, "expected": expected})


def _url() -> str:
    """A connection URL; what is wrong with one is said without repeating it, since it may hold a password."""
    return field(default="", metadata={"check": url_problem})


@dataclass(frozen=True, slots=True, kw_only=True)
class DatabaseSettings:
    """Where PostgreSQL is and how it is reached."""

    url: str = _url()
    """Connection URL of the engine; empty where none is needed."""
    migrations_url: str = _url()
    """Direct connection URL for migrations and partition changes; empty takes ``url``.
    Needed where ``url`` leads through a transaction-pooling proxy."""
    read_url: str = _url()
    """Connection URL for reads, such as that of the reader role or of a standby; empty takes ``url``."""
    schema: str = _text("partita", _IDENTIFIER, "a lower-case SQL identifier of at most 48 characters")
    """Schema that holds one installation."""
    pooled: bool = False
    """``url`` leads through a transaction-pooling proxy (PgBouncer): nothing is kept in the session."""
    planner: str = _text("auto", "auto|role", "auto or role")
    """Who sets the coordinator's planner options: ``auto`` sets them in the session (in each transaction when pooled),
    ``role`` relies on ALTER ROLE, as ``partita migrate --roles`` does it."""
    read_connections: int = _int(4, 1, 100)
    """Most connections of one process for reads."""
    connect_timeout_ms: int = _int(5_000, 100, 600_000)
    """How long one attempt to connect may take."""
    patience_ms: int = _int(15_000, 0, 3_600_000)
    """How long a request waits for a database that cannot be reached before it is answered with Unavailable."""
    backoff_min_ms: int = _int(50, 1, 60_000)
    """First pause between attempts to reconnect; it doubles up to ``backoff_max_ms``, with jitter."""
    backoff_max_ms: int = _int(2_000, 1, 600_000)
    """Longest pause between attempts to reconnect."""
    statement_timeout_ms: int = _int(30_000, 0, 3_600_000)
    """How long one statement may run before it is cancelled; 0 means for ever."""

    def __post_init__(self) -> None:
        """Refuse URLs that cannot be understood, whoever made these settings; raises InvalidError."""
        problems = [(name, url_problem(url)) for name in _URLS if (url := getattr(self, name))]
        if any(problem for _, problem in problems):
            raise InvalidError("database", tuple(Problem(name, problem) for name, problem in problems if problem))


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineSettings:
    """The coordinator and the duties that every process shares."""

    batch_size: int = _int(500, 1, 5_000)
    """Most events in one transaction."""
    lanes: int = _int(1, 1, 16)
    """Connections on which one process commits at the same time, each for its share of the run ids."""
    queue_size: int = _int(10_000, 1, 1_000_000)
    """Most events that wait for a transaction in one process; beyond it a request is refused as Overloaded."""
    skips_before_blocking: int = _int(3, 1, 100)
    """How often a run may be skipped because another process holds it, before it is locked alone, waiting."""
    lock_timeout_ms: int = _int(5_000, 10, 600_000)
    """How long a run that is locked alone is waited for."""
    decide_rounds: int = _int(3, 1, 10)
    """How often a decision may ask for more rows before its whole run is loaded."""
    decide_ms: int = _int(500, 1, 60_000)
    """How long the decisions of one transaction may take together; further events go into others."""
    timer_tick_ms: int = _int(200, 10, 60_000)
    """Longest pause between looks for due timers."""
    sweep_interval_ms: int = _int(10_000, 100, 600_000)
    """Pause between searches for lapsed leases and overdue attempts."""
    inbox_tick_ms: int = _int(500, 10, 60_000)
    """Longest pause between looks for undelivered inbox rows."""
    message_grace_ms: int = _int(2_000, 0, 600_000)
    """How long a message between runs is left to the process that sent it, before any other delivers it."""
    upkeep_interval_ms: int = _int(60_000, 1_000, 86_400_000)
    """Pause between rounds of upkeep (expired keys, partitions ahead)."""
    claim_trail_ms: int = _int(50, 0, 60_000)
    """How far behind the remembered position a claim starts."""
    lost_leases: int = _int(10, 0, 1_000)
    """How often an attempt may be lost with its worker before the node fails."""
    unknown_types: int = _int(10, 0, 1_000)
    """How often an attempt may be taken by a worker that does not know its type before that counts as its failure."""
    asked_retries: int = _int(3, 0, 1_000)
    """Retries that a worker may ask for when no tier of the node's policy matches."""
    loop_chunk: int = _int(500, 1, 5_000)
    """Items of a forEach that one transaction makes; a larger window is filled by several."""
    drain_ms: int = _int(60_000, 0, 86_400_000)
    """How long undo waits for attempts in flight to report, before what they did counts as unknown."""
    undo_tries: int = _int(5, 1, 1_000)
    """Tries of an undo task whose definition has no default retry."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerSettings:
    """A process that executes tasks."""

    slots: int = _int(16, 1, 10_000)
    """Tasks that run at the same time."""
    queues: tuple[str, ...] = ("default",)
    """Queues that are served, separated by commas."""
    namespaces: tuple[str, ...] = ()
    """Namespaces that are served, separated by commas; empty serves all."""
    lease_ms: int = _int(30_000, 1_000, 3_600_000)
    """How long an attempt stays with a worker that has gone silent."""
    heartbeat_ms: int = _int(10_000, 100, 600_000)
    """Pause between heartbeats; less than half the lease."""
    poll_min_ms: int = _int(20, 1, 60_000)
    """Shortest pause between looks for work."""
    poll_max_ms: int = _int(500, 1, 60_000)
    """Longest pause between looks for work when idle."""
    stop_grace_ms: int = _int(30_000, 0, 3_600_000)
    """How long a stopping worker lets its tasks finish before it hands them back."""
    health_bind: str = field(default="", metadata={"check": listening_problem})
    """Where probes and metrics are served, as ADDRESS:PORT such as ``0.0.0.0:8080``; empty serves none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerHttpSettings:
    """Requests of the built-in task ``partita.http``."""

    allowed_targets: tuple[str, ...] = field(default=(), metadata={"check": target_problem})
    """Hosts (``*.`` before one means every name below it) and networks that may be reached although they are not
    public."""
    connect_timeout_ms: int = _int(10_000, 100, 600_000)
    """How long it may take to look a name up and connect."""
    redirects: int = _int(5, 0, 20)
    """Most redirects that one request follows; they never leave the scheme, host and port of its URL."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorSettings:
    """The Kubernetes operator."""

    namespace: str = _text("partita-system", r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?", "a namespace's name")
    """Namespace of the operator: its Lease and its WorkflowEngine object live there."""
    watch_namespaces: tuple[str, ...] = ()
    """Namespaces that are watched, separated by commas; empty watches all."""
    cluster_uid: str = ""
    """Identity of the cluster; empty takes the uid of the namespace kube-system."""
    lease_duration_ms: int = _int(15_000, 3_000, 600_000)
    """How long another replica waits after the leader's last renewal before it takes over."""
    lease_deadline_ms: int = _int(10_000, 1_000, 600_000)
    """After how long without a renewal the leader stops leading; less than the duration."""
    lease_renew_ms: int = _int(2_000, 100, 60_000)
    """Pause between renewals, and how long one renewal may take."""
    project_delay_ms: int = _int(100, 0, 60_000)
    """How long changes of phase and conditions are gathered before the status is written."""
    progress_interval_ms: int = _int(10_000, 0, 600_000)
    """Shortest pause between writes that show progress only."""
    resync_interval_ms: int = _int(300_000, 1_000, 86_400_000)
    """Pause between comparisons of the cluster's objects with the database."""
    worker_limit: int = _int(200, 1, 5_000)
    """Objects that are handled at the same time; at least the engine's batch size."""
    ttl_after_finished_ms: int = _int(86_400_000, 0, 10 * 365 * 86_400_000)
    """How long a finished WorkflowRun object stays when neither it, its definition nor the WorkflowEngine says so."""
    engine_spec: str = field(default="", metadata={"check": engine_spec_problem})
    """Spec of the WorkflowEngine object when the leader makes it, as a JSON object such as
    ``{"ttlSecondsAfterFinished": 3600}``; an object that exists keeps its own."""
    events_per_minute: int = _int(600, 0, 60_000)
    """Most Kubernetes Events that are written in a minute; 0 writes none."""
    events_after_ms: int = _int(5_000, 0, 3_600_000)
    """How long news of a run that gets on is held back; one that succeeds sooner makes no Event."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitSettings:
    """Bounds of what users send."""

    input_bytes: int = _int(1_048_576, 1_024, 64 * 1_048_576)
    """Largest input of a run."""
    output_bytes: int = _int(1_048_576, 1_024, 64 * 1_048_576)
    """Largest output of a node or a run, and largest payload of a signal."""
    signals_buffered: int = _int(10_000, 1, 1_000_000)
    """Signals of one run that may wait to be taken."""
    signals_bytes: int = _int(16 * 1_048_576, 1_024, 1_024 * 1_048_576)
    """Payloads of these signals in all; they are read whenever the run's mailbox is."""
    status_bytes: int = _int(16_384, 4_096, 65_536)
    """Largest status of a WorkflowRun object."""
    status_output_bytes: int = _int(2_048, 0, 32_768)
    """Largest output that is shown in a status."""
    attempt_timeout_ms: int = _int(300_000, 100, 365 * 86_400_000)
    """Time limit of an attempt when neither node nor definition sets one."""
    child_depth: int = _int(50, 1, 1_000)
    """Most ancestors of a run, so that definitions that start each other come to an end."""
    loop_items: int = _int(10_000, 1, 1_000_000)
    """Most items of a forEach."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RetentionSettings:
    """How long records stay."""

    months: int = _int(12, 1, 1_200)
    """Whole months that are kept besides the current one."""
    months_ahead: int = _int(3, 1, 120)
    """Months for which partitions exist in advance."""
    months_behind: int = _int(1, 0, 120)
    """Months before the current one for which a new installation makes partitions: WorkflowRun objects that are older
    than the installation by more are refused as Expired."""
    accept_ahead_ms: int = _int(86_400_000, 0, 31 * 86_400_000)
    """How far ahead of the database's clock a run id may lie."""
    lock_timeout_ms: int = _int(200, 10, 60_000)
    """How long a change of partitions waits for a lock before it tries again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """All settings of a process."""

    database: DatabaseSettings = field(default_factory=DatabaseSettings)
    engine: EngineSettings = field(default_factory=EngineSettings)
    worker: WorkerSettings = field(default_factory=WorkerSettings)
    worker_http: WorkerHttpSettings = field(default_factory=WorkerHttpSettings)
    operator: OperatorSettings = field(default_factory=OperatorSettings)
    limits: LimitSettings = field(default_factory=LimitSettings)
    retention: RetentionSettings = field(default_factory=RetentionSettings)

    @classmethod
    def load(cls, environ: Mapping[str, str]) -> Settings:
        """Read the settings from environment variables.

        Raises InvalidError that lists every variable which is unknown, unreadable or out of bounds.
        """
        found, problems = read(environ, cls, fixed=FIXED)
        settings = cls(**found)
        problems = problems or _relations(settings)
        if problems:
            raise InvalidError("settings", tuple(problems), hint="unset the variable to take its default")
        return settings


def _relations(settings: Settings) -> list[Problem]:
    """Settings that contradict each other."""
    rules = [
        ("worker", "heartbeat_ms", settings.worker.heartbeat_ms * 2 < settings.worker.lease_ms, "half of lease_ms"),
        (
            "operator",
            "lease_deadline_ms",
            settings.operator.lease_deadline_ms < settings.operator.lease_duration_ms,
            "lease_duration_ms",
        ),
        (
            "database",
            "backoff_min_ms",
            settings.database.backoff_min_ms <= settings.database.backoff_max_ms,
            "backoff_max_ms",
        ),
    ]
    return [
        Problem(variable(section, name), f"expected less than {other}") for section, name, ok, other in rules if not ok
    ]
