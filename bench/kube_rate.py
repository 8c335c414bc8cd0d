"""Sustained load on the Kubernetes path: runs a second from the creation of objects to their status ``Succeeded``.

A bounded number of runs is under way at any time, so that the last second looks like the first; API server, etcd,
PostgreSQL, operator, worker, the clients that create and the watcher that sees them succeed share the machine. Each run
is created by a plain POST, as ``kubectl create`` does.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from bench.cpu import memory
from bench.figures import Figure, say
from bench.kube_parts import Parts, parts_of, requests
from bench.kube_stage import Stage, play, run_object
from bench.kube_watch import finished, watching
from bench.options import Options, parse
from bench.workload import NAME, spec
from partita.kube.client import KubeClient

RATE_GOAL: Final = 100.0
WRITES_GOAL: Final = 3.0
"""The creation and two statuses."""
CPU_GOAL: Final = 1e3 * 2 / RATE_GOAL
"""Milliseconds of processor time that the rate leaves for a run on two cores, whoever works."""
UNDER_WAY: Final = 400
"""Runs that may be under way at once."""


@dataclass(frozen=True, slots=True)
class Round:
    """What one round took."""

    seconds: float
    writes: float
    """Writes a run, its creation included."""
    most: int
    """Writes of the run that was written most often."""
    cpu: dict[str, float]
    """Seconds of processor time by part."""
    requests: Counter[str]


def main(arguments: Sequence[str]) -> None:
    """Measure and print."""
    text = "Runs a second from the creation of WorkflowRun objects to their success."
    options = parse(arguments, "kube_rate", text, runs=3_000, submitters=16, slots=100, repeats=3)
    missing = Figure(figure="kube_rate", value=None, unit="runs/s", goal=RATE_GOAL)
    play(lambda stage: _measure(stage, options), missing=missing, slots=options.slots)


async def _measure(stage: Stage, options: Options) -> list[Figure]:
    async with stage.operator() as operator, stage.worker() as worker:
        await stage.define(NAME, spec(), [operator, worker])
        parts = await parts_of(stage, operator=operator.pid, worker=worker.pid)
        await _round(stage, parts, options.submitters, "warm", max(1, options.runs // 10))
        rounds = []
        for number in range(options.repeats):
            rounds.append(await _round(stage, parts, options.submitters, f"r{number}", options.runs))
            say(f"kube_rate {number + 1}/{options.repeats}: {_shown(rounds[-1], options.runs)}")
        return _figures(rounds, options, memory(operator.pid))


async def _round(stage: Stage, parts: Parts, clients: int, prefix: str, runs: int) -> Round:
    room = asyncio.Semaphore(UNDER_WAY)

    async def create(client: KubeClient, todo: Iterator[str]) -> None:
        for name in todo:
            await room.acquire()
            await client.create(stage.path(), run_object(name, NAME))

    asked = await requests(stage.cluster)
    async with watching(stage, runs, one=lambda _: room.release()) as watch:
        before, begun = parts.read(), time.perf_counter()
        await stage.by_clients(clients, create, [f"{prefix}-{number}" for number in range(runs)])
        await finished(watch)
        taken = time.perf_counter() - begun
        cpu = {name: value - before[name] for name, value in parts.read().items()}
    writes = watch.writes
    asked = await requests(stage.cluster) - asked
    return Round(taken, 1 + writes.total() / runs, 1 + max(writes.values(), default=0), cpu, asked)


def _figures(rounds: list[Round], options: Options, held: tuple[float, float]) -> list[Figure]:
    runs = options.runs
    setting = {"runs": runs, "clients": options.submitters, "under_way": UNDER_WAY, "slots": options.slots}
    asked = _each(sum((one.requests for one in rounds), Counter()), runs * len(rounds))
    return [
        Figure.median("kube_rate", [runs / one.seconds for one in rounds], "runs/s", goal=RATE_GOAL, setting=setting),
        Figure.median(
            "kube_rate_writes",
            [one.writes for one in rounds],
            "1/run",
            goal=WRITES_GOAL,
            better="lower",
            setting={"most": max(one.most for one in rounds), "requests": asked},
        ),
        Figure.median(
            "kube_rate_cpu",
            [1e3 * sum(one.cpu.values()) / runs for one in rounds],
            "ms/run",
            goal=CPU_GOAL,
            better="lower",
            setting={"parts": sorted(rounds[0].cpu)},
        ),
        *(
            Figure.median(
                f"kube_rate_{name.replace('-', '_')}_cpu",
                [1e3 * one.cpu[name] / runs for one in rounds],
                "ms/run",
                better="lower",
            )
            for name in rounds[0].cpu
        ),
        Figure(
            figure="kube_rate_operator_memory",
            value=held[0],
            unit="MiB",
            better="lower",
            setting={"most": round(held[1], 1), "objects": round(runs * (options.repeats + 0.1))},
        ),
    ]


def _shown(one: Round, runs: int) -> str:
    cpu = ", ".join(f"{name} {value:.2f}" for name, value in _each(one.cpu, runs / 1e3).items())
    return f"{runs / one.seconds:.0f} runs/s, {one.writes:.2f} writes a run; ms of processor time a run: {cpu}"


def _each(counts: Mapping[str, float], runs: float) -> dict[str, float]:
    return {name: round(count / runs, 3) for name, count in sorted(counts.items())}
