"""The operator process: one of several leads, watches the cluster, writes statuses and hosts the engine's duties.

Order of the start: find out who we are, check CRDs, schema and its owner, become leader, begin a term. The end runs
backwards, and the Lease is given up last, when nothing of this process can write any more.
Invariant: a candidate leads once. One that loses its Lease is taken apart down to its connections, and only then the
next one, with a name and connections of its own, begins as a new process would; what cannot be ended in time ends the
process. Trade-off: definitions and objects are read anew, which a new process would do as well.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
from contextlib import AsyncExitStack
from dataclasses import replace

from partita.domain.errors import UnavailableError
from partita.engine.engine import Engine
from partita.engine.reconcile import Installation
from partita.engine.requests import PROTOCOL
from partita.kube.client import KubeClient
from partita.kube.connection import load_connection
from partita.kube.installation import check_crds, check_owner, identify
from partita.kube.kopf_settings import quiet_logs
from partita.kube.lease import Lease, LeaseTimes
from partita.kube.lease_store import KubeLeaseStore
from partita.kube.options import OperatorOptions
from partita.kube.pod_label import PodLabel
from partita.kube.stopping import first_of, own_signals, take_signals
from partita.kube.term import Term
from partita.kube.vitals import Vitals
from partita.probes.health import serving
from partita.probes.vitals import beating
from partita.settings import OperatorSettings, Settings
from partita.store.errors import SchemaMissingError
from partita.store.migrations import require_protocol
from partita.store.projection import ProjectionStore

log = logging.getLogger(__name__)

RETRY_SECONDS = 2.0


class LeadershipLostError(UnavailableError):
    """Another operator may lead now; this candidate has ended."""

    reason = "LeadershipLost"


async def run_operator(
    settings: Settings, options: OperatorOptions | None = None, *, stop: asyncio.Event | None = None
) -> None:
    """Run until SIGTERM or SIGINT, or until ``stop`` is set; a lost Lease begins everything anew.

    Raises ConflictError for a schema of another installation, OutdatedError for one that a newer version has migrated,
    also when that happens while it runs, SchemaMissingError, CrdsMissingError and StillRunningError.
    """
    options, stop = options or OperatorOptions(), stop or asyncio.Event()
    quiet_logs()
    vitals = Vitals()
    async with AsyncExitStack() as stack:
        stack.enter_context(own_signals(stop))
        await stack.enter_async_context(serving(options.health_host, options.health_port, vitals))
        await stack.enter_async_context(beating(vitals))
        name = options.identity
        for number in itertools.count(2):
            try:
                await _candidate(settings, options, stop, vitals)
            except LeadershipLostError as error:
                log.warning("%s; begins again as a standby", error)
                options = replace(options, identity=f"{name}-{number}", former=options.identity)
            else:
                return


async def _candidate(settings: Settings, options: OperatorOptions, stop: asyncio.Event, vitals: Vitals) -> None:
    """One candidate from its first connection to its last; raises LeadershipLostError when all of it has ended."""
    vitals.become("starting")
    async with AsyncExitStack() as stack:
        client = await stack.enter_async_context(KubeClient(lambda: load_connection(options.kubeconfig)))
        engine = await stack.enter_async_context(await Engine.open(settings, application="partita-operator"))
        store = ProjectionStore(engine.database)
        stack.push_async_callback(store.close)
        outdated = asyncio.Event()
        engine.notices.outdated.extend((outdated.set, stop.set))
        installation = await first_of(stop, _prepare(client, engine, store))
        if installation is None:
            return
        lease = _lease(client, settings.operator, options)
        vitals.become("standby")
        await PodLabel(client, options.pod_namespace, options.pod_name).remove()
        await first_of(stop, lease.acquire())
        if lease.held:
            vitals.become("leader")
            try:
                await _lead(lease, Term(settings, options, client, engine, store, installation, vitals), stop, vitals)
            finally:
                vitals.become("starting")
        if outdated.is_set():
            await require_protocol(engine.database, PROTOCOL)


async def _prepare(client: KubeClient, engine: Engine, store: ProjectionStore) -> Installation:
    """Check everything that has to be in place; waits for an API or a database that is away."""
    while True:
        try:
            installation = await identify(client, engine.settings.operator)
            await check_crds(client)
            await require_protocol(engine.database, PROTOCOL)
            await check_owner(store, installation)
        except SchemaMissingError:
            raise
        except UnavailableError as error:
            log.warning("operator: waits: %s", error)
            await asyncio.sleep(RETRY_SECONDS)
        else:
            return installation


async def _lead(lease: Lease, term: Term, stop: asyncio.Event, vitals: Vitals) -> None:
    """Work while the Lease is held; raises LeadershipLostError when it is lost and the work has ended."""
    over = asyncio.Event()
    keeping = asyncio.create_task(lease.keep(), name="partita:lease")
    stopping = asyncio.create_task(stop.wait(), name="partita:stop")
    keeping.add_done_callback(lambda _: vitals.become("starting"))
    for task in (keeping, stopping):
        task.add_done_callback(lambda _: over.set())
    try:
        await term.run(over, lambda: take_signals(stop))
    finally:
        for task in (keeping, stopping):
            task.cancel()
        await asyncio.gather(keeping, stopping, return_exceptions=True)
        await lease.release()
    if not stop.is_set():
        raise LeadershipLostError("operator: the Lease was lost; another operator may lead now")


def _lease(client: KubeClient, settings: OperatorSettings, options: OperatorOptions) -> Lease:
    times = LeaseTimes(
        duration=settings.lease_duration_ms / 1000,
        deadline=settings.lease_deadline_ms / 1000,
        pause=settings.lease_renew_ms / 1000,
        look=settings.lease_renew_ms / 2000,
        request=settings.lease_renew_ms / 1000,
    )
    return Lease(KubeLeaseStore(client, settings.namespace), options.identity, times, former=options.former)
