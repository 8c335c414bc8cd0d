"""A namespace with a running operator, and a worker beside it, for tests on a real API server and a real database.

The operator runs in the test's own event loop where its inside matters, and as a process of its own (``process.py``)
where it has to be killed. Each test has its namespace and its database, and its operator watches only that namespace,
so that tests can share a cluster with others.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from e2e.cluster.contract import Cluster
from partita.domain.errors import NotFoundError
from partita.engine.duties import Duties
from partita.engine.engine import Engine
from partita.engine.supervisor import Supervisor
from partita.kube.client import KubeClient
from partita.kube.connection import load_connection
from partita.kube.operator import run_operator
from partita.kube.options import OperatorOptions
from partita.kube.resources import DEFINITIONS, ENGINE_NAME, ENGINES, RUNS, Resource
from partita.settings import OperatorSettings, Settings
from partita.worker import TaskContext, Tasks
from partita.worker.runtime import Worker
from tests.waiting import until

API_VERSION = "partita.dev/v1alpha1"
Object = dict[str, Any]
PATIENCE_SECONDS = 90.0
"""How long a test waits for an object: a bound of what is wrong, far above what a busy machine needs."""


def operator_settings(settings: Settings, namespace: str, **changes: Any) -> Settings:
    """Settings of an operator that watches one namespace, with a quick lease and a quick resync."""
    fields: dict[str, Any] = {
        "namespace": namespace,
        "watch_namespaces": (namespace,),
        "lease_duration_ms": 8_000,
        "lease_deadline_ms": 6_000,
        "lease_renew_ms": 1_500,
        "resync_interval_ms": 1_000,
    }
    return replace(settings, operator=OperatorSettings(**{**fields, **changes}))


def definition(name: str, nodes: list[Object], **spec: Any) -> Object:
    """A WorkflowDefinition."""
    return {
        "apiVersion": API_VERSION,
        "kind": "WorkflowDefinition",
        "metadata": {"name": name},
        "spec": {"nodes": nodes, **spec},
    }


def run(name: str, of: str, **spec: Any) -> Object:
    """A WorkflowRun."""
    return {
        "apiVersion": API_VERSION,
        "kind": "WorkflowRun",
        "metadata": {"name": name},
        "spec": {"definitionRef": {"name": of}, **spec},
    }


def task(name: str, type_: str = "echo", **fields: Any) -> Object:
    """A task node."""
    return {"name": name, "task": {"type": type_}, **fields}


CHAIN = [task("first", input={"n": 1}), task("second", dependsOn=["first"]), task("third", dependsOn=["second"])]
APPROVAL: list[Object] = [{"name": "approval", "waitForEvent": {}}]
"""A run that waits for one signal."""


@dataclass(frozen=True, slots=True)
class Namespace:
    """One namespace of a cluster: creating, reading, patching and waiting."""

    cluster: Cluster
    client: KubeClient
    name: str

    async def create(self, obj: Object) -> Object:
        """Create an object and return it."""
        resource = DEFINITIONS if obj["kind"] == "WorkflowDefinition" else RUNS
        return await self.client.create(resource.path(self.name), obj)

    async def kubectl(self, *arguments: str, stdin: str | None = None) -> str:
        """Run kubectl in the namespace; raises ClusterError when it fails."""
        return await asyncio.to_thread(self.cluster.run_kubectl, "--namespace", self.name, *arguments, stdin=stdin)

    async def get(self, resource: Resource, name: str) -> Object:
        """An object; empty when there is none."""
        try:
            return await self.client.get(resource.path(self.name, name))
        except NotFoundError:
            return {}

    async def patch_run(self, name: str, spec: Object) -> Object:
        """Merge into a run's spec."""
        return await self.client.patch(RUNS.path(self.name, name), {"spec": spec})

    async def signal(self, run: str, identity: str, name: str = "approval", payload: Object | None = None) -> None:
        """Append a signal the way people do."""
        value = {"id": identity, "name": name, **({} if payload is None else {"payload": payload})}
        operations = [{"op": "add", "path": "/spec/signals/-", "value": value}]
        await self.kubectl("patch", "wfr", run, "--type=json", "-p", json.dumps(operations))

    async def run_until(
        self, name: str, accepts: Callable[[Object], bool], what: str, within: float = PATIENCE_SECONDS
    ) -> Object:
        """A run's status once it is as expected."""
        return await self._until(RUNS, name, accepts, what, within)

    async def phase(self, name: str, *phases: str, within: float = PATIENCE_SECONDS) -> Object:
        """A run's status once it is in one of these phases."""
        return await self.run_until(name, lambda status: status.get("phase") in phases, f"{phases}", within)

    async def definition_until(self, name: str, accepts: Callable[[Object], bool], what: str) -> Object:
        """A definition's status once it is as expected."""
        return await self._until(DEFINITIONS, name, accepts, what, 30)

    async def accepted(self, name: str) -> Object:
        """A definition's status once it is accepted."""
        return await self.definition_until(name, lambda status: condition(status, "Ready") == "True", "Ready")

    async def engine_until(
        self, accepts: Callable[[Object], bool], what: str, within: float = PATIENCE_SECONDS
    ) -> Object:
        """The WorkflowEngine's status once it is as expected."""
        return await self._until(ENGINES, ENGINE_NAME, accepts, what, within)

    async def _until(
        self, resource: Resource, name: str, accepts: Callable[[Object], bool], what: str, within: float
    ) -> Object:
        last: Object = {}

        async def check() -> Object | None:
            nonlocal last
            last = await self.get(resource, name)
            status: Object = last.get("status") or {}
            return status if accepts(status) else None

        try:
            return await until(check, within=within, every=0.05) or {}
        except AssertionError as error:
            raise AssertionError(f"{resource.kind} {name}: not {what} within {within} s: {last}") from error


def condition(status: Object, kind: str, part: str = "status") -> str:
    """A part of a condition; empty when there is none."""
    for each in status.get("conditions") or ():
        if each["type"] == kind:
            return str(each[part])
    return ""


@asynccontextmanager
async def namespace_of(cluster: Cluster, name: str) -> AsyncIterator[Namespace]:
    """A namespace with a client of its own."""
    async with KubeClient(partial(load_connection, cluster.kubeconfig)) as client:
        yield Namespace(cluster, client, name)


@asynccontextmanager
async def operating(
    namespace: Namespace, settings: Settings, options: OperatorOptions | None = None, *, ready: bool = True
) -> AsyncIterator[asyncio.Task[None]]:
    """An operator in this loop, leading and ``ready``; its end is awaited and has to be clean."""
    options = options or OperatorOptions()
    options = replace(options, kubeconfig=options.kubeconfig or namespace.cluster.kubeconfig)
    stop = asyncio.Event()
    task = asyncio.create_task(run_operator(settings, options, stop=stop))
    try:
        if ready:
            await leading(namespace, options.identity, task)
        yield task
    finally:
        stop.set()
        await task


async def leading(namespace: Namespace, identity: str, task: asyncio.Task[None] | None = None) -> None:
    """Wait until this operator leads and runs all its duties."""

    def ready(status: Object) -> bool:
        if task is not None and task.done():
            task.result()
        return status.get("leader") == identity and condition(status, "Ready") == "True"

    await namespace.engine_until(ready, f"led by {identity}")


def echo_tasks() -> Tasks:
    """Tasks that tests use: ``echo`` returns its input."""
    tasks = Tasks()

    @tasks.task("echo")
    async def echo(ctx: TaskContext, **_: Any) -> Object:
        return {"echo": ctx.input}

    return tasks


@asynccontextmanager
async def working(settings: Settings, tasks: Tasks | None = None) -> AsyncIterator[Worker]:
    """A worker in this loop."""
    async with await Engine.open(settings, application="test-worker") as engine:
        duties, supervisor = Duties(engine, listen=True), Supervisor()
        worker = Worker(engine, tasks or echo_tasks(), duties.wakeups)
        supervisor.start(*duties.services)
        await worker.start()
        try:
            yield worker
        finally:
            await worker.stop(grace=1)
            await supervisor.stop()
