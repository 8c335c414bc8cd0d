"""Different ways to the same decision, with controls and signals at any time: in batches, on slices.

``test_many_runs`` does the same with children and loops; orders are in ``test_language``.
"""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from partita.domain.state.events import CancelRequested, ControlsApplied, Event, ResumeRequested, SuspendRequested
from partita.domain.state.rows import NodeKey
from tests.property.player import event_of, finished, moves
from tests.property.profile import examples
from tests.property.strategies import Scenario, scenarios
from tests.property.world import World

INPUT = {"yes": True, "no": False}


@given(scenarios(), st.data())
@examples(60)
def test_a_slice_decides_as_the_whole_run_does(scenario: Scenario, data: st.DataObject) -> None:
    whole, sliced = World(scenario.definition()), World(scenario.definition(), mode="sliced")
    for world in (whole, sliced):
        world.start(INPUT)
    for number in range(40):
        if finished(whole):
            break
        possible = [*moves(whole), "suspend", "resume", "buffer go", "cancel"]
        move = data.draw(st.sampled_from(possible))
        replies = [world.send(_event(world, scenario, move, f"s{number}")) for world in (whole, sliced)]
        assert replies[0] == replies[1]
        assert whole.store.image() == sliced.store.image()
        assert whole.store.history == sliced.store.history


@given(scenarios(), st.data())
@examples(60)
def test_a_batch_decides_as_single_events_do(scenario: Scenario, data: st.DataObject) -> None:
    single, batch = World(scenario.definition()), World(scenario.definition())
    start: list[Event] = [single.started(INPUT)]
    if data.draw(st.booleans()):
        start += [single.signalled("go", 1), SuspendRequested(), ResumeRequested()]
    outcomes = [single.send(event).outcome for event in start]
    assert outcomes == [reply.outcome for reply in batch.send_batch(start)]
    for _ in range(15):
        _agree(single, batch)
        if finished(single):
            return
        picked = data.draw(st.lists(st.sampled_from([*moves(single), *_INTERVENTIONS]), min_size=1, max_size=5))
        _both(single, batch, scenario, list(dict.fromkeys(picked)))


_INTERVENTIONS = ["suspend", "resume", "buffer go", "buffer stop", "control", "repeat"]


def _both(single: World, batch: World, scenario: Scenario, picked: list[str]) -> None:
    if {"suspend", "control"} & set(picked):
        picked = [move for move in picked if move != "time"]  # a timer that was due before it was frozen
    picked.sort(key=lambda move: move != "time")  # a batch has one time
    for world in (single, batch):
        for key in sorted(world.store.ready):
            if f"work {key.node}" in picked:
                world.claim(key.node)
    known = len(single.store.signals)
    ids = [f"b{known}-{number}" for number in range(len(picked))]
    ids = [
        next(iter(single.store.signals), ids[0]) if move == "repeat" else one
        for move, one in zip(picked, ids, strict=True)
    ]
    events = [_event(batch, scenario, move, signal_id) for move, signal_id in zip(picked, ids, strict=True)]
    expected = []
    for move, signal_id in zip(picked, ids, strict=True):
        if _possible(single, move):
            expected.append(single.send(_event(single, scenario, move, signal_id)).outcome)
        else:
            expected.append("stale")
    assert [reply.outcome for reply in batch.send_batch(events)] == expected


def _possible(world: World, move: str) -> bool:
    """Whether the move's fence is still there."""
    kind, _, name = move.partition(" ")
    if kind == "work":
        return NodeKey(name) in world.store.leases
    return kind != "time" or "time" in moves(world)


def _agree(single: World, batch: World) -> None:
    assert single.store.image() == batch.store.image()
    assert single.store.history == batch.store.history
    assert single.run == batch.run


def _event(world: World, scenario: Scenario, move: str, signal_id: str) -> Event:
    """The event of a move, with its fence taken."""
    kind, _, name = move.partition(" ")
    match kind:
        case "suspend":
            return SuspendRequested()
        case "resume":
            return ResumeRequested()
        case "cancel":
            return CancelRequested()
        case "control":
            generation = world.run.cr_generation + 1
            signal = world.signalled("stop", 3, id=signal_id)
            return ControlsApplied(cr_generation=generation, suspend=generation % 2 == 0, signals=(signal,))
        case "buffer" | "signal":
            return world.signalled(name, 7, id=signal_id)
        case "repeat":
            return world.signalled("go", 7, id=signal_id)
        case _:
            return event_of(world, scenario, move)
