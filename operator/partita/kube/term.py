"""One term of a leader: everything that only a leader does, from the epoch to the last daemon.

Invariant: what is started here is ended here, in the reverse order, before ``run`` returns. The parts know each other
only through the few callables that are wired up here.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from contextlib import AsyncExitStack
from functools import partial

from kopf import OperatorRegistry

from partita.engine.duties import Duties
from partita.engine.engine import Engine
from partita.engine.projection_queue import Projections
from partita.engine.reconcile import Installation, Reconciler
from partita.engine.supervisor import Supervisor
from partita.engine_spec import engine_spec
from partita.kube import metric_families as families
from partita.kube.absence import absent
from partita.kube.client import KubeClient
from partita.kube.connection import load_connection
from partita.kube.definitions import CREATED_BY, Definitions
from partita.kube.embedding import EmbeddedKopf
from partita.kube.engine_object import EngineObject, EngineWatch
from partita.kube.events import Events
from partita.kube.hosting import Host
from partita.kube.installation import EngineEvents, begin_term
from partita.kube.kopf_settings import kopf_settings
from partita.kube.mirror import Mirror
from partita.kube.options import OperatorOptions
from partita.kube.overview import Overview
from partita.kube.pod_label import Labelling, PodLabel
from partita.kube.projector import Projector
from partita.kube.registry import build_registry
from partita.kube.resources import RUNS
from partita.kube.resync import Actions, Resync, Scope
from partita.kube.retention import Retention
from partita.kube.retrying import retrying
from partita.kube.run_events import RunEvents
from partita.kube.runs import Runs, Waiting
from partita.kube.stages import flow_of
from partita.kube.stopping import first_of
from partita.kube.streams import StreamClient
from partita.kube.vitals import Vitals
from partita.kube.watching import Feed, Watch
from partita.settings import Settings
from partita.store.projection import ProjectionStore

log = logging.getLogger(__name__)

PATIENT = 100_000
"""Tries of what a term cannot do without; the operator is stopped from outside if it never works."""


class Term:
    """Wires the parts of a leader together and runs them."""

    def __init__(
        self,
        settings: Settings,
        options: OperatorOptions,
        client: KubeClient,
        engine: Engine,
        store: ProjectionStore,
        installation: Installation,
        vitals: Vitals,
    ) -> None:
        self._vitals = vitals
        self._settings = settings
        self._options = options
        self._client = client
        self._engine = engine
        self._store = store
        self._installation = installation
        self._sight = ProjectionStore(engine.database, "operator-status")
        """A connection of its own, since those who work wait on the other one while the database is away."""
        self._streams = StreamClient(lambda: load_connection(options.kubeconfig), connections=0)
        """For watches, each of which holds a connection for good."""
        self._supervisor = Supervisor()
        self._mirror = Mirror()
        self._watches: list[Watch] = []
        operator = settings.operator
        self._overview = Overview(engine.database, vitals.metrics)
        self._label = PodLabel(client, options.pod_namespace, options.pod_name)
        self._events = Events(client, vitals.metrics, instance=options.identity, per_minute=operator.events_per_minute)
        self._retention = Retention(
            client, self._mirror, vitals.metrics, store.now, default_ms=operator.ttl_after_finished_ms
        )

    async def run(self, stop: asyncio.Event, begun: Callable[[], None]) -> None:
        """Work until ``stop`` is set; raises what ends kopf otherwise, and StillRunningError.

        ``begun`` is called once kopf has begun, which takes the process's signals for itself.
        """
        epoch = await first_of(stop, retrying(lambda: begin_term(self._store, self._installation), tries=PATIENT))
        operator = self._settings.operator
        target = EngineObject(self._client, operator.namespace, engine_spec(operator.engine_spec))
        if epoch is None or await first_of(stop, retrying(target.ensure, tries=PATIENT)) is None:
            return
        log.info("operator: %s leads term %d of %s", self._options.identity, epoch, self._installation.engine_id)
        kopf = EmbeddedKopf(kopf_settings(self._settings), self._watched())
        registry = self._assemble(target, epoch)
        try:
            await kopf.start(registry)
            begun()
            self._show_vitals(epoch)
            self._supervisor.start(self._watch(target, epoch), self._overview, self._events, Labelling(self._label))
            self._supervisor.start(*self._watches)
            await first_of(stop, kopf.ended())
        finally:
            self._engine.database.hurry()  # what waits for a database that is away is the next leader's
            async with AsyncExitStack() as stack:
                for end in (
                    self._label.remove,
                    self._sight.close,
                    self._streams.close,
                    self._supervisor.stop,
                    kopf.stop,
                ):
                    stack.push_async_callback(end)

    def _show_vitals(self, epoch: int) -> None:
        self._vitals.reports = self._supervisor.report
        self._vitals.metrics.set(families.EPOCH, epoch)
        self._vitals.metrics.ask(families.RUN_OBJECTS, lambda: len(self._mirror))

    def _watched(self) -> tuple[str, ...]:
        """Namespaces that kopf watches: the chosen ones and our own, where the WorkflowEngine is; empty means all."""
        operator = self._settings.operator
        return tuple({*operator.watch_namespaces, operator.namespace}) if operator.watch_namespaces else ()

    def _assemble(self, target: EngineObject, epoch: int) -> OperatorRegistry:
        operator = self._settings.operator
        projector = self._projector(epoch)
        reconciler = Reconciler(self._engine, self._store, self._installation, partial(absent, self._client, RUNS))
        runs = Runs(self._client, reconciler, self._mirror, self._vitals.metrics, projector.refused)
        definitions = Definitions(
            self._client,
            self._engine,
            Waiting(runs, self._store, self._installation).appeared,
            retention=self._retention.define,
            tell=self._events.tell,
        )
        resync = self._resync(runs, definitions)
        self._watches = self._run_watches(runs)
        services = [*Duties(self._engine).services, projector, resync, self._retention]
        host = Host(operator.namespace, services, self._supervisor)
        events = EngineEvents(host, target, self._store, self._retention.default, epoch)
        connect = partial(load_connection, self._options.kubeconfig)
        return build_registry(connect, definitions, host, events, operator.watch_namespaces)

    def _run_watches(self, runs: Runs) -> list[Watch]:
        """One for each namespace, or one for all of them; together they handle a bounded number of objects at once."""
        feed = Feed(runs, max(self._settings.operator.worker_limit, self._settings.engine.batch_size))
        namespaces = self._settings.operator.watch_namespaces or ("",)
        return [Watch(self._streams, RUNS, namespace, feed) for namespace in namespaces]

    def _projector(self, epoch: int) -> Projector:
        projections = Projections(self._store, self._settings.limits, self._installation.engine_id, epoch)
        return Projector(
            self._client,
            projections,
            self._mirror,
            self._vitals.metrics,
            RunEvents(self._events.tell, after_ms=self._settings.operator.events_after_ms),
            status_bytes=self._settings.limits.status_bytes,
            before_write=self._options.before_write,
            flow_of=partial(flow_of, self._engine),
            finished=self._retention.finished,
        )

    def _resync(self, runs: Runs, definitions: Definitions) -> Resync:
        operator = self._settings.operator

        async def forget(uids: frozenset[str]) -> None:
            for uid in uids:
                self._mirror.forget(uid)

        return Resync(
            self._client,
            self._store,
            self._mirror,
            Actions(run_gone=runs.gone, run_missed=runs.take_in, definition_gone=definitions.gone, forget=forget),
            Scope(
                cluster_uid=self._installation.cluster_uid,
                engine_id=self._installation.engine_id,
                created_by=CREATED_BY,
                namespaces=operator.watch_namespaces,
            ),
            interval_ms=operator.resync_interval_ms,
            done=lambda: self._vitals.metrics.set(families.LAST_RESYNC, round(time.time(), 3)),
        )

    def _watch(self, target: EngineObject, epoch: int) -> EngineWatch:
        return EngineWatch(
            target,
            self._sight,
            self._supervisor.report,
            load=lambda: self._overview.load,
            metrics=self._vitals.metrics,
            tell=self._events.tell,
            leader=self._options.identity,
            epoch=epoch,
        )
