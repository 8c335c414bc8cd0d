"""Our own turn between those of the peers: the same figures by the scripts that measure them alone.

Invariant: nothing is measured differently here; ``bench.load`` and ``bench.latency`` do the work. Lone runs alternate
with bare SQL that writes the same rows, which is a line of its own.
"""

from __future__ import annotations

from bench import counters
from bench.latency import Pair, WatchedEngine
from bench.load import loaded, working
from bench.options import Options
from bench.peers.process import STEPS
from bench.peers.turns import Turn, Work
from partita.settings import Settings
from partita.store.database import Dedicated

SLOTS = 400
_WARM = 10


async def turn(settings: Settings, work: Work) -> tuple[Turn, tuple[float, ...]]:
    """Our turn, and milliseconds of bare SQL."""
    warm, options = max(1, work.runs // 4), options_of(work)
    before = await counters.read(settings)
    async with loaded(settings, options) as load:
        await load.round(warm)
        done = await load.round(work.runs)
    cost, steps = await counters.read(settings) - before, (warm + work.runs) * STEPS
    lone, bare = await _latency(settings, work.lone)
    return Turn(done.rate, cost.wal_bytes / steps, cost.commits / steps, lone), bare


def options_of(work: Work) -> Options:
    """The setting of ``bench throughput``, with fewer slots where there are fewer runs."""
    slots = min(SLOTS, work.runs)
    return Options(runs=work.runs, repeats=1, workers=work.workers, slots=slots, submitters=slots)


async def _latency(settings: Settings, runs: int) -> tuple[tuple[float, ...], tuple[float, ...]]:
    session = Dedicated(settings.database, "bench/bare", planner=True)
    try:
        async with working(settings, WatchedEngine) as engine:
            pair = Pair(engine, session)
            await pair.group(_WARM)
            ours, bare = await pair.group(runs)
    finally:
        await session.close()
    return tuple(ours), tuple(bare)
