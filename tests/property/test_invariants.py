"""Whatever happens in whatever order, the invariants of a run hold, and it ends."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from partita.domain.payload import Payload
from partita.domain.state.events import TaskCompleted
from partita.domain.state.rows import TERMINAL
from tests.property.player import event_of, finished, moves, play
from tests.property.profile import examples
from tests.property.strategies import Scenario, scenarios
from tests.property.world import World

_ATTEMPTS = ("TaskCompleted", "TaskFailed", "LeaseLost", "AttemptTimedOut")


def _no_attempt_twice(world: World) -> None:
    attempts = [(line[1], line[2]) for line in world.events() if line[0] in _ATTEMPTS]
    assert len(attempts) == len(set(attempts)), f"an attempt is recorded twice: {attempts}"


@given(scenarios(), st.data())
@examples(80)
def test_every_run_ends_and_keeps_its_invariants(scenario: Scenario, data: st.DataObject) -> None:
    world = World(scenario.definition())
    play(world, scenario, lambda count: data.draw(st.integers(0, count - 1)))
    _no_attempt_twice(world)
    settled = [row for row in world.store.tasks.values() if row.finished_at is not None]
    assert len(settled) == len(world.store.tasks)
    assert (world.status == "Succeeded") == (world.run.reason == "")


@given(scenarios(), st.data())
@examples(80)
def test_invariants_hold_through_interventions(scenario: Scenario, data: st.DataObject) -> None:
    world = World(scenario.definition(), mode=data.draw(st.sampled_from(["whole", "sliced"])))
    world.start({"yes": True, "no": False})
    for _ in range(30):
        if finished(world):
            break
        others = ["suspend", "resume", "buffer", "refuse", "give back", "wait", "stale", "control"]
        choice = data.draw(st.sampled_from([*moves(world), *others]))
        _intervene(world, scenario, choice, data)
    _no_attempt_twice(world)
    if not finished(world):
        world.resume()
        world.cancel()
    assert finished(world)
    _nothing_changes_it(world)


def _intervene(world: World, scenario: Scenario, choice: str, data: st.DataObject) -> None:
    held = sorted({*world.store.leases, *world.store.ready})
    if choice == "suspend":
        world.suspend()
    elif choice == "resume":
        world.resume()
    elif choice in ("buffer", "refuse"):
        world.signal(data.draw(st.sampled_from(["go", "stop"])), 1 if choice == "buffer" else "no integer")
    elif choice == "give back":
        if held:
            world.lose(data.draw(st.sampled_from(held)).node, handed_back=True)
    elif choice == "wait":
        world.pass_time(data.draw(st.integers(0, 20)))
    elif choice == "stale":
        if held:
            _stale_report(world, data.draw(st.sampled_from(held)).node)
    elif choice == "control":
        generation = world.run.cr_generation + data.draw(st.integers(0, 1))
        world.controls(generation, suspend=data.draw(st.booleans()), signals=(world.signalled("go", 1),))
    else:
        world.send(event_of(world, scenario, choice))


def _stale_report(world: World, node: str) -> None:
    before = world.store.image()
    event = TaskCompleted(
        node=node,
        index=0,
        attempt=world.row(node).attempt + 1,
        output=Payload.of("late"),
        worker="worker-2",
        started_at=world.now,
    )
    assert world.send(event).outcome == "stale"
    assert world.store.image() == before


def _nothing_changes_it(world: World) -> None:
    """Terminal is final: no event changes a finished run but for the CR generation it has seen."""
    before, revision, history = world.store.image(), world.run.revision, len(world.store.history)
    world.suspend()
    world.resume()
    world.cancel()
    world.signal("go", 1)
    assert world.store.image() == before
    assert world.run.revision == revision
    assert len(world.store.history) == history
    assert world.run.status in TERMINAL
