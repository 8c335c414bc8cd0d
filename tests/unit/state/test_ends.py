"""How runs end, what people see of it, and what may not be kept."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from partita.domain.errors import NotFoundError
from partita.domain.state import decide
from partita.domain.state.effects import Effects
from partita.domain.state.rows import NodeKey
from partita.domain.state.slices import Context, Limits, Slice
from tests.property.build import definition
from tests.property.world import EPOCH, World


def started(*nodes: dict[str, Any], limits: Limits | None = None, **more: Any) -> World:
    world = World(definition(*nodes, **more), limits=limits)
    world.start({"n": 1})
    return world


def test_the_output_is_evaluated_at_the_end() -> None:
    world = started({"name": "a"}, output={"a": "${nodes.a.output}", "n": "${input.n}", "r": "${run.name}"})
    world.complete("a", 5)
    assert (world.status, world.result) == ("Succeeded", {"a": 5, "n": 1, "r": "example-1"})


def test_an_error_in_the_output_fails_the_run() -> None:
    world = started({"name": "a"}, output="${nodes.a.output.x}")
    world.complete("a", {})
    assert world.run.error is not None
    assert (world.status, world.run.reason, world.run.error.type) == ("Failed", "InvalidOutput", "expression")
    assert world.result is None


def test_an_output_of_the_run_beyond_the_limit_fails_it() -> None:
    world = started(
        {"name": "a"}, {"name": "b"}, limits=Limits(output_bytes=30), output=["${nodes.a.output}", "${nodes.b.output}"]
    )
    world.complete("a", "x" * 20)
    world.complete("b", "x" * 20)
    assert world.run.error is not None
    assert (world.run.reason, world.run.error.type) == ("InvalidOutput", "output_too_large")


def test_an_output_of_a_node_beyond_the_limit_is_its_error() -> None:
    world = started(
        {"name": "a", "onError": [{"match": ["output_too_large"], "next": []}]}, limits=Limits(output_bytes=30)
    )
    world.complete("a", "x" * 40)
    assert world.status == "Succeeded"
    assert world.row("a").output is None


def test_an_input_beyond_the_limit_never_reaches_a_worker() -> None:
    world = started(
        {"name": "a"},
        {"name": "b", "input": ["${nodes.a.output}", "${nodes.a.output}"]},
        limits=Limits(output_bytes=30),
    )
    world.complete("a", "x" * 20)
    assert world.run.error is not None
    assert world.run.error.type == "input_too_large"


@pytest.mark.parametrize("value", ["a\x00b", {"k": ["\x00"]}])
def test_a_compute_that_makes_what_cannot_be_stored_fails(value: Any) -> None:
    world = World(definition({"name": "a", "compute": "${input.v}"}))
    world.start({"v": value})
    assert world.run.error is not None
    assert world.run.error.type == "expression"


def test_fail_fast_cancels_the_others() -> None:
    world = started({"name": "a"}, {"name": "b"}, {"name": "c", "dependsOn": ["b"]})
    world.claim("b")
    world.fail("a")
    assert (world.status, world.run.reason) == ("Failed", "NodeFailed")
    assert world.states() == {"a": "Failed", "b": "Cancelled"}
    assert world.run.error is not None
    assert world.run.error.type == "boom"
    assert world.events("RunFinished")[0][1] == "a"


def test_without_fail_fast_independent_branches_finish_first() -> None:
    world = started(
        {"name": "a"},
        {"name": "b"},
        {"name": "c", "dependsOn": ["b"]},
        {"name": "d", "dependsOn": ["a"]},
        fail_fast=False,
    )
    world.fail("a", "first")
    assert (world.status, world.state("d")) == ("Running", "Skipped")
    world.complete("b")
    world.fail("c", "second")
    assert world.run.error is not None
    assert (world.status, world.run.reason, world.run.error.type) == ("Failed", "NodeFailed", "first")


def test_an_input_that_cannot_be_evaluated_is_the_nodes_error() -> None:
    world = started(
        {"name": "a"},
        {"name": "b", "input": "${nodes.a.output.none}", "onError": [{"match": ["expression"], "next": ["c"]}]},
        {"name": "c"},
    )
    world.complete("a", {})
    assert world.states() == {"a": "Completed", "b": "Failed", "c": "Queued"}
    assert world.row("b").attempt == 0


def test_waits_end_in_time() -> None:
    world = started({"name": "a", "wait": {"until": "2030-01-01T00:01:00+00:00"}})
    world.tick(59)
    assert world.state("a") == "Waiting"
    world.tick(1)
    assert world.status == "Succeeded"


@pytest.mark.parametrize("until", ["tomorrow", "2030-01-01T00:00:00", 7])
def test_a_time_that_is_none_fails_the_wait(until: Any) -> None:
    world = World(definition({"name": "a", "wait": {"until": "${input.t}"}}))
    world.start({"t": until})
    assert world.run.error is not None
    assert "2030-01-31T08:00:00Z" in world.run.error.message


def test_a_wait_beyond_a_lifetime_fails() -> None:
    world = World(definition({"name": "a", "wait": {"duration": "${input.d}"}}))
    world.start({"d": "9999999d"})
    assert world.status == "Failed"


def test_the_revision_grows_with_what_people_can_see() -> None:
    world = started(
        {"name": "a", "retry": [{"initialDelay": "0s"}]}, {"name": "b", "dependsOn": ["a"], "waitForEvent": {}}
    )
    assert (world.run.revision, world.last and world.last.urgent) == (1, True)
    world.lose("a", handed_back=True)
    world.fail("a")
    seen = world.run.revision
    assert world.last is not None
    assert not world.last.urgent
    world.send(replace(world.peeked("a"), attempt=7))
    assert world.run.revision == seen
    world.complete("a")
    assert (world.run.revision, world.last.urgent) == (seen + 1, True)


def test_an_event_that_changes_nothing_leaves_the_very_row() -> None:
    world = started({"name": "a"})
    slice_ = world.store.whole()
    late = replace(world.peeked("a"), node="nobody")
    effects = decide(slice_, late, Context(EPOCH))
    assert isinstance(effects, Effects)
    assert effects.run is slice_.run


def test_a_long_message_is_cut_wherever_it_is_kept() -> None:
    world = started({"name": "a"}, limits=Limits(error_message=5))
    world.fail("a", "a-long-type")
    assert world.run.error is not None
    assert world.events("TaskFailed")[0][4].message == "a-lon"
    assert world.run.error.message == "a-lon"
    assert (world.row("a").error or world.run.error).message == "a-lon"


def test_priority_is_the_nodes_or_the_runs() -> None:
    world = World(definition({"name": "a"}, {"name": "b", "priority": -2}))
    world.start(priority=1)
    assert (world.store.ready[NodeKey("a")].priority, world.store.ready[NodeKey("b")].priority) == (1, -2)


def test_starting_again_changes_nothing() -> None:
    world = started({"name": "a"})
    before = world.store.image()
    effects = world.decide(world.started())
    assert (effects.reply.outcome, effects.new_run, effects.run is world.store.run) == ("already_applied", False, True)
    assert world.store.image() == before


def test_an_event_of_a_run_that_does_not_exist() -> None:
    world = World(definition({"name": "a"}))
    with pytest.raises(NotFoundError, match="does not exist"):
        world.cancel()
    assert isinstance(world.store.whole(), Slice)
