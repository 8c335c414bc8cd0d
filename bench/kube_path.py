"""The Kubernetes path: WorkflowRuns applied by many clients at once, until a watcher has seen all of them succeed.

API server, etcd, operator, worker, PostgreSQL, the clients and the watcher share the machine. Each client has one
connection and applies its share one after the other by server-side apply, as ``kubectl apply --server-side`` does; they
are coroutines and not processes of kubectl, whose start alone would take most of the processors' time.
"""

from __future__ import annotations

import asyncio
import secrets
import shutil
import tempfile
import time
from asyncio.subprocess import Process
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Final

from bench import processes
from bench.cpu import memory, seconds
from bench.figures import Figure, emit, say
from bench.kube_watch import watching
from bench.loop import run
from bench.options import Options, parse
from bench.postgres import measured
from bench.workload import NAME, spec
from e2e.cluster import Cluster, ClusterError, ProviderUnavailable, choose, running, to_stderr
from partita.domain.errors import PartitaError
from partita.kube.client import KubeClient
from partita.kube.connection import load_connection
from partita.kube.resources import API_VERSION, DEFINITIONS, RUNS
from partita.settings import Settings

SECONDS_GOAL: Final = 10.0
WRITES_GOAL: Final = 2.0
_PATIENCE: Final = 120.0
_CRDS: Final = Path(__file__).parents[1] / "crds"


@dataclass(frozen=True, slots=True)
class Round:
    """What one round took."""

    seconds: float
    applied: float
    """Seconds until the last client was done."""
    writes: float
    """Writes of the operator for a run."""
    operator_cpu: float
    worker_cpu: float


def main(arguments: Sequence[str]) -> None:
    """Measure and print."""
    text = "Seconds until runs that were applied to Kubernetes have succeeded."
    options = parse(arguments, "kube_path", text, runs=500, submitters=20, slots=100, repeats=5)
    folder = Path(tempfile.mkdtemp(prefix="partita-bench-kube-"))
    try:
        with running(choose(folder / "cluster", "bench", to_stderr)) as cluster, measured() as settings:
            emit(run(_measure(cluster, settings, options)))
    except (ProviderUnavailable, ClusterError) as error:
        emit(
            [
                Figure(
                    figure="kube_path",
                    value=None,
                    unit="s",
                    goal=SECONDS_GOAL,
                    better="lower",
                    setting={"why": str(error)},
                )
            ]
        )
    finally:
        shutil.rmtree(folder, ignore_errors=True)


async def _measure(cluster: Cluster, settings: Settings, options: Options) -> list[Figure]:
    namespace = f"bench-{secrets.token_hex(4)}"
    settings = replace(settings, worker=replace(settings.worker, slots=options.slots))
    cluster.apply(_CRDS)
    cluster.run_kubectl("wait", "--for=condition=Established", "--timeout=60s", "-f", str(_CRDS))
    cluster.run_kubectl("create", "namespace", namespace)
    variables = {
        **cluster.environment(),
        "PARTITA_OPERATOR_NAMESPACE": namespace,
        "PARTITA_OPERATOR_WATCH_NAMESPACES": namespace,
    }
    async with AsyncExitStack() as stack:
        stack.callback(cluster.run_kubectl, "delete", "namespace", namespace, "--wait=false")
        client = await stack.enter_async_context(KubeClient(partial(load_connection, cluster.kubeconfig)))
        operator = await stack.enter_async_context(processes.partita(settings, "operator", variables=variables))
        worker = await stack.enter_async_context(processes.partita(settings, *processes.worker(settings)))
        await _define(client, namespace, [operator, worker])
        bench = Bench(cluster, client, namespace, operator.pid, worker.pid, options)
        return await bench.measure()


async def _define(client: KubeClient, namespace: str, started: Sequence[Process]) -> None:
    """Apply the definition and wait until the operator has accepted it."""
    body = {"apiVersion": API_VERSION, "kind": DEFINITIONS.kind, "metadata": {"name": NAME}, "spec": spec()}
    path = DEFINITIONS.path(namespace, NAME)
    await client.apply(path, body, "bench")
    deadline = time.monotonic() + _PATIENCE
    while not _ready(found := await client.get(path)):
        processes.check(started)
        if time.monotonic() > deadline:
            raise SystemExit(f"bench: the definition is not Ready after {_PATIENCE:.0f} s: {found.get('status')}")
        await asyncio.sleep(0.1)


def _ready(found: dict[str, Any]) -> bool:
    conditions = (found.get("status") or {}).get("conditions") or ()
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)


@dataclass(frozen=True, slots=True)
class Bench:
    """Operator and worker on a cluster, ready for rounds."""

    cluster: Cluster
    client: KubeClient
    namespace: str
    operator: int
    worker: int
    options: Options

    async def measure(self) -> list[Figure]:
        """Rounds of new runs; those of earlier rounds stay, as in a cluster that is in use."""
        await self._round("warm", max(1, self.options.runs // 10))
        rounds = []
        for number in range(self.options.repeats):
            rounds.append(await self._round(f"r{number}", self.options.runs))
            say(f"kube_path {number + 1}/{self.options.repeats}: {self._shown(rounds[-1])}")
        return self._figures(rounds)

    async def _round(self, prefix: str, runs: int) -> Round:
        names = [f"{prefix}-{number}" for number in range(runs)]
        before = seconds(self.operator), seconds(self.worker)
        async with watching(self.cluster.kubeconfig, self.client, self.namespace, runs) as watch:
            begun = time.perf_counter()
            todo = iter(names)
            await asyncio.gather(*(self._apply(todo) for _ in range(min(self.options.submitters, runs))))
            applied = time.perf_counter() - begun
            try:
                await asyncio.wait_for(watch.done.wait(), _PATIENCE)
            except TimeoutError:
                raise SystemExit(f"bench: {watch.succeeded} of {runs} runs after {_PATIENCE:.0f} s") from None
            taken = time.perf_counter() - begun
        cpu = seconds(self.operator) - before[0], seconds(self.worker) - before[1]
        return Round(taken, applied, sum(watch.writes.values()) / runs, *cpu)

    async def _apply(self, todo: Any) -> None:
        """One client: applies runs until none is left."""
        async with KubeClient(partial(load_connection, self.cluster.kubeconfig), connections=1) as client:
            for name in todo:
                body = {
                    "apiVersion": API_VERSION,
                    "kind": RUNS.kind,
                    "metadata": {"name": name},
                    "spec": {"definitionRef": {"name": NAME}},
                }
                try:
                    await client.apply(RUNS.path(self.namespace, name), body, "bench")
                except PartitaError as error:
                    raise SystemExit(f"bench: {error}") from error

    def _figures(self, rounds: list[Round]) -> list[Figure]:
        options = self.options
        setting = {"runs": options.runs, "clients": options.submitters, "slots": options.slots}
        now, most = memory(self.operator)
        return [
            Figure.median(
                "kube_path", [one.seconds for one in rounds], "s", goal=SECONDS_GOAL, better="lower", setting=setting
            ),
            Figure.median("kube_path_applied", [one.applied for one in rounds], "s", better="lower", setting=setting),
            Figure.median(
                "kube_path_writes",
                [one.writes for one in rounds],
                "1/run",
                goal=WRITES_GOAL,
                better="lower",
                setting=setting,
            ),
            self._cpu("kube_path_operator_cpu", [one.operator_cpu for one in rounds]),
            self._cpu("kube_path_worker_cpu", [one.worker_cpu for one in rounds]),
            Figure(
                figure="kube_path_operator_memory",
                value=now,
                unit="MiB",
                better="lower",
                setting={"most": round(most, 1), "runs": options.runs * (options.repeats + 0.1)},
            ),
        ]

    def _cpu(self, name: str, samples: list[float]) -> Figure:
        return Figure.median(name, [1e3 * one / self.options.runs for one in samples], "ms/run", better="lower")

    def _shown(self, one: Round) -> str:
        now, _ = memory(self.operator)
        taken = f"{one.seconds:.1f} s (applied after {one.applied:.1f} s)"
        return f"{taken}, {one.writes:.2f} writes a run, operator {now:.0f} MiB"
