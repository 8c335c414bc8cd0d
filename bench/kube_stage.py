"""A Kubernetes API, a database and Partita's own processes: what the scripts of the Kubernetes path measure on.

Invariant: everything but the objects is made for one script and removed with it; the operator watches one namespace.
Trade-off: clients are coroutines with a connection each and not processes of kubectl, whose start alone would take most
of the processors' time.
"""

from __future__ import annotations

import asyncio
import secrets
import shutil
import tempfile
import time
from asyncio.subprocess import Process
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Final

import asyncpg

from bench import processes
from bench.figures import Figure, emit
from bench.loop import run
from bench.postgres import measured
from e2e.cluster import Cluster, ClusterError, ProviderUnavailable, choose, running, to_stderr
from partita.domain.errors import PartitaError
from partita.kube.client import KubeClient
from partita.kube.connection import load_connection
from partita.kube.resources import API_VERSION, DEFINITIONS, RUNS
from partita.settings import Settings

PATIENCE: Final = 120.0
"""Seconds after which what does not come is a fault."""
_CRDS: Final = Path(__file__).parents[1] / "crds"


@dataclass(frozen=True, slots=True)
class Stage:
    """A namespace on a cluster, and a database."""

    cluster: Cluster
    client: KubeClient
    namespace: str
    settings: Settings
    observer: asyncpg.Connection[asyncpg.Record]
    """A connection to the database for questions between measurements."""

    def operator(self, port: int = 0) -> AbstractAsyncContextManager[Process]:
        """An operator; ``port`` is that of its probes, 0 for none."""
        variables = {
            **self.cluster.environment(),
            "PARTITA_OPERATOR_NAMESPACE": self.namespace,
            "PARTITA_OPERATOR_WATCH_NAMESPACES": self.namespace,
        }
        return processes.partita(self.settings, "operator", "--health-port", str(port), variables=variables)

    def worker(self) -> AbstractAsyncContextManager[Process]:
        """A worker."""
        return processes.partita(self.settings, *processes.worker(self.settings))

    async def define(self, name: str, spec: Mapping[str, Any], started: Sequence[Process]) -> None:
        """Apply a definition and wait until the operator has accepted it."""
        body = {"apiVersion": API_VERSION, "kind": DEFINITIONS.kind, "metadata": {"name": name}, "spec": spec}
        path = DEFINITIONS.path(self.namespace, name)
        await self.client.apply(path, body, "bench")
        deadline = time.monotonic() + PATIENCE
        while not _ready(found := await self.client.get(path)):
            processes.check(started)
            if time.monotonic() > deadline:
                raise SystemExit(f"bench: {name} is not Ready after {PATIENCE:.0f} s: {found.get('status')}")
            await asyncio.sleep(0.1)

    def path(self, name: str = "") -> str:
        """The path of a run's object, or of all of them."""
        return RUNS.path(self.namespace, name)

    async def by_clients(
        self, clients: int, work: Callable[[KubeClient, Iterator[Any]], Coroutine[Any, Any, None]], todo: Sequence[Any]
    ) -> None:
        """Let some clients, each with a connection of its own, take from one list until nothing is left of it."""
        left = iter(todo)

        async def client() -> None:
            async with KubeClient(partial(load_connection, self.cluster.kubeconfig), connections=1, seconds=60) as own:
                try:
                    await work(own, left)
                except PartitaError as error:
                    raise SystemExit(f"bench: {error}") from error

        await asyncio.gather(*(client() for _ in range(max(1, min(clients, len(todo))))))


def run_object(name: str, definition: str, **spec: Any) -> dict[str, Any]:
    """A WorkflowRun."""
    return {
        "apiVersion": API_VERSION,
        "kind": RUNS.kind,
        "metadata": {"name": name},
        "spec": {"definitionRef": {"name": definition}, **spec},
    }


def play(work: Callable[[Stage], Coroutine[Any, Any, list[Figure]]], *, missing: Figure, slots: int) -> None:
    """Measure and print; ``missing`` is printed where no cluster can be had. ``slots``: those of the worker."""
    folder = Path(tempfile.mkdtemp(prefix="partita-bench-kube-"))
    try:
        with running(choose(folder / "cluster", "bench", to_stderr)) as cluster, measured() as settings:
            chosen = replace(settings, worker=replace(settings.worker, slots=slots))
            emit(run(_play(cluster, chosen, work)))
    except (ProviderUnavailable, ClusterError) as error:
        emit([replace(missing, value=None, setting={"why": str(error)})])
    finally:
        shutil.rmtree(folder, ignore_errors=True)


async def _play(
    cluster: Cluster, settings: Settings, work: Callable[[Stage], Coroutine[Any, Any, list[Figure]]]
) -> list[Figure]:
    async with _staged(cluster, settings) as stage:
        return await work(stage)


@asynccontextmanager
async def _staged(cluster: Cluster, settings: Settings) -> AsyncIterator[Stage]:
    namespace = f"bench-{secrets.token_hex(4)}"
    cluster.apply(_CRDS)
    cluster.run_kubectl("wait", "--for=condition=Established", "--timeout=60s", "-f", str(_CRDS))
    cluster.run_kubectl("create", "namespace", namespace)
    async with AsyncExitStack() as stack:
        stack.callback(cluster.run_kubectl, "delete", "namespace", namespace, "--wait=false")
        client = await stack.enter_async_context(KubeClient(partial(load_connection, cluster.kubeconfig)))
        observer = await asyncpg.connect(settings.database.url)
        stack.push_async_callback(observer.close)
        yield Stage(cluster, client, namespace, settings, observer)


def _ready(found: dict[str, Any]) -> bool:
    conditions = (found.get("status") or {}).get("conditions") or ()
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)
