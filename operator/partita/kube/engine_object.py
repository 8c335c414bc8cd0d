"""The WorkflowEngine object: made by the leader, made again when deleted, and its status.

Invariant: there is one, named ``partita``, in the operator's namespace; only the leader writes it. Its status is the
one place that shows a lost database, since the status of a run comes from the database itself. What the settings say
of its spec holds when it is made; from then on the spec is people's. Trade-off: it is looked at every few seconds, and
written only when it would change.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Final

from partita.domain.errors import ConflictError, NotFoundError, PartitaError
from partita.engine.service import TickingService
from partita.engine.supervisor import ServiceReport, ServiceState
from partita.kube import metric_families as families
from partita.kube.client import KubeClient
from partita.kube.conditions import Condition, keep_transitions, manifests
from partita.kube.engine_events import engine_news
from partita.kube.events import News
from partita.kube.overview import Load
from partita.kube.resources import API_VERSION, ENGINE_NAME, ENGINES, FIELD_MANAGER
from partita.probes.metrics import Metrics
from partita.store.errors import SchemaMissingError
from partita.store.projection import ProjectionStore

log = logging.getLogger(__name__)

UNSUPPORTED: Final = ("concurrencyLimits", "jobDefaults")
INTERVAL_SECONDS = 2.0
PATIENCE_MS = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """What the leader sees of its engine."""

    leader: str
    epoch: int
    paused: bool
    database: PartitaError | None
    """Why the database cannot be used; None when it can."""
    services: Sequence[ServiceReport]
    load: Load | None = None
    """None where it is not known."""
    ignored: Sequence[str] = ()
    """Fields of its spec that have no effect in this version."""


@dataclass(frozen=True, slots=True)
class Change:
    """The status of the object before and after a look."""

    metadata: Mapping[str, Any]
    before: Mapping[str, Any]
    after: Mapping[str, Any]


class EngineObject:
    """Keeps the object in existence."""

    def __init__(self, client: KubeClient, namespace: str, spec: Mapping[str, Any] | None = None) -> None:
        """``spec``: what a new object says."""
        self._client = client
        self._collection = ENGINES.path(namespace)
        self._path = ENGINES.path(namespace, ENGINE_NAME)
        self._spec = dict(spec or {})
        self._manifest = {
            "apiVersion": API_VERSION,
            "kind": ENGINES.kind,
            "metadata": {
                "name": ENGINE_NAME,
                "namespace": namespace,
                "labels": {"app.kubernetes.io/name": "partita", "app.kubernetes.io/managed-by": "partita"},
            },
            "spec": {},
        }

    async def ensure(self) -> dict[str, Any]:
        """Make the object, or take its labels over; what people set in its spec stays."""
        try:
            await self._client.get(self._path)
        except NotFoundError:
            with contextlib.suppress(ConflictError):  # somebody else has made it meanwhile
                await self._client.create(self._collection, {**self._manifest, "spec": self._spec})
        return await self._client.apply(self._path, self._manifest, FIELD_MANAGER)

    async def show(self, observation: Observation) -> Change:
        """Write the status if it would change; makes the object again if it is gone."""
        try:
            body = await self._client.get(self._path)
        except NotFoundError:
            body = await self.ensure()
        before = body.get("status") or {}
        seen = replace(observation, ignored=ignored(body.get("spec") or {}))
        status = engine_status(seen, body["metadata"]["generation"], before, datetime.now(UTC))
        if any(before.get(key) != value for key, value in status.items()):
            await self._client.patch(f"{self._path}/status", {"status": status})
        return Change(body["metadata"], before, status)


class EngineWatch(TickingService):
    """Looks at database and duties and shows what it sees.

    It is no daemon of the object, since it is what makes the object again.
    """

    def __init__(
        self,
        target: EngineObject,
        store: ProjectionStore,
        reports: Callable[[], Sequence[ServiceReport]],
        *,
        load: Callable[[], Load | None],
        metrics: Metrics,
        tell: Callable[[News], None],
        leader: str,
        epoch: int,
    ) -> None:
        """``load``: how full the engine is; ``tell`` takes news for Events."""
        super().__init__("engine-status")
        self._load = load
        self._metrics = metrics
        self._tell = tell
        self._target = target
        self._store = store
        self._reports = reports
        self._leader = leader
        self._epoch = epoch
        self._paused = False

    async def tick(self) -> float:
        """One look."""
        problem: PartitaError | None = None
        try:
            self._paused = bool((await self._store.engine_state(PATIENCE_MS))["paused"])
        except PartitaError as error:
            problem = error
        seen = Observation(
            leader=self._leader,
            epoch=self._epoch,
            paused=self._paused,
            database=problem,
            services=self._reports(),
            load=self._load(),
        )
        self._metrics.set(families.DATABASE_UP, float(problem is None))
        self._metrics.set(families.PAUSED, float(self._paused))
        change = await self._target.show(seen)
        for news in engine_news(change.metadata, change.before, change.after):
            self._tell(news)
        return INTERVAL_SECONDS


def engine_status(seen: Observation, generation: int, before: Mapping[str, Any], now: datetime) -> dict[str, Any]:
    """Status of the object; ``before`` keeps the times of conditions that did not change."""
    conditions = _conditions(seen, now)
    degraded = any(condition.status is False for condition in conditions)
    phase = "Degraded" if degraded else "Paused" if seen.paused else "Running"
    return {
        "observedGeneration": generation,
        "phase": phase,
        "leader": seen.leader,
        "epoch": seen.epoch,
        **(_load(seen.load) if seen.load is not None else {}),
        "conditions": keep_transitions(manifests(conditions, generation), before.get("conditions") or []),
    }


def _load(load: Load) -> dict[str, Any]:
    return {
        "openRuns": load.open_runs,
        "readyTasks": load.ready,
        "runningTasks": load.running,
        "queues": list(load.queues),
    }


def ignored(spec: Mapping[str, Any]) -> tuple[str, ...]:
    """Fields that are set and whose meaning comes with a later version."""
    return tuple(f"spec.{name}" for name in UNSUPPORTED if spec.get(name))


def _accepted(seen: Observation, now: datetime) -> Condition:
    if not seen.ignored:
        return Condition("Accepted", True, "Accepted", "", now)
    words = f"{', '.join(seen.ignored)}: not supported by this version, no effect"
    return Condition("Accepted", True, "FieldNotSupported", words, now)


def _conditions(seen: Observation, now: datetime) -> list[Condition]:
    schema = not isinstance(seen.database, SchemaMissingError)
    failing = [report for report in seen.services if report.state is ServiceState.BACKING_OFF]
    words = "; ".join(f"{report.name}: {report.last_error}" for report in failing)
    database = str(seen.database) if seen.database else ""
    return [
        _accepted(seen, now),
        Condition("Ready", not failing, "DutyFails" if failing else "Running", words, now),
        Condition("Synced", seen.database is None, seen.database.reason if seen.database else "Synced", database, now),
        Condition(
            "SchemaCurrent", schema, "SchemaCurrent" if schema else "SchemaMissing", "" if schema else database, now
        ),
    ]
