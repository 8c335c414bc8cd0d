"""The Kubernetes path: WorkflowRuns applied by many clients at once, until a watcher has seen all of them succeed.

API server, etcd, operator, worker, PostgreSQL, the clients and the watcher share the machine. Each client has one
connection and applies its share one after the other by server-side apply, as ``kubectl apply --server-side`` does.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from bench.cpu import memory, seconds
from bench.figures import Figure, say
from bench.kube_stage import Stage, play, run_object
from bench.kube_watch import finished, watching
from bench.options import Options, parse
from bench.workload import NAME, spec
from partita.kube.client import KubeClient

SECONDS_GOAL: Final = 10.0
WRITES_GOAL: Final = 2.0


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
    missing = Figure(figure="kube_path", value=None, unit="s", goal=SECONDS_GOAL, better="lower")
    play(lambda stage: _measure(stage, options), missing=missing, slots=options.slots)


async def _measure(stage: Stage, options: Options) -> list[Figure]:
    async with stage.operator() as operator, stage.worker() as worker:
        await stage.define(NAME, spec(), [operator, worker])
        return await Bench(stage, operator.pid, worker.pid, options).measure()


@dataclass(frozen=True, slots=True)
class Bench:
    """Operator and worker on a cluster, ready for rounds."""

    stage: Stage
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
        async with watching(self.stage, runs) as watch:
            begun = time.perf_counter()
            await self.stage.by_clients(self.options.submitters, self._apply, names)
            applied = time.perf_counter() - begun
            await finished(watch)
            taken = time.perf_counter() - begun
        cpu = seconds(self.operator) - before[0], seconds(self.worker) - before[1]
        return Round(taken, applied, sum(watch.writes.values()) / runs, *cpu)

    async def _apply(self, client: KubeClient, todo: Iterator[str]) -> None:
        for name in todo:
            await client.apply(self.stage.path(name), run_object(name, NAME), "bench")

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
