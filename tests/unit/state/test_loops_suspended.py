"""Loops of a suspended run: what is in flight finishes, what would start is parked and starts when it is resumed."""

from __future__ import annotations

import pytest

from partita.domain.state.events import SuspendRequested
from tests.property.world import Mode
from tests.unit.state.looping import MODES, Looping, loop

both = pytest.mark.parametrize("mode", MODES)


def each(mode: Mode, count: int = 4, **limits: int) -> Looping:
    """A run with a forEach, two at a time."""
    made = loop(forEach={"items": "${range(0, input.n)}", "maxParallel": 2}, input={"v": "${item}"})
    world = Looping(made, mode, **limits)
    world.start({"n": count})
    return world


@both
def test_items_that_would_start_are_parked(mode: Mode) -> None:
    world = each(mode)
    world.claim_item(0)
    world.claim_item(1)
    world.suspend()
    world.item(0, 0)
    assert (world.parts(), world.ready()) == (["Completed", "Queued", "Pending", "Pending"], [])
    assert (world.counters.running, world.counters.next, world.run.active) == (1, 3, 2)
    world.item(1, 1)
    assert (world.counters.running, world.counters.next, world.run.active) == (0, 4, 1)
    world.resume()
    assert (world.ready(), world.counters.running, world.run.active) == ([2, 3], 2, 3)
    world.item(2, 2)
    world.item(3, 3)
    assert world.gave() == [0, 1, 2, 3]


@both
def test_items_are_made_while_it_is_suspended(mode: Mode) -> None:
    world = each(mode, 5, loop_chunk=2)
    world.claim_item(0)
    world.claim_item(1)
    world.suspend()
    world.item(0)
    world.item(1)
    assert world.parts() == ["Completed", "Completed", "Pending", "Pending"]
    world.resume()
    for index in (2, 3, 4):
        world.item(index)
    assert world.state("z") == "Queued"


@both
def test_a_group_that_would_start_is_parked_as_a_whole(mode: Mode) -> None:
    made = loop({"name": "p"}, forEach={"items": [1, 2]}, dependsOn=["p"], input={"v": "${item}"})
    world = Looping(made, mode)
    world.start()
    world.claim("p")
    world.suspend()
    world.complete("p")
    assert (world.group.state.value, world.parts()) == ("Pending", [])
    world.resume()
    assert world.ready() == [0, 1]


@both
def test_an_iteration_is_parked_and_its_input_evaluated_when_it_starts(mode: Mode) -> None:
    world = Looping(loop(repeat={"until": "${iteration == 1}"}, input={"last": "${previous}"}), mode)
    world.start()
    world.claim_item(0)
    world.suspend()
    world.item(0, "x")
    assert (world.parts(), world.counters.running, world.run.active) == (["Completed", "Pending"], 0, 1)
    world.resume()
    assert (world.ready(), world.inputs()[1], world.counters.running) == ([1], {"last": "x"}, 1)


@both
def test_a_delay_is_frozen(mode: Mode) -> None:
    world = Looping(loop(repeat={"until": "${iteration == 1}", "delay": "1m"}), mode)
    world.start()
    world.item(0)
    world.pass_time(20)
    world.suspend()
    world.tick(3_600)
    assert world.parts() == ["Completed", "Waiting"]
    world.resume()
    world.tick(39)
    assert world.ready() == []
    world.tick(1)
    assert world.ready() == [1]


@both
def test_a_delay_that_ends_in_the_transaction_that_suspends_parks_the_iteration(mode: Mode) -> None:
    world = Looping(loop(repeat={"until": "${iteration == 1}", "delay": "1m"}), mode)
    world.start()
    world.item(0)
    world.pass_time(60)
    event = world.fire(world.due()[0])
    world.store.apply(world.decide(SuspendRequested()))
    world.send(event)
    assert (world.parts(), world.run.active) == (["Completed", "Pending"], 1)
    world.resume()
    assert world.ready() == [1]
