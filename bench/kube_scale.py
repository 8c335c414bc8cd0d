"""Many WorkflowRun objects, half of them waiting for a signal: how an operator starts, rests and answers.

Invariant: the objects are made as people's are, created through the API and executed; nothing is written into the
database from the side. Trade-off: making ten thousand of them takes a few minutes, so that all figures share them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from bench import kube_ready, kube_signal
from bench.figures import Figure, say
from bench.kube_stage import Stage, play, run_object
from bench.kube_watch import finished, succeeded, watching
from bench.options import Options, parse
from bench.workload import NAME, spec
from partita.kube.client import KubeClient

WAITS: Final = "waits"
"""A definition whose runs wait for one signal."""
BALLOT: Final = "ballot"
"""A definition whose runs wait for many."""
VOTES: Final = 60
UNDER_WAY: Final = 400
_PATIENCE: Final = 900.0


@dataclass(frozen=True, slots=True)
class Population:
    """Names of the objects."""

    waiting: tuple[str, ...]
    finished: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.waiting) + len(self.finished)


def main(arguments: Sequence[str]) -> None:
    """Measure and print."""
    text = "Start, memory, rest and answers of an operator in a cluster with many WorkflowRun objects."
    options = parse(arguments, "kube_scale", text, runs=10_000, submitters=16, slots=100, repeats=3)
    missing = Figure(figure="kube_ready", value=None, unit="s", goal=kube_ready.SECONDS_GOAL, better="lower")
    play(lambda stage: _measure(stage, options), missing=missing, slots=options.slots)


async def _measure(stage: Stage, options: Options) -> list[Figure]:
    population = await _populate(stage, options)
    signals = iter(population.waiting)
    starts = [await kube_ready.start(stage, len(population), next(signals)) for _ in range(options.repeats - 1)]
    async with kube_ready.started(stage, len(population), next(signals)) as last:
        rest = await kube_ready.rest(last, seconds=2 if options.quick else 40)
        lone = await kube_signal.lone(stage, signals, 5 if options.quick else 50)
        votes = await kube_signal.many(stage, BALLOT, VOTES)
    return [*kube_ready.figures([*starts, last], rest, len(population)), *kube_signal.figures(lone, votes)]


async def _populate(stage: Stage, options: Options) -> Population:
    half = options.runs // 2
    population = Population(
        tuple(f"waiting-{number}" for number in range(half)),
        tuple(f"finished-{number}" for number in range(options.runs - half)),
    )
    async with stage.operator() as operator, stage.worker() as worker:
        for name, definition in ((NAME, spec()), (WAITS, _waiting("go")), (BALLOT, _waiting("vote", VOTES))):
            await stage.define(name, definition, [operator, worker])
        todo = [
            *((name, WAITS) for name in population.waiting),
            *((name, NAME) for name in population.finished),
        ]
        await _create(stage, options.submitters, todo)
        say(f"kube_scale: {len(population)} objects made, {half} of them wait")
    return population


async def _create(stage: Stage, clients: int, todo: Sequence[tuple[str, str]]) -> None:
    room = asyncio.Semaphore(UNDER_WAY)

    async def create(client: KubeClient, left: Iterator[tuple[str, str]]) -> None:
        for name, definition in left:
            await room.acquire()
            await client.create(stage.path(), run_object(name, definition))

    async with watching(stage, len(todo), wanted=_settled, one=lambda _: room.release()) as watch:
        await stage.by_clients(clients, create, todo)
        await finished(watch, _PATIENCE)


def _settled(status: Mapping[str, Any]) -> bool:
    return succeeded(status) or bool(status.get("waitingFor"))


def _waiting(signal: str, count: int = 1) -> dict[str, Any]:
    """A definition of one node that waits for some signals of this name."""
    until = {} if count == 1 else {"until": f"${{events.size() >= {count}}}"}
    return {"nodes": [{"name": "wait", "waitForEvent": {"name": signal, **until}}]}
