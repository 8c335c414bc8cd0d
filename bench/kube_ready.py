"""How an operator begins among many objects, and what it costs when nothing happens.

Ready means: ``/readyz`` says leader, every object has been seen, and the comparison of objects and database has ended.
A signal that was sent while no operator ran says when it really works. Times begin before the process is started, the
interpreter's own start included.
"""

from __future__ import annotations

import asyncio
import re
import time
from asyncio.subprocess import Process
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Final

import aiohttp

from bench import cpu, processes
from bench.cpu import memory
from bench.figures import Figure, say
from bench.kube_signal import send
from bench.kube_stage import PATIENCE, Stage
from bench.kube_watch import finished, watching
from e2e.cluster.ports import LOOPBACK, free_ports
from partita.kube import metric_families as families

SECONDS_GOAL: Final = 30.0
MEMORY_GOAL: Final = 250.0
IDLE_GOAL: Final = 5.0
_SETTLE: Final = 5.0
"""Seconds after a start, or a signal, that are not counted as rest."""


@dataclass(frozen=True, slots=True)
class Start:
    """One start; times in seconds."""

    pid: int
    leader: float
    ready: float
    answered: float
    cpu: float
    """Processor time until then."""
    memory: float
    """MiB at most until then."""


@dataclass(frozen=True, slots=True)
class Rest:
    """An operator while nothing happens."""

    cpu: float
    """Percent of a core."""
    memory: float
    most: float
    seconds: float


@asynccontextmanager
async def started(stage: Stage, objects: int, waiting: str) -> AsyncIterator[Start]:
    """An operator that is ready; ``waiting`` is a run whose signal is sent before the operator begins."""
    (port,) = free_ports(1)
    await send(stage.client, stage.path(waiting), "go", "early")
    async with watching(stage, 1) as watch:
        begun = time.perf_counter()
        async with stage.operator(port) as process, aiohttp.ClientSession(f"http://{LOOPBACK}:{port}") as probes:
            answered = asyncio.create_task(_after(begun, finished(watch)))
            leader = await _after(begun, _until(process, probes, "/readyz", lambda text: text == "leader\n"))
            ready = await _after(begun, _until(process, probes, "/metrics", lambda text: _is_ready(text, objects)))
            used, most = cpu.seconds(process.pid), memory(process.pid)[1]
            start = Start(process.pid, leader, ready, await answered, used, most)
            say(
                f"kube_ready: leader after {leader:.1f} s, ready after {ready:.1f} s, early signal acted upon after "
                f"{start.answered:.1f} s; {used:.1f} s of processor time, at most {most:.0f} MiB"
            )
            yield start


async def start(stage: Stage, objects: int, waiting: str) -> Start:
    """Start an operator and end it."""
    async with started(stage, objects, waiting) as found:
        return found


async def rest(operator: Start, *, seconds: float) -> Rest:
    """Leave an operator alone for this long."""
    await asyncio.sleep(min(_SETTLE, seconds))
    before, begun = cpu.seconds(operator.pid), time.perf_counter()
    await asyncio.sleep(seconds)
    taken = time.perf_counter() - begun
    found = Rest(100 * (cpu.seconds(operator.pid) - before) / taken, *memory(operator.pid), taken)
    say(f"kube_idle: {found.cpu:.1f} % of a core over {taken:.0f} s, {found.memory:.0f} MiB (most {found.most:.0f})")
    return found


def figures(starts: Sequence[Start], rest: Rest, objects: int) -> list[Figure]:
    """What is printed."""
    setting = {"objects": objects}
    times = (("kube_ready", [one.ready for one in starts]), ("kube_ready_answers", [one.answered for one in starts]))
    return [
        Figure.median("kube_ready_leader", [one.leader for one in starts], "s", better="lower", setting=setting),
        *(
            Figure.median(name, samples, "s", goal=SECONDS_GOAL, better="lower", setting=setting)
            for name, samples in times
        ),
        Figure.median("kube_ready_cpu", [one.cpu for one in starts], "s", better="lower", setting=setting),
        Figure.median(
            "kube_ready_memory",
            [one.memory for one in starts],
            "MiB",
            goal=MEMORY_GOAL,
            better="lower",
            setting=setting,
        ),
        Figure(
            figure="kube_idle_memory",
            value=rest.memory,
            unit="MiB",
            goal=MEMORY_GOAL,
            better="lower",
            setting={**setting, "most": round(rest.most, 1)},
        ),
        Figure(
            figure="kube_idle_cpu",
            value=rest.cpu,
            unit="%",
            goal=IDLE_GOAL,
            better="lower",
            setting={**setting, "seconds": round(rest.seconds)},
        ),
    ]


async def _after(begun: float, event: Awaitable[None]) -> float:
    """Seconds from the beginning until something has come."""
    await event
    return time.perf_counter() - begun


async def _until(process: Process, probes: aiohttp.ClientSession, path: str, accepts: Callable[[str], bool]) -> None:
    """Ask the operator until its answer is the right one."""
    deadline = time.monotonic() + PATIENCE
    text = ""
    while True:
        processes.check([process])
        with suppress(aiohttp.ClientError):  # it does not listen yet
            async with probes.get(path) as response:
                text = await response.text()
            if accepts(text):
                return
        if time.monotonic() > deadline:
            raise SystemExit(f"bench: operator: {path} after {PATIENCE:.0f} s: {text[-2000:]}")
        await asyncio.sleep(0.1)


def _is_ready(metrics: str, objects: int) -> bool:
    return _value(metrics, families.RUN_OBJECTS.name) >= objects and _value(metrics, families.LAST_RESYNC.name) > 0


def _value(metrics: str, name: str) -> float:
    found = re.search(rf"^{name} (\S+)$", metrics, re.MULTILINE)
    return float(found[1]) if found else 0.0
