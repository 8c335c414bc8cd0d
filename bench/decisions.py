"""Decisions: milliseconds that one signal may make an engine work, and that another run waits meanwhile.

A signal releases a run of nodes, each with an expression as expensive as its budget allows; ``stall`` is how long a
neighbour, another run of the same process, waited for its own signal in the meantime.
"""

from __future__ import annotations

import asyncio
import statistics
import time
from typing import Any, Final
from uuid import UUID, uuid4

from bench.figures import Figure, say
from bench.options import Options
from partita.domain.manifest.limits import NODES
from partita.domain.payload import Payload
from partita.domain.state.events import SignalReceived
from partita.engine.engine import Engine
from partita.engine.requests import StartRequest
from partita.settings import Settings

GOAL: Final = 500.0
_NAMESPACE: Final = "bench"
_COSTLY: Final = "${range(2800).map(x, format('%s %05d %.2f %x', ['a', x, 1.5, x])).size()}"
"""Takes most of a field's budget and leaves a small output."""


def definitions(count: int) -> dict[str, dict[str, Any]]:
    """By name: what one signal ``go`` lets happen in one decision."""
    go: dict[str, Any] = {"name": "go", "waitForEvent": {}}
    count = min(count, NODES - 1)
    chain = [
        {"name": f"n{at}", "dependsOn": [f"n{at - 1}" if at else "go"], "compute": {"x": _COSTLY}}
        for at in range(count)
    ]
    cases = [{"when": _COSTLY[:-1] + " < 0}", "next": []} for _ in range(min(count, 63))] + [{"next": []}]
    items = {"items": f"${{range({count})}}", "maxParallel": count}
    return {
        "chain": {"nodes": [go, *chain]},
        "switch": {"nodes": [go, {"name": "choose", "dependsOn": ["go"], "switch": cases}]},
        "items": {
            "nodes": [
                go,
                {
                    "name": "each",
                    "dependsOn": ["go"],
                    "forEach": items,
                    "task": {"type": "noop"},
                    "input": {"x": _COSTLY},
                },
            ]
        },
    }


async def measure(settings: Settings, options: Options) -> list[Figure]:
    """What one signal may make of a run, and what another run has to wait meanwhile."""
    figures = []
    async with await Engine.open(settings, application="partita-bench") as engine:
        await engine.deploy(_NAMESPACE, "other", {"nodes": [{"name": "wait", "waitForEvent": {}}]})
        for name, spec in definitions(20 if options.quick else options.runs).items():
            await engine.deploy(_NAMESPACE, name, spec)
            rounds = [await _decision(engine, name) for _ in range(1 if options.quick else min(3, options.repeats))]
            for figure, samples in zip(("decision", "stall"), zip(*rounds, strict=True), strict=True):
                say(f"{figure}_{name}: {statistics.median(samples):,.0f} ms")
                figures.append(Figure.median(f"{figure}_{name}", samples, "ms", goal=GOAL, better="lower"))
    return figures


async def _decision(engine: Engine, name: str) -> tuple[float, float]:
    """Milliseconds of the signal, and the longest that another run of this process waited for one."""
    hostile = await _begun(engine, name)
    other = await _begun(engine, "other")
    done, stall = asyncio.Event(), 0.0

    async def neighbour() -> None:
        nonlocal stall
        while not done.is_set():
            stall = max(stall, await _signal(engine, other, "unheard"))
            await asyncio.sleep(0.01)

    watching = asyncio.create_task(neighbour())
    await asyncio.sleep(0.05)  # the neighbour has begun; nothing is concluded from the time
    taken = await _signal(engine, hostile, "go")
    done.set()
    await watching
    return taken, stall


async def _begun(engine: Engine, name: str) -> UUID:
    return (await engine.start(StartRequest(namespace=_NAMESPACE, definition=name))).run_id


async def _signal(engine: Engine, run_id: UUID, name: str) -> float:
    begun = time.perf_counter()
    await engine.apply(run_id, SignalReceived(id=str(uuid4()), name=name, payload=Payload.of({})))
    return (time.perf_counter() - begun) * 1e3
