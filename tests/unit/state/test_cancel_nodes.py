"""Cancelling some nodes of a run that goes on."""

from __future__ import annotations

import pytest

from partita.domain.state.events import CancelRequested, Reply
from partita.domain.state.rows import ErrorInfo, NodeKey
from tests.property.world import Mode, World
from tests.unit.state.flows import end, flow, ready, task, undoable

MODES = pytest.mark.parametrize("mode", ["whole", "sliced"])


def cancel(world: World, *nodes: str) -> Reply:
    """Cancel these nodes."""
    return world.send(CancelRequested(nodes=nodes, by="me", reason="not needed"))


@MODES
def test_the_node_is_cancelled_its_edges_die_and_the_run_goes_on(mode: Mode) -> None:
    world = flow(
        task("a"),
        task("b"),
        task("c", dependsOn=["a"]),
        task("d", dependsOn=["a", "b"], join="merge"),
        mode=mode,
    )
    world.claim("a")
    assert cancel(world, "a").outcome == "applied"
    assert world.states() == {"a": "Cancelled", "b": "Queued", "c": "Skipped", "d": "Pending"}
    assert NodeKey("a") not in world.store.leases
    assert world.row("a").error == ErrorInfo("cancelled", "not needed")
    world.complete("b")
    world.complete("d")
    assert end(world) == ("Succeeded", "")
    assert [line[3] for line in world.events("CancelRequested")] == ["me"]
    assert world.events("CancelRequested")[0][5] == {"nodes": ["a"], "reason": "not needed"}


@MODES
def test_whatever_the_node_holds_is_given_back(mode: Mode) -> None:
    world = flow(
        task("q"),
        task("r", retry=[{"maxRetries": 1, "initialDelay": "10s"}]),
        {"name": "w", "wait": {"duration": "1m"}},
        {"name": "e", "waitForEvent": {"timeout": "1h"}},
        task("z"),
        mode=mode,
    )
    world.fail("r")
    cancel(world, "q", "r", "w", "e")
    assert (ready(world), world.store.timers, world.store.waits) == (["z"], {}, [])
    world.complete("z")
    assert end(world) == ("Succeeded", "")


@MODES
def test_settled_and_unknown_names_change_nothing(mode: Mode) -> None:
    world = flow(undoable("a"), task("b"), mode=mode)
    world.complete("a")
    before = world.store.image()
    assert cancel(world, "a", "nobody", "a~undo").outcome == "already_applied"
    assert world.store.image() == before


@MODES
def test_a_node_that_has_not_begun_never_does(mode: Mode) -> None:
    world = flow(
        task("a"),
        task("b", dependsOn=["a"]),
        task("c", dependsOn=["b"]),
        task("d", dependsOn=["a"]),
        mode=mode,
    )
    cancel(world, "b")
    assert (world.state("b"), world.state("c"), world.state("d")) == ("Cancelled", "Skipped", "")
    world.complete("a")
    assert ready(world) == ["d"]
    world.complete("d")
    assert (end(world), world.state("b")) == (("Succeeded", ""), "Cancelled")


@MODES
def test_a_join_that_can_no_longer_fire_is_skipped(mode: Mode) -> None:
    world = flow(task("a"), task("b"), task("c", dependsOn=["a", "b"]), mode=mode)
    cancel(world, "b")
    world.complete("a")
    assert (end(world), world.state("c")) == (("Succeeded", ""), "Skipped")


@MODES
def test_a_run_of_which_every_node_is_cancelled_succeeds(mode: Mode) -> None:
    world = flow(task("a"), mode=mode)
    cancel(world, "a")
    assert end(world) == ("Succeeded", "")


@MODES
def test_names_of_finally_are_kept_until_it_begins(mode: Mode) -> None:
    final = [task("p"), task("q"), task("r", dependsOn=["q"])]
    world = flow(task("a"), final=final, mode=mode)
    assert cancel(world, "q").outcome == "applied"
    assert cancel(world, "q").outcome == "already_applied"
    assert world.state("q") == ""
    world.complete("a")
    assert (world.state("q"), world.state("r"), ready(world)) == ("Cancelled", "Skipped", ["p"])
    cancel(world, "p")
    assert (end(world), world.run.done) == (("Succeeded", ""), 4)


@MODES
def test_controls_act_by_their_edges(mode: Mode) -> None:
    world = flow(task("a"), task("b"), task("c", dependsOn=["b"]), mode=mode)
    world.controls(2, cancel_nodes=("a", "nobody"))
    assert (world.state("a"), world.run.applied_cancel_nodes) == ("Cancelled", ("a",))
    seen = len(world.store.history)
    world.controls(3, cancel_nodes=("a",))
    world.controls(4)
    assert len(world.store.history) == seen
    world.controls(5, cancel_nodes=("a", "c"))
    assert (world.state("c"), world.state("b")) == ("Cancelled", "Queued")
    world.complete("b")
    assert end(world) == ("Succeeded", "")


@MODES
def test_a_first_node_can_be_cancelled_before_the_run_begins(mode: Mode) -> None:
    world = flow(task("a"), task("b"), mode=mode, start=False)
    world.start(start_at=world.now.replace(year=2031))
    cancel(world, "a")
    assert (world.status, world.state("a")) == ("Pending", "Cancelled")
    world.tick(2 * 366 * 86_400)
    assert (world.state("a"), ready(world)) == ("Cancelled", ["b"])


@MODES
def test_nodes_of_a_suspended_run(mode: Mode) -> None:
    world = flow(task("a"), task("b", dependsOn=["a"], onFailure="continue"), task("c"), mode=mode)
    world.claim("a")
    world.suspend()
    world.complete("a")
    cancel(world, "b")
    assert (world.status, world.state("b")) == ("Suspended", "Cancelled")
    world.resume()
    assert ready(world) == ["c"]


@MODES
def test_nodes_of_a_run_that_has_ended(mode: Mode) -> None:
    world = flow(task("a"), mode=mode)
    world.complete("a")
    assert (cancel(world, "a").outcome, cancel(world, "a").reason) == ("refused", "RunFinished")
    world = flow(task("a"), task("b"), mode=mode)
    world.cancel()
    assert cancel(world, "b").outcome == "refused"


@MODES
def test_a_cancelled_node_is_not_undone(mode: Mode) -> None:
    world = flow(undoable("a"), task("b"), mode=mode)
    world.claim("a")
    cancel(world, "a")
    world.fail("b")
    assert end(world) == ("Failed", "NodeFailed")


@MODES
def test_a_loop_is_cancelled_with_all_its_parts(mode: Mode) -> None:
    each = {"items": [1, 2, 3], "maxParallel": 2}
    world = flow(task("a", forEach=each), task("b", dependsOn=["a"]), task("z"), mode=mode)
    cancel(world, "a")
    left = {key: row.state.value for key, row in world.store.tasks.items() if key.node == "a"}
    assert set(left.values()) == {"Cancelled"}
    assert (ready(world), world.state("b")) == (["z"], "Skipped")
    world.complete("z")
    assert end(world) == ("Succeeded", "")
