"""kopf in our loop and the WorkflowEngine object, on a real API server and a real database."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import kopf
import pytest

from e2e.cluster.contract import Cluster
from partita.domain.errors import ConflictError, NotFoundError
from partita.engine.reconcile import Installation
from partita.engine.service import TickingService
from partita.engine.supervisor import Supervisor
from partita.kube.client import KubeClient
from partita.kube.connection import load_connection
from partita.kube.embedding import EmbeddedKopf
from partita.kube.engine_object import EngineObject
from partita.kube.hosting import Host
from partita.kube.installation import EngineEvents, begin_term, check_crds, check_owner
from partita.kube.kopf_settings import kopf_settings
from partita.kube.lease import Lease, LeaseTimes
from partita.kube.lease_store import KubeLeaseStore
from partita.kube.resources import ENGINE_NAME, ENGINES, GROUP, VERSION
from partita.settings import OperatorSettings, Settings
from partita.store.database import Database
from partita.store.projection import ProjectionStore
from tests.waiting import until


class Counting(TickingService):
    """A duty that counts its rounds and how often it runs at the same time."""

    def __init__(self, name: str = "counting") -> None:
        super().__init__(name)
        self.running = 0
        self.most = 0
        self.starts = 0

    async def run(self) -> None:
        self.running += 1
        self.starts += 1
        self.most = max(self.most, self.running)
        try:
            await super().run()
        finally:
            self.running -= 1

    async def tick(self) -> float:
        return 0.02


@pytest.fixture
async def client(crds: Cluster) -> AsyncIterator[KubeClient]:
    async with KubeClient(partial(load_connection, crds.kubeconfig)) as client:
        yield client


@pytest.fixture
async def store(database: Database) -> AsyncIterator[ProjectionStore]:
    store = ProjectionStore(database)
    yield store
    await store.close()


@asynccontextmanager
async def hosting(
    client: KubeClient, store: ProjectionStore, cluster: Cluster, namespace: str, service: Counting
) -> AsyncIterator[Host]:
    """kopf with the daemons of one WorkflowEngine and nothing else."""
    supervisor = Supervisor()
    host = Host(namespace, [service], supervisor)
    epoch = await begin_term(store, Installation(cluster_uid="c", engine_id=f"c/{namespace}"))
    target = EngineObject(client, namespace)
    await target.ensure()
    registry = kopf.OperatorRegistry()
    kopf.on.login(registry=registry)(lambda **_: load_connection(cluster.kubeconfig))
    events = EngineEvents(host, target, store, lambda _: None, epoch)
    kopf.on.event(GROUP, VERSION, ENGINES.plural, registry=registry)(events.on_event)
    host.register(registry)
    embedded = EmbeddedKopf(kopf_settings(Settings(operator=OperatorSettings(namespace=namespace))), [namespace])
    await embedded.start(registry)
    try:
        yield host
    finally:
        await embedded.stop()
        await supervisor.stop()


async def engine(client: KubeClient, namespace: str) -> dict[str, Any]:
    try:
        return await client.get(ENGINES.path(namespace, ENGINE_NAME))
    except NotFoundError:
        return {}


async def test_a_deleted_engine_is_made_again_and_its_duties_go_on(
    client: KubeClient, store: ProjectionStore, crds: Cluster, namespace: str
) -> None:
    service = Counting()
    async with hosting(client, store, crds, namespace, service) as host:
        await until(lambda: working(service), what="the duty to run")
        first = await engine(client, namespace)
        assert "finalizers" not in first["metadata"]
        assert list(host.daemons) == [(first["metadata"]["uid"], "counting")]
        await asyncio.to_thread(crds.run_kubectl, "-n", namespace, "delete", "wfe", ENGINE_NAME, "--timeout=10s")
        second = await until(lambda: engine(client, namespace), what="the object to be made again")
        expected = [(second["metadata"]["uid"], "counting")]

        async def moved() -> bool:
            return list(host.daemons) == expected

        assert second["metadata"]["uid"] != first["metadata"]["uid"]
        await until(moved, what="the daemon of the new object, and only that")
        await service.ticked()
    assert (service.starts, service.most, service.running) == (1, 1, 0)
    assert not host.daemons


async def test_an_engine_is_deleted_at_once_without_an_operator(
    client: KubeClient, store: ProjectionStore, crds: Cluster, namespace: str
) -> None:
    service = Counting()
    async with hosting(client, store, crds, namespace, service):
        await until(lambda: working(service), what="the duty to run")
    await asyncio.to_thread(crds.run_kubectl, "-n", namespace, "delete", "wfe", ENGINE_NAME, "--timeout=10s")
    assert not await engine(client, namespace)


async def test_pausing_the_engine_reaches_the_database(
    client: KubeClient, store: ProjectionStore, crds: Cluster, namespace: str
) -> None:
    async with hosting(client, store, crds, namespace, Counting()):
        for paused in (True, False):
            path = ENGINES.path(namespace, ENGINE_NAME)
            await client.patch(path, {"spec": {"paused": paused}})

            async def stands(paused: bool = paused) -> bool:
                return bool((await store.engine_state())["paused"]) is paused

            await until(stands, what=f"paused to be {paused}")


async def test_the_settings_of_people_survive_a_new_leader(client: KubeClient, crds: Cluster, namespace: str) -> None:
    target = EngineObject(client, namespace)
    await target.ensure()
    crds.run_kubectl("-n", namespace, "patch", "wfe", ENGINE_NAME, "--type=merge", "-p", '{"spec":{"paused":true}}')
    assert (await target.ensure())["spec"] == {"paused": True}


async def test_a_foreign_installation_is_refused_with_both_names(store: ProjectionStore) -> None:
    ours, theirs = (Installation(cluster_uid=name, engine_id=f"{name}/partita") for name in ("ours", "theirs"))
    await check_owner(store, ours)
    assert await begin_term(store, ours) == 1
    assert await begin_term(store, ours) == 2
    with pytest.raises(ConflictError, match=r"belongs to installation ours/partita; expected theirs/partita"):
        await check_owner(store, theirs)
    with pytest.raises(ConflictError, match=r"ours/partita"):
        await begin_term(store, theirs)


async def test_the_crds_are_looked_for(client: KubeClient) -> None:
    await check_crds(client)


async def test_two_candidates_on_a_real_api(client: KubeClient, namespace: str) -> None:
    times = LeaseTimes(duration=3, deadline=2, pause=0.1, look=0.1, request=1)
    first, second = (Lease(KubeLeaseStore(client, namespace), name, times) for name in ("a", "b"))
    await first.acquire()
    waiting = asyncio.create_task(second.acquire())
    keeping = asyncio.create_task(first.keep())
    await asyncio.sleep(0)
    assert leaders(first, second) == ["a"]
    keeping.cancel()
    await first.release()
    await asyncio.wait_for(waiting, 10)
    assert leaders(first, second) == ["b"]
    assert not await first._attempt(first._take)


def leaders(*candidates: Lease) -> list[str]:
    return [candidate.identity for candidate in candidates if candidate.held]


async def working(service: Counting) -> bool:
    return service.running == 1 and service.health.ticks > 0
