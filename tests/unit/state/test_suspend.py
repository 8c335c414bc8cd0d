"""Suspend, resume, cancel and the controls of a WorkflowRun object."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from partita.domain.state.events import CancelRequested, ControlsApplied
from partita.domain.state.rows import FROZEN, NodeKey, TimerKind
from tests.property.build import definition
from tests.property.world import EPOCH, World


def started(*nodes: dict[str, Any], **more: Any) -> World:
    world = World(definition(*nodes, **more))
    world.start({"wait": "10s"})
    return world


def test_an_attempt_in_flight_finishes_and_nothing_new_starts() -> None:
    world = started({"name": "a"}, {"name": "b", "dependsOn": ["a"]}, {"name": "c", "dependsOn": ["a"], "compute": 1})
    world.claim("a")
    world.suspend()
    assert world.complete("a").outcome == "applied"
    assert world.states() == {"a": "Completed", "b": "Pending", "c": "Pending"}
    assert world.row("b").fired
    assert world.store.ready == {}
    world.resume()
    assert world.states() == {"a": "Completed", "b": "Queued", "c": "Completed"}


def test_when_is_looked_at_only_after_the_resumption() -> None:
    world = started({"name": "a"}, {"name": "b", "when": "${nodes.a.output > 1}", "compute": 1}, {"name": "z"})
    world.claim("a")
    world.suspend()
    world.complete("a", 1)
    assert world.state("b") == "Pending"
    world.resume()
    assert world.state("b") == "Skipped"


def test_death_is_passed_on_while_suspended() -> None:
    world = started({"name": "a", "onError": [{"next": []}]}, {"name": "b", "dependsOn": ["a"]}, {"name": "z"})
    world.claim("a")
    world.suspend()
    world.fail("a")
    assert world.state("b") == "Skipped"


def test_a_wait_keeps_the_time_that_was_left() -> None:
    world = started({"name": "a", "wait": {"duration": "${input.wait}"}})
    world.pass_time(4)
    world.suspend()
    (timer,) = world.store.timers.values()
    assert (timer.fire_at, timer.remaining_ms) == (FROZEN, 6_000)
    world.tick(1_000)
    assert world.state("a") == "Waiting"
    world.resume()
    world.tick(5)
    assert world.state("a") == "Waiting"
    world.tick(1)
    assert world.status == "Succeeded"


def test_the_deadline_keeps_the_time_that_was_left() -> None:
    world = started({"name": "a"}, timeout="1h")
    world.pass_time(600)
    world.suspend()
    assert (world.run.deadline_at, world.run.deadline_remaining_ms) == (None, 3_000_000)
    world.tick(36_000)
    world.resume()
    assert world.run.deadline_at == world.now + timedelta(minutes=50)
    world.tick(3_000)
    assert (world.status, world.run.reason) == ("Failed", "DeadlineExceeded")


def test_a_backoff_that_begins_while_suspended_is_frozen() -> None:
    world = started({"name": "a", "retry": [{"initialDelay": "10s"}]})
    world.claim("a")
    world.suspend()
    world.fail("a")
    (timer,) = world.store.timers.values()
    assert (timer.kind, timer.fire_at, timer.remaining_ms) == (TimerKind.BACKOFF, FROZEN, 10_000)
    world.resume()
    world.tick(10)
    assert world.row("a").attempt == 2


def test_ready_work_is_withdrawn_and_offered_again() -> None:
    world = started({"name": "a"}, {"name": "b"})
    world.claim("b")
    world.suspend()
    assert world.store.ready == {}
    world.resume()
    assert set(world.store.ready) == {NodeKey("a")}


def test_a_signal_is_taken_while_suspended() -> None:
    world = started({"name": "a", "waitForEvent": {}}, {"name": "b", "dependsOn": ["a"]})
    world.suspend()
    world.signal("a", 1)
    assert world.states() == {"a": "Completed", "b": "Pending"}


def test_a_failure_ends_a_suspended_run() -> None:
    world = started({"name": "a"}, {"name": "b"})
    world.claim("a")
    world.suspend()
    world.fail("a")
    assert world.status == "Failed"


def test_cancel_ends_the_run_and_everything_in_it() -> None:
    world = started({"name": "a"}, {"name": "b", "wait": {"duration": "1h"}}, {"name": "c", "dependsOn": ["a"]})
    world.claim("a")
    world.cancel()
    assert (world.status, world.run.reason) == ("Cancelled", "CancelRequested")
    assert world.states() == {"a": "Cancelled", "b": "Cancelled"}
    assert world.run.error is not None
    assert (world.run.error.type, world.run.error.message) == ("cancelled", "no longer wanted")
    assert world.send(world.peeked("a")).outcome == "stale"


def test_start_at_does_not_wait_for_a_resumption() -> None:
    world = World(definition({"name": "a"}))
    world.start(start_at=EPOCH + timedelta(hours=1))
    world.suspend()
    world.tick(3_600)
    assert (world.status, world.state("a")) == ("Suspended", "Pending")
    world.resume()
    assert (world.status, world.state("a")) == ("Running", "Queued")


def test_the_deadline_counts_from_the_start_and_not_from_the_creation() -> None:
    world = World(definition({"name": "a"}, timeout="1h"))
    world.start(start_at=EPOCH + timedelta(hours=5))
    assert (world.status, world.run.deadline_at) == ("Pending", None)
    world.tick(5 * 3_600)
    assert world.run.deadline_at == EPOCH + timedelta(hours=6)


def test_a_run_has_its_own_timeout() -> None:
    world = World(definition({"name": "a"}, timeout="1h"))
    world.start(timeout_ms=1_000)
    world.tick(1)
    assert world.run.error is not None
    assert (world.status, world.run.error.type) == ("Failed", "timeout")


def test_controls_act_on_their_edges_only() -> None:
    world = started({"name": "a"})
    world.controls(2, suspend=True)
    assert world.status == "Suspended"
    world.resume()
    world.controls(3, suspend=True)
    assert world.status == "Running"
    world.controls(4, suspend=False)
    assert world.status == "Running"
    world.suspend()
    world.controls(5)
    assert world.status == "Suspended"
    world.controls(6, suspend=True)
    world.controls(7)
    assert world.status == "Running"


def test_controls_say_what_became_of_each_signal() -> None:
    world = started({"name": "a", "waitForEvent": {"schema": {"type": "integer"}}}, {"name": "b", "waitForEvent": {}})
    signals = (
        world.signalled("a", "one", id="bad"),
        world.signalled("a", 1, id="good"),
        world.signalled("later", 1, id="early"),
    )
    details = world.controls(2, signals=signals).details
    assert details["bad"].startswith("Refused: payload")
    assert (details["good"], details["early"]) == ("Consumed", "Accepted")


def test_signals_of_a_generation_come_before_its_cancel_and_after_its_suspend() -> None:
    world = started({"name": "a", "waitForEvent": {}}, {"name": "b", "dependsOn": ["a"]})
    world.controls(2, suspend=True, signals=(world.signalled("a", 1),), cancel=CancelRequested())
    assert (world.status, world.state("a")) == ("Cancelled", "Completed")
    assert [line[0] for line in world.events()][1:4] == ["SuspendRequested", "SignalReceived", "CancelRequested"]


def test_controls_of_a_finished_run_are_seen_and_change_nothing_else() -> None:
    world = started({"name": "a"})
    world.complete("a")
    before = world.store.image()
    details = world.controls(9, suspend=True, cancel=CancelRequested(), signals=(world.signalled("x", 1),)).details
    assert world.store.image() == before
    assert (world.run.cr_generation, world.run.revision) == (9, 3)
    assert details["s1"].startswith("Refused: the run has ended")


def test_controls_that_were_there_before_the_start() -> None:
    world = World(definition({"name": "a", "waitForEvent": {}}, {"name": "b"}))
    world.start(controls=ControlsApplied(cr_generation=3, suspend=True, signals=(world.signalled("a", 1),)))
    assert (world.status, world.run.cr_generation) == ("Suspended", 3)
    assert world.states() == {"a": "Pending", "b": "Pending"}
    world.controls(4)
    assert world.states() == {"a": "Completed", "b": "Queued"}
