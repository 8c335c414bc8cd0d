"""Signals to runs among many: how long until one is acted upon, and many that reach one run at the same moment.

A signal is acted upon when a watcher sees the status of its run say so. Signals of one run that meet in the API server
are evaluated again there, each after each, which takes seconds whatever the operator does.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from bench.figures import Figure, say
from bench.kube_stage import PATIENCE, Stage, run_object
from bench.kube_watch import finished, succeeded, watching
from partita.domain.errors import InvalidError, UnavailableError
from partita.kube.client import JSON_PATCH, KubeClient
from partita.store.sql import substitute

SECONDS_GOAL: Final = 1.0
_PAUSE: Final = 0.1
_TAKEN: Final = """
SELECT count(*) FROM :"schema".workflow_events e JOIN :"schema".workflow_runs r ON r.id = e.run_id
WHERE r.name = $1 AND e.consumed_by = 'wait'
"""


@dataclass(frozen=True, slots=True)
class Votes:
    """Many signals that were sent to one run at once; times in seconds."""

    sent: int
    stored: float
    """Until the API server had answered the last of them."""
    succeeded: float
    """Until the run had all of them."""
    taken: int
    """Signals that the run has consumed, each counted as often as it was."""


async def send(client: KubeClient, path: str, name: str, identity: str) -> None:
    """Append a signal to a run's object, the way people do."""
    operation = {"op": "add", "path": "/spec/signals/-", "value": {"id": identity, "name": name}}
    await client.patch(path, [operation], JSON_PATCH)


async def lone(stage: Stage, waiting: Iterator[str], count: int) -> list[float]:
    """Seconds that signals to different runs took, one after the other."""
    samples = []
    for _ in range(count):
        async with watching(stage, 1) as watch:
            begun = time.perf_counter()
            await send(stage.client, stage.path(next(waiting)), "go", "lone")
            await finished(watch)
            samples.append(time.perf_counter() - begun)
        await asyncio.sleep(_PAUSE)
    say(f"kube_signal: {1e3 * min(samples):.0f} to {1e3 * max(samples):.0f} ms")
    return samples


async def many(stage: Stage, definition: str, count: int) -> Votes:
    """Send signals to one new run that waits for all of them."""
    name = "votes"
    async with watching(stage, 1, wanted=lambda status: bool(status.get("waitingFor"))) as watch:
        await stage.client.create(stage.path(), run_object(name, definition))
        await finished(watch)

    async def vote(client: KubeClient, todo: Iterator[str]) -> None:
        for identity in todo:
            await _certainly(client, stage.path(name), identity)

    async with watching(stage, 1, wanted=succeeded) as watch:
        begun = time.perf_counter()
        await stage.by_clients(count, vote, [f"v{number}" for number in range(count)])
        stored = time.perf_counter() - begun
        await finished(watch)
        taken = time.perf_counter() - begun
    found = await stage.observer.fetchval(substitute(_TAKEN, {"schema": stage.settings.database.schema}), name)
    say(f"kube_signals: {count} at once stored after {stored:.1f} s, acted upon after {taken:.1f} s, {found} delivered")
    return Votes(count, stored, taken, found)


async def _certainly(client: KubeClient, path: str, identity: str) -> None:
    """Send a signal, again if there is no answer: the same id counts once."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        try:
            await send(client, path, "vote", identity)
        except UnavailableError:
            await asyncio.sleep(_PAUSE)
        except InvalidError as error:
            if "Duplicate value" in error.message:
                return
            raise
        else:
            return
    raise SystemExit(f"bench: the API server does not take signal {identity}")


def figures(lone: Sequence[float], votes: Votes) -> list[Figure]:
    """What is printed."""
    setting = {"signals": votes.sent, "stored_after": round(votes.stored, 2)}
    return [
        Figure.median("kube_signal", lone, "s", goal=SECONDS_GOAL, better="lower"),
        Figure(figure="kube_signal_longest", value=max(lone), unit="s", goal=SECONDS_GOAL, better="lower"),
        Figure(
            figure="kube_signals_at_once",
            value=votes.succeeded - votes.stored,
            unit="s",
            better="lower",
            setting=setting,
        ),
        Figure(figure="kube_signals_delivered", value=votes.taken, unit="signals", goal=votes.sent, setting=setting),
    ]
