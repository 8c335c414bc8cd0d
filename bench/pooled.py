"""What PgBouncer in transaction mode costs: processor time a step under load, and the latency of a lone run.

Behind it no statement stays prepared: each is parsed and planned anew and needs a second round trip, and planner
options are set in every transaction unless they come with the role. Direct rounds and rounds through it take turns on
one database, all in one process. Invariant: the work is that of the other scripts; PgBouncer is the installed one,
started for the script alone. Without it the figures have no value and say so.
"""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from urllib.parse import urlsplit

import asyncpg

from bench import cpu
from bench.figures import Figure, emit, say
from bench.latency import WatchedEngine, lone, percentile
from bench.load import Load, postmaster, working
from bench.loop import run
from bench.options import Options, as_setting, parse
from bench.postgres import measured
from partita.settings import Settings
from tests import pgbouncer
from tests.pgbouncer import PgBouncer

WAYS = ("direct", "pooled")
_LONE = 100
_FIGURES = (
    *((f"{way}_{kind}", "µs/step") for way in WAYS for kind in ("postgres_cpu", "python_cpu")),
    *((f"{way}_latency_p50", "ms") for way in WAYS),
    ("pooled_pgbouncer_cpu", "µs/step"),
    ("pooled_postgres_cpu_ratio", "ratio"),
    ("pooled_latency_p50_ratio", "ratio"),
)


@dataclass(slots=True)
class Samples:
    """What was measured of one way to the server, a value a round."""

    postgres_cpu: list[float] = field(default_factory=list)
    python_cpu: list[float] = field(default_factory=list)
    pgbouncer_cpu: list[float] = field(default_factory=list)
    latency_p50: list[float] = field(default_factory=list)


def main(arguments: Sequence[str]) -> None:
    """Measure and print."""
    options = parse(arguments, "pooled", "Cost of PgBouncer in transaction mode.", runs=2_000, repeats=5, workers=0)
    if shutil.which(pgbouncer.PROGRAM) is None:
        why = {"why": "PgBouncer is not installed; try: apt-get install pgbouncer"}
        emit(Figure(figure=name, value=None, unit=unit, better="lower", setting=why) for name, unit in _FIGURES)
        return
    with measured() as settings, pgbouncer.before(settings.database.url) as process:
        emit(run(measure(settings, process, options)))


async def measure(settings: Settings, process: PgBouncer, options: Options) -> list[Figure]:
    """Rounds of both ways in turn."""
    settings = replace(settings, worker=replace(settings.worker, slots=options.slots))
    samples = {way: Samples() for way in WAYS}
    for number in range(options.repeats):
        for way in WAYS:
            await _round(_by(way, settings, process), process, options, samples[way])
            say(f"pooled {number + 1}/{options.repeats}: {way}: {_shown(samples[way])}")
    return _figures(samples, options)


def _by(way: str, settings: Settings, process: PgBouncer) -> Settings:
    if way == "direct":
        return settings
    url = process.url(urlsplit(settings.database.url).path.lstrip("/"))
    database = replace(settings.database, url=url, migrations_url=settings.database.url, pooled=True)
    return replace(settings, database=database)


async def _round(settings: Settings, process: PgBouncer, options: Options, samples: Samples) -> None:
    async with _loaded(settings, options) as (load, engine):
        await load.round(max(1, options.runs // 4))
        before = _used(process)
        done = await load.round(options.runs)
        samples.pgbouncer_cpu.append((_used(process) - before) / (done.rate * done.seconds) * 1e6)
        samples.postgres_cpu.append(done.postgres_us())
        samples.python_cpu.append(done.python_us())
        alone = [await lone(engine) for _ in range(min(_LONE, options.runs))]
        samples.latency_p50.append(percentile(alone, 0.5))


@asynccontextmanager
async def _loaded(settings: Settings, options: Options) -> AsyncIterator[tuple[Load, WatchedEngine]]:
    observer = await asyncpg.connect(settings.database.migrations_url or settings.database.url)
    try:
        async with working(settings, WatchedEngine) as engine:
            load = Load(engine, observer, options.submitters, await postmaster(observer), [])
            load.expected = await load.succeeded()
            yield load, engine
    finally:
        await observer.close()


def _used(process: PgBouncer) -> float:
    return 0.0 if process.process is None else cpu.seconds(process.process.pid)


def _figures(samples: dict[str, Samples], options: Options) -> list[Figure]:
    values = {f"{way}_{name}": getattr(samples[way], name) for way in WAYS for name in Samples.__dataclass_fields__}
    for name in ("postgres_cpu", "latency_p50"):
        pairs = zip(values[f"pooled_{name}"], values[f"direct_{name}"], strict=True)
        values[f"pooled_{name}_ratio"] = [mine / theirs if theirs else 0.0 for mine, theirs in pairs]
    setting = as_setting(options)
    return [Figure.median(name, values[name], unit, better="lower", setting=setting) for name, unit in _FIGURES]


def _shown(one: Samples) -> str:
    last = {name: getattr(one, name)[-1] for name in Samples.__dataclass_fields__}
    return ", ".join(f"{name} {value:.1f}" for name, value in last.items())
