"""Peers and ours take turns on one server; prints a table for people and the figures as JSON lines.

Invariant: a peer that cannot be had or fails has lines without a value that say why, and does not stop the others.
Every peer has a budget of seconds: when it is spent, its figures are those of the turns that it has completed.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import Any, Final

import asyncpg

from bench import options
from bench.figures import emit, say
from bench.loop import run
from bench.options import Options, as_setting
from bench.peers import install, ours, place, report
from bench.peers.catalogue import PEERS, Peer
from bench.peers.child import PeerError
from bench.peers.report import Result
from bench.peers.turns import Bench, Work, ready
from bench.postgres import Base, database, server
from partita.settings import Settings

OURS: Final = "partita"
OUR_RUNS: Final = 4_000
FAULTS: Final = (PeerError, install.NotInstalledError, asyncpg.PostgresError, OSError)


@dataclass(frozen=True, slots=True)
class Plan:
    """What is measured."""

    peers: tuple[Peer, ...]
    runs: int | None
    lone: int
    repeats: int
    workers: int
    seconds: float
    strict: bool
    slots: int
    """Of ours: tasks that one worker executes at the same time."""
    submitters: int
    """Of ours: starts that are under way at the same time."""

    def work(self, runs: int) -> Work:
        """The work of a turn whose usual number of runs is given."""
        return Work(self.runs or runs, self.lone, self.workers)

    def ours(self) -> Options:
        """Ours, in the setting of ``bench throughput``, with fewer slots where there are fewer runs."""
        runs = self.runs or OUR_RUNS
        slots, submitters = min(self.slots, runs), min(self.submitters, runs)
        chosen = {"runs": runs, "repeats": self.repeats, "workers": self.workers, "slots": slots}
        given = {**chosen, "submitters": submitters}
        return options.parse([f"--{name}={value}" for name, value in given.items()], "peers", "")


@dataclass(slots=True)
class Place:
    """A peer between its turns."""

    peer: Peer
    result: Result
    stack: AsyncExitStack = field(default_factory=AsyncExitStack)
    bench: Bench | None = None
    left: float = 0.0
    """Seconds of its budget."""


def main(arguments: Sequence[str]) -> None:
    """Measure and print; SystemExit 1 with --strict when a peer gave no figures."""
    plan = parse(arguments)
    signal.signal(signal.SIGTERM, _ended)
    with server() as base, database(base) as settings:
        results = run(measure(plan, base, settings))
    say("\n" + report.table(results))
    emit(report.figures(results))
    if plan.strict and any(result.problem for result in results):
        raise SystemExit(1)


def _ended(*_: object) -> None:
    """End in good order, so that neither a peer's process nor the server outlives a time limit."""
    raise SystemExit(143)


def parse(arguments: Sequence[str]) -> Plan:
    """The command line."""
    names = ", ".join(peer.name for peer in PEERS)
    parser = argparse.ArgumentParser(prog="python -m bench peers", description="Other engines and queues beside ours.")
    parser.add_argument("--only", default="", metavar="A,B", help=f"of {names}")
    parser.add_argument("--runs", type=int, metavar="N", help="workflow runs of a round (by default about 2 s each)")
    parser.add_argument("--lone", type=int, metavar="N", help="lone runs of a turn (100)")
    parser.add_argument("--repeats", type=int, metavar="N", help="turns, of which the median is printed (5)")
    parser.add_argument("--workers", type=int, default=2, metavar="N", help="worker processes (2)")
    parser.add_argument("--slots", type=int, default=400, metavar="N", help="tasks at a time of a worker of ours (400)")
    parser.add_argument("--submitters", type=int, default=400, metavar="N", help="starts at a time of ours (400)")
    parser.add_argument(
        "--seconds", type=float, default=40.0, metavar="S", help="what one peer may take, all in all (40)"
    )
    parser.add_argument("--quick", action="store_true", help="tiny sizes, to see whether it works")
    parser.add_argument("--strict", action="store_true", help="exit code 1 when a peer gave no figures")
    found = parser.parse_args(arguments)
    wanted = tuple(name for name in found.only.split(",") if name)
    if unknown := set(wanted) - {peer.name for peer in PEERS}:
        parser.error(f"--only: unknown peer {', '.join(sorted(unknown))}; expected of {names}")
    return Plan(
        peers=tuple(peer for peer in PEERS if not wanted or peer.name in wanted),
        runs=found.runs or (20 if found.quick else None),
        lone=found.lone or (5 if found.quick else 100),
        repeats=found.repeats or (1 if found.quick else 5),
        workers=found.workers,
        seconds=found.seconds,
        strict=found.strict,
        slots=found.slots,
        submitters=found.submitters,
    )


async def measure(plan: Plan, base: Base, settings: Settings) -> list[Result]:
    """Results of ours, of bare SQL, of ours with the peers' end of a lone run, and of every peer."""
    mine, bare, run = Result(OURS), Result("bare-sql"), Result(f"{OURS}, unrecorded")
    async with AsyncExitStack() as stack:
        places = [await _prepared(peer, plan, base.url, stack) for peer in plan.peers]
        for number in range(plan.repeats):
            turn, lone = await ours.turn(settings, plan.ours(), plan.lone)
            mine.turns.append(turn)
            bare.lone.append(lone.bare)
            run.lone.append(lone.run)
            say(f"turn {number + 1}/{plan.repeats} (load {os.getloadavg()[0]:.2f}): {report.shown(mine)}")
            for at in places:
                await _turn(at, plan)
        mine.setting = as_setting(plan.ours())
    return [mine, bare, run, *(at.result for at in places)]


async def _prepared(peer: Peer, plan: Plan, url: str, stack: AsyncExitStack) -> Place:
    """A peer in a database of its own, or the reason why it is not."""
    at = Place(peer, Result(peer.name), left=plan.seconds)
    try:
        command, variables = await asyncio.to_thread(install.command, peer)
        own = await stack.enter_async_context(place.database(url))
        at.bench = await ready(command, {**place.variables(own), **variables}, own)
    except FAULTS as error:
        _failed(at, error)
        return at
    about: dict[str, Any] = at.bench.about
    at.result.setting = {
        "version": about["version"],
        "steps": about["steps"],
        "workers": plan.workers,
        "runs": plan.work(peer.runs).runs,
        **about["setting"],
    }
    return at


async def _turn(at: Place, plan: Plan) -> None:
    """A peer's turn, unless it failed before or has spent its time."""
    if at.bench is None or at.left <= 0:
        return
    begun = time.monotonic()
    try:
        async with asyncio.timeout(at.left):
            at.result.turns.append(await at.bench.turn(plan.work(at.peer.runs)))
        say(f"  {at.peer.name}: {report.shown(at.result)}")
    except TimeoutError:
        at.bench = None
        if not at.result.turns:
            _failed(at, PeerError(f"no turn was done in {plan.seconds:.0f} s"))
    except FAULTS as error:
        _failed(at, error)
    at.left -= time.monotonic() - begun


def _failed(at: Place, error: BaseException) -> None:
    at.bench = None
    at.result.problem = str(error) or type(error).__name__
    say(f"  {at.peer.name}: no figures: {at.result.problem}")
