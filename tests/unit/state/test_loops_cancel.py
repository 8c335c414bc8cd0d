"""Loops that are cancelled: by a join, by name, with their run; what they have achieved stays readable."""

from __future__ import annotations

from typing import Any

import pytest

from partita.domain.state.events import CancelRequested
from tests.property.build import definition
from tests.property.world import Mode
from tests.unit.state.looping import MODES, Looping

both = pytest.mark.parametrize("mode", MODES)
EACH = {"name": "a", "forEach": {"items": [1, 2, 3, 4], "maxParallel": 2}, "input": {"v": "${item}"}}


def race(mode: Mode, **loop: Any) -> Looping:
    """The loop ``a`` against the task ``p``: the first to end wins, and ``z`` sees the loop."""
    joined = {"name": "z", "dependsOn": ["a", "p"], "join": "any", "cancelRemaining": True}
    world = Looping(definition({**EACH, **loop}, {"name": "p"}, joined, output="${nodes.a.output}"), mode)
    world.start()
    return world


@both
def test_a_join_cancels_every_item(mode: Mode) -> None:
    world = race(mode)
    world.claim_item(0)
    world.item(1, "kept")
    assert world.parts() == ["Queued", "Completed", "Queued", "Pending"]
    world.complete("p")
    assert world.parts() == ["Cancelled", "Completed", "Cancelled", "Cancelled"]
    assert (world.group.state.value, world.ready(), world.run.active, world.run.done) == ("Cancelled", [], 1, 2)
    world.complete("z")
    assert (world.status, world.result) == ("Succeeded", [None, "kept", None, None])


@both
def test_an_iteration_and_its_delay_are_cancelled(mode: Mode) -> None:
    world = race(mode, forEach=None, repeat={"until": "${false}", "delay": "1h"}, input={})
    world.item(0, "x")
    world.complete("p")
    assert (world.parts(), world.store.timers) == (["Completed", "Cancelled"], {})
    world.complete("z")
    assert (world.status, world.result) == ("Succeeded", None)


@both
def test_a_report_of_a_cancelled_item_is_late(mode: Mode) -> None:
    world = race(mode)
    report = world.done(0, "late")
    world.complete("p")
    assert world.send(report).outcome == "stale"
    assert world.part(0).state.value == "Cancelled"


@both
def test_a_loop_is_cancelled_by_its_name(mode: Mode) -> None:
    world = Looping(definition(EACH, {"name": "p"}, output="${nodes.a.output}"), mode)
    world.start()
    world.item(0, 10)
    world.send(CancelRequested(nodes=("a",)))
    assert (world.group.state.value, world.parts()) == ("Cancelled", ["Completed", *["Cancelled"] * 3])
    world.complete("p")
    assert (world.status, world.result) == ("Succeeded", [10, None, None, None])


@both
def test_the_run_is_cancelled_with_its_items(mode: Mode) -> None:
    world = Looping(definition(EACH), mode)
    world.start()
    world.item(1, 10)
    world.cancel()
    assert (world.status, world.parts()) == ("Cancelled", ["Cancelled", "Completed", "Cancelled", "Cancelled"])
    assert (world.run.done, world.run.active, world.store.ready) == (1, 0, {})


@both
def test_items_of_an_object_keep_their_keys_in_what_was_achieved(mode: Mode) -> None:
    world = race(mode, forEach={"items": {"b": 2, "a": 1}, "maxParallel": 2})
    world.item(0, "A")
    world.complete("p")
    world.complete("z")
    assert world.result == {"a": "A", "b": None}


@both
def test_more_than_is_kept_is_not_shown(mode: Mode) -> None:
    world = race(mode)
    world.limits = type(world.limits)(output_bytes=50)
    world.item(0, "x" * 40)
    world.item(1, "x" * 40)
    world.complete("p")
    world.complete("z")
    assert (world.status, world.result) == ("Succeeded", None)


@both
def test_a_loop_that_has_not_started_has_no_items_to_cancel(mode: Mode) -> None:
    joined = {"name": "z", "dependsOn": ["a", "p"], "join": "any", "cancelRemaining": True}
    world = Looping(definition({"name": "q"}, {**EACH, "dependsOn": ["q"]}, {"name": "p"}, joined), mode)
    world.start()
    world.complete("p")
    assert (world.group.state.value, world.state("q")) == ("Cancelled", "Cancelled")
