"""Plays a scenario: offers what may happen next, and makes it happen."""

from __future__ import annotations

from collections.abc import Callable

from partita.domain.state.events import AttemptTimedOut, Event, LeaseLost
from partita.domain.state.rows import TERMINAL
from tests.property.strategies import Scenario
from tests.property.world import World

Choose = Callable[[int], int]
"""Picks a number below the given one."""

MOST_STEPS = 400


def outcome_event(world: World, scenario: Scenario, node: str) -> Event:
    """What the worker that holds the node's attempt reports; ends the lease."""
    attempt = world.row(node).attempt
    plan = scenario.outcomes[node]
    outcome = plan[min(attempt, len(plan)) - 1]
    if outcome == "ok":
        return world.completed(node, {"node": node, "attempt": attempt})
    if outcome == "asked":
        return world.failed(node, "asked", retryable=True, retry_after_ms=2_000)
    if outcome in ("boom", "bad", "fatal"):
        return world.failed(node, outcome)
    attempt, since = world.end_lease(node)
    kind = LeaseLost if outcome == "lost" else AttemptTimedOut
    return kind(node=node, index=0, attempt=attempt, worker="worker-1", started_at=since)


def moves(world: World) -> list[str]:
    """Names of what may happen next without anybody's intervention."""
    work = [f"work {key.node}" for key in sorted({*world.store.ready, *world.store.leases})]
    timers = ["time"] if any(timer.remaining_ms is None for timer in world.store.timers.values()) else []
    signals = [f"signal {name}" for name in sorted({wait.name for wait in world.store.waits})]
    return work + timers + signals


def event_of(world: World, scenario: Scenario, move: str) -> Event:
    """The event of a move, with its fence taken."""
    kind, _, name = move.partition(" ")
    if kind == "work":
        return outcome_event(world, scenario, name)
    if kind == "signal":
        return world.signalled(name, 7)
    running = [(timer.fire_at, key) for key, timer in world.store.timers.items() if timer.remaining_ms is None]
    fire_at, key = min(running, key=lambda one: (one[0], one[1].kind.value, one[1].node))
    world.now = max(world.now, fire_at)
    return world.fire(key)


def finished(world: World) -> bool:
    """Whether the run has ended."""
    return world.run.status in TERMINAL


def play(world: World, scenario: Scenario, choose: Choose) -> None:
    """Make things happen in the chosen order until the run has ended."""
    world.start({"yes": True, "no": False})
    for _ in range(MOST_STEPS):
        if finished(world):
            return
        possible = moves(world)
        world.send(event_of(world, scenario, possible[choose(len(possible))]))
    raise AssertionError(f"the run did not end: {world.states()}")
