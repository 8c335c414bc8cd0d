"""Our own turn between those of the peers: the same figures by the scripts that measure them alone.

Invariant: nothing is measured differently here; ``bench.load`` and ``bench.latency`` do the work, but that lone runs
come one after the other, as those of peers do; bare SQL that writes the same rows, a line of its own, follows. Ours end
with the commit of the last step's end; those of most peers when the last step's function has run, so that this moment
of ours is a line of its own as well.
"""

from __future__ import annotations

from typing import NamedTuple

from bench import counters
from bench.latency import Pair, WatchedEngine
from bench.load import loaded, working
from bench.options import Options
from bench.peers.process import STEPS
from bench.peers.turns import Turn
from partita.settings import Settings
from partita.store.database import Dedicated

_WARM = 10


class Lone(NamedTuple):
    """Milliseconds of lone runs."""

    recorded: tuple[float, ...]
    """Ours, until the last step's end is committed."""
    bare: tuple[float, ...]
    """Bare SQL."""
    run: tuple[float, ...]
    """Ours, until the last step's function has run; what a queue's figures are that records ends later."""


async def turn(settings: Settings, options: Options, lone_runs: int) -> tuple[Turn, Lone]:
    """Our turn, and its lone runs."""
    warm = max(1, options.runs // 4)
    before = await counters.read(settings)
    async with loaded(settings, options) as load:
        await load.round(warm)
        done = await load.round(options.runs)
    cost, steps = await counters.read(settings) - before, (warm + options.runs) * STEPS
    cpu = done.python_us() + done.postgres_us() if done.cpu.postgres else None
    lone = await _latency(settings, lone_runs)
    return Turn(done.rate, cost.wal_bytes / steps, cost.commits / steps, cpu, lone.recorded), lone


async def _latency(settings: Settings, runs: int) -> Lone:
    session = Dedicated(settings.database, "bench/bare", planner=True)
    try:
        async with working(settings, WatchedEngine) as engine:
            pair = Pair(engine, session)
            await pair.group(_WARM)
            group = await pair.apart(runs)
            return Lone(tuple(group.ours), tuple(group.bare), tuple(group.unrecorded))
    finally:
        await session.close()
