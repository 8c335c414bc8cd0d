"""Undo: what Completed nodes did is reversed when the run does not succeed."""

from __future__ import annotations

from typing import Any

import pytest

from partita.domain.state.events import CancelRequested, DeadlineReached, Event
from partita.domain.state.rows import NodeKey, TimerKind
from partita.domain.state.slices import Limits
from tests.property.world import Mode, World
from tests.unit.state.flows import end, flow, letter, names, ready, task, undoable

SEEN = {"i": "${input}", "o": "${output}", "e": "${error}", "s": "${run.status}", "c": "${config.site}"}
MODES = pytest.mark.parametrize("mode", ["whole", "sliced"])


def failed(mode: Mode = "whole", **more: Any) -> World:
    """``a`` and ``b`` have completed, ``c`` has failed."""
    world = flow(
        undoable("a", SEEN, input={"n": "${input.n}"}),
        undoable("b", dependsOn=["a"]),
        task("c", dependsOn=["b"]),
        config={"site": "north"},
        mode=mode,
        **more,
    )
    world.complete("a", {"id": 7})
    world.complete("b")
    world.fail("c", "boom")
    return world


def go_on(world: World) -> Event:
    """Apply that message; returns it."""
    event = letter(world)
    world.send(event)
    return event


@MODES
def test_the_last_completed_is_undone_first_and_one_at_a_time(mode: Mode) -> None:
    world = failed(mode)
    assert (world.status, world.run.stage.value, ready(world)) == ("Running", "undo", ["b~undo"])
    world.complete("b~undo")
    assert ready(world) == ["a~undo"]
    assert world.input("a~undo") == {
        "i": {"n": 1}, "o": {"id": 7}, "e": None, "s": "Failed", "c": "north",
    }  # fmt: skip  # in one line each
    world.complete("a~undo", {"reverted": True})
    assert end(world) == ("Failed", "NodeFailed")
    assert world.run.error is not None
    assert world.run.error.type == "boom"
    assert names(world) == [
        "RunStarted", "TaskCompleted", "TaskCompleted", "TaskFailed", "UndoStarted", "TaskCompleted", "TaskCompleted",
        "RunFinished",
    ]  # fmt: skip  # in one line each
    assert (world.run.done, world.run.total) == (3, 3)


@MODES
def test_a_run_that_succeeds_undoes_nothing(mode: Mode) -> None:
    world = flow(undoable("a"), mode=mode)
    world.complete("a")
    assert end(world) == ("Succeeded", "")
    assert world.states() == {"a": "Completed"}


@MODES
def test_nothing_completed_is_nothing_to_undo(mode: Mode) -> None:
    world = flow(undoable("a"), mode=mode)
    world.fail("a")
    assert end(world) == ("Failed", "NodeFailed")
    assert "UndoStarted" not in names(world)


@MODES
def test_a_failing_undo_is_retried_then_recorded_and_passed_over(mode: Mode) -> None:
    world = failed(mode, limits=Limits(undo_tries=2))
    world.fail("b~undo")
    assert world.state("b~undo") == "Waiting"
    world.tick(10)
    assert world.row("b~undo").attempt == 2
    world.fail("b~undo", "broken")
    assert (world.state("b~undo"), ready(world)) == ("Failed", ["a~undo"])
    assert [line[1] for line in world.events("UndoFailed")] == ["b~undo"]
    world.complete("a~undo")
    assert end(world) == ("Failed", "NodeFailed")


def test_the_default_retry_of_the_definition_is_an_undos_too() -> None:
    world = failed(defaults={"retry": [{"maxRetries": 1, "match": ["flaky"], "initialDelay": "1s"}]})
    world.fail("b~undo", "flaky")
    world.tick(1)
    assert world.row("b~undo").attempt == 2
    world.fail("b~undo", "other")
    assert world.state("b~undo") == "Failed"


@MODES
def test_lost_leases_and_timeouts_of_an_undo_are_those_of_a_task(mode: Mode) -> None:
    world = failed(mode)
    world.lose("b~undo")
    assert (world.row("b~undo").attempt, ready(world)) == (2, ["b~undo"])
    world.time_out("b~undo")
    assert world.state("b~undo") == "Waiting"


@MODES
def test_an_undo_whose_input_cannot_be_evaluated_holds_up_none(mode: Mode) -> None:
    bad = {"v": "${output.none}"}
    world = flow(undoable("a"), undoable("b", bad), undoable("c", bad), task("x", dependsOn=["a", "b", "c"]), mode=mode)
    world.complete("a")
    world.complete("b", {})
    world.complete("c", {})
    world.fail("x")
    assert (world.state("c~undo"), world.state("b~undo"), ready(world)) == ("Failed", "Pending", [])
    first = go_on(world)
    assert (world.state("b~undo"), ready(world)) == ("Failed", [])
    go_on(world)
    assert (world.state("a~undo"), ready(world)) == ("Queued", ["a~undo"])
    assert world.send(first).outcome == "stale"
    assert [line[1] for line in world.events("UndoFailed")] == ["c~undo", "b~undo"]
    world.complete("a~undo")
    assert end(world) == ("Failed", "NodeFailed")


@MODES
def test_a_chain_of_undos_that_cannot_begin_goes_on_when_the_run_is_resumed(mode: Mode) -> None:
    world = flow(undoable("a"), undoable("b", {"v": "${output.none}"}), task("x", dependsOn=["a", "b"]), mode=mode)
    world.complete("a")
    world.complete("b", {})
    world.fail("x")
    message = letter(world)
    world.signal("any")
    world.suspend()
    world.send(message)
    assert (world.state("a~undo"), ready(world)) == ("Pending", [])
    world.resume()
    assert ready(world) == ["a~undo"]


@MODES
def test_attempts_in_flight_are_waited_for(mode: Mode) -> None:
    world = flow(undoable("a"), undoable("b"), undoable("c"), task("x"), task("y"), mode=mode)
    for name in ("a", "b", "y"):
        world.claim(name)
    world.fail("x")
    assert world.states() == {"x": "Failed", "a": "Queued", "b": "Queued", "c": "Cancelled", "y": "Cancelled"}
    assert (world.run.stage.value, [key.kind for key in world.store.timers]) == ("undo", [TimerKind.DRAIN])
    assert NodeKey("y") not in world.store.leases
    world.complete("a", 1)
    assert ready(world) == []
    world.fail("b")
    assert (world.state("b"), ready(world), world.store.timers) == ("Failed", ["a~undo"], {})
    world.complete("a~undo")
    assert end(world) == ("Failed", "NodeFailed")


@MODES
def test_an_attempt_that_fails_while_it_is_waited_for_is_not_retried(mode: Mode) -> None:
    world = flow(undoable("a", retry=[{"maxRetries": 3}]), task("x"), mode=mode)
    world.claim("a")
    world.fail("x")
    world.fail("a")
    assert (end(world), world.state("a")) == (("Failed", "NodeFailed"), "Failed")


@MODES
@pytest.mark.parametrize("lapse", ["lose", "hand back", "time out", "drain"])
def test_an_outcome_that_nobody_knows_is_undone_with_a_null_output(lapse: str, mode: Mode) -> None:
    world = flow(undoable("a", {"o": "${output}", "i": "${input}"}, input={"k": 1}), task("x"), mode=mode)
    world.claim("a")
    world.fail("x")
    if lapse == "lose":
        world.lose("a")
    elif lapse == "hand back":
        world.lose("a", handed_back=True)
    elif lapse == "time out":
        world.time_out("a")
    else:
        world.tick(61)
    assert (world.state("a"), ready(world), world.store.leases) == ("Cancelled", ["a~undo"], {})
    assert world.input("a~undo") == {"o": None, "i": {"k": 1}}
    world.complete("a~undo")
    assert end(world) == ("Failed", "NodeFailed")


@MODES
def test_edges_of_what_completes_while_it_is_waited_for_are_not_followed(mode: Mode) -> None:
    world = flow(undoable("a"), task("b", dependsOn=["a"]), task("x"), mode=mode)
    world.claim("a")
    world.fail("x")
    world.complete("a")
    assert world.states() == {"a": "Completed", "x": "Failed", "a~undo": "Queued"}


@MODES
def test_suspending_freezes_undo(mode: Mode) -> None:
    world = failed(mode)
    world.claim("b~undo")
    world.suspend()
    world.complete("b~undo")
    assert (ready(world), world.status) == ([], "Suspended")
    world.resume()
    assert (ready(world), world.status) == (["a~undo"], "Running")
    world.suspend()
    assert ready(world) == []
    world.resume()
    world.complete("a~undo")
    assert end(world) == ("Failed", "NodeFailed")


@MODES
def test_a_suspended_run_that_fails_undoes_once_it_is_resumed(mode: Mode) -> None:
    world = flow(undoable("a"), task("b", dependsOn=["a"]), mode=mode)
    world.complete("a")
    world.claim("b")
    world.suspend()
    world.fail("b")
    assert (world.status, world.run.stage.value, ready(world)) == ("Suspended", "undo", [])
    world.resume()
    assert ready(world) == ["a~undo"]


@MODES
def test_the_last_undo_of_a_suspended_run_ends_it_once_it_is_resumed(mode: Mode) -> None:
    world = flow(undoable("a"), task("b", dependsOn=["a"]), mode=mode)
    world.complete("a")
    world.fail("b")
    world.claim("a~undo")
    world.suspend()
    world.complete("a~undo")
    assert world.status == "Suspended"
    world.resume()
    assert end(world) == ("Failed", "NodeFailed")


@MODES
def test_the_wait_for_attempts_is_frozen_too(mode: Mode) -> None:
    world = flow(undoable("a"), task("x"), mode=mode)
    world.claim("a")
    world.fail("x")
    world.suspend()
    world.tick(100)
    assert world.state("a") == "Queued"
    world.complete("a")
    world.resume()
    assert (ready(world), world.store.timers) == (["a~undo"], {})


@MODES
def test_cancel_while_undo_runs(mode: Mode) -> None:
    world = failed(mode)
    reply = world.cancel()
    assert (reply.outcome, reply.reason) == ("refused", "RunEnding")
    assert ready(world) == ["b~undo"]
    world.send(CancelRequested(mode="Now"))
    assert end(world) == ("Cancelled", "CancelRequested")
    assert world.states()["a"] == "Completed"
    assert {world.state("a~undo"), world.state("b~undo")} == {"Cancelled"}


@MODES
def test_cancel_graceful_of_a_run_that_undoes_because_it_was_cancelled(mode: Mode) -> None:
    world = flow(undoable("a"), task("b", dependsOn=["a"]), mode=mode)
    world.complete("a")
    world.cancel()
    assert (world.status, ready(world), world.state("b")) == ("Running", ["a~undo"], "Cancelled")
    assert world.cancel().outcome == "already_applied"
    world.complete("a~undo")
    assert end(world) == ("Cancelled", "CancelRequested")


@MODES
def test_cancel_now_undoes_nothing(mode: Mode) -> None:
    world = flow(undoable("a"), task("b", dependsOn=["a"]), mode=mode)
    world.complete("a")
    world.send(CancelRequested(mode="Now"))
    assert end(world) == ("Cancelled", "CancelRequested")
    assert ready(world) == []


@MODES
def test_cancel_now_while_attempts_are_waited_for_leaves_nothing(mode: Mode) -> None:
    world = flow(undoable("a"), task("x"), mode=mode)
    world.claim("a")
    world.fail("x")
    world.send(CancelRequested(mode="Now"))
    assert end(world) == ("Cancelled", "CancelRequested")
    assert not world.store.leases


@MODES
def test_the_deadline_undoes_and_ends_with_main(mode: Mode) -> None:
    world = flow(undoable("a"), task("b", dependsOn=["a"]), timeout="1h", mode=mode)
    world.complete("a")
    world.tick(3_600)
    assert (world.status, ready(world), world.store.timers) == ("Running", ["a~undo"], {})
    world.tick(7_200)
    assert world.send(DeadlineReached()).outcome == "stale"
    world.suspend()
    world.resume()
    assert world.store.timers == {}
    world.complete("a~undo")
    assert (end(world), world.run.pending_outcome) == (("Failed", "DeadlineExceeded"), "")


@MODES
def test_an_output_that_cannot_be_evaluated_undoes(mode: Mode) -> None:
    world = flow(undoable("a"), output={"v": "${nodes.a.output.none}"}, mode=mode)
    world.complete("a", {})
    assert ready(world) == ["a~undo"]
    world.complete("a~undo")
    assert end(world) == ("Failed", "InvalidOutput")


@MODES
def test_without_fail_fast_undo_waits_for_the_other_branches(mode: Mode) -> None:
    world = flow(undoable("a"), task("b"), failFast=False, mode=mode)
    world.fail("b")
    assert world.run.pending_outcome == "Failed/NodeFailed"
    world.complete("a")
    assert ready(world) == ["a~undo"]
    world.complete("a~undo")
    assert end(world) == ("Failed", "NodeFailed")


@MODES
def test_chunks_keep_the_order(mode: Mode) -> None:
    nodes = [undoable(f"n{number}") for number in range(7)]
    world = flow(*nodes, task("x"), mode=mode, limits=Limits(loop_chunk=3))
    order = [3, 0, 6, 1, 5, 2, 4]
    for number in order:
        world.complete(f"n{number}")
    world.fail("x")
    undone = []
    while world.status == "Running":
        (name,) = ready(world)
        undone.append(name)
        world.complete(name)
    assert undone == [f"n{number}~undo" for number in reversed(order)]


def test_a_late_report_of_an_undo_is_stale() -> None:
    world = failed()
    world.complete("b~undo")
    assert world.send(world.peeked("b~undo")).outcome == "stale"


@MODES
def test_nothing_to_undo_in_the_end_goes_on_with_finally(mode: Mode) -> None:
    world = flow(undoable("a"), task("x"), final=[task("audit")], mode=mode)
    world.claim("a")
    world.fail("x")
    world.fail("a")
    assert (world.run.stage.value, ready(world), world.store.timers) == ("finally", ["audit"], {})
    world.complete("audit")
    assert end(world) == ("Failed", "NodeFailed")


@MODES
def test_what_the_wait_left_open_is_undone_against_the_written_order(mode: Mode) -> None:
    world = flow(undoable("b", dependsOn=["a"]), undoable("c"), {"name": "a", "compute": {}}, task("x"), mode=mode)
    world.claim("b")
    world.claim("c")
    world.fail("x")
    world.tick(60)
    assert ready(world) == ["c~undo"]
