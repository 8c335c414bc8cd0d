"""Finally: what runs after every end but ``cancel: Now``."""

from __future__ import annotations

from typing import Any

import pytest

from partita.domain.state.events import CancelRequested, DeadlineReached
from tests.property.world import Mode, World
from tests.unit.state.flows import end, flow, names, ready, task, undoable

MODES = pytest.mark.parametrize("mode", ["whole", "sliced"])
RUN = {"s": "${run.status}", "r": "${run.reason}", "e": "${get(run, 'error.type', '')}", "o": "${run.output}"}
AUDIT: dict[str, Any] = task("audit", input={**RUN, "a": "${nodes.a.state}"})


def after(mode: Mode = "whole", *nodes: dict[str, Any], final: Any = (AUDIT,), **spec: Any) -> World:
    """A run of ``a`` (or these nodes) with an audit in finally."""
    return flow(*(nodes or (task("a"),)), final=final, mode=mode, **spec)


@MODES
def test_finally_follows_success_and_sees_it(mode: Mode) -> None:
    world = after(mode, output={"v": "${nodes.a.output}"})
    assert world.run.total == 2
    world.complete("a", 5)
    assert (world.status, world.run.stage.value, ready(world)) == ("Running", "finally", ["audit"])
    assert world.input("audit") == {"s": "Succeeded", "r": "", "e": "", "o": {"v": 5}, "a": "Completed"}
    world.complete("audit")
    assert (end(world), world.result, world.run.done) == (("Succeeded", ""), {"v": 5}, 2)
    assert names(world) == ["RunStarted", "TaskCompleted", "FinallyStarted", "TaskCompleted", "RunFinished"]


@MODES
def test_a_later_node_of_finally_sees_the_output_too(mode: Mode) -> None:
    final = (task("first"), task("then", dependsOn=["first"], input={"o": "${run.output}", "n": "${input.n}"}))
    world = after(mode, output={"v": "${nodes.a.output}"}, final=final)
    world.complete("a", 5)
    world.complete("first")
    assert world.input("then") == {"o": {"v": 5}, "n": 1}


@MODES
def test_finally_follows_a_failure(mode: Mode) -> None:
    world = after(mode, task("a"), task("b"))
    world.fail("a", "boom")
    assert world.input("audit") == {"s": "Failed", "r": "NodeFailed", "e": "boom", "o": None, "a": "Failed"}
    assert (world.state("b"), world.store.leases) == ("Cancelled", {})
    world.complete("audit")
    assert end(world) == ("Failed", "NodeFailed")
    assert (world.run.done, world.run.total) == (3, 3)


@MODES
def test_nodes_that_never_began_do_not_keep_finally_from_ending(mode: Mode) -> None:
    world = after(mode, task("a"), task("b", dependsOn=["a"]), task("c", dependsOn=["b"]))
    world.fail("a")
    world.complete("audit")
    assert (end(world), world.run.done, world.run.total) == (("Failed", "NodeFailed"), 2, 4)


@MODES
def test_finally_follows_a_cancellation_and_a_deadline(mode: Mode) -> None:
    world = after(mode)
    world.cancel()
    assert world.input("audit")["s"] == "Cancelled"
    world.complete("audit")
    assert end(world) == ("Cancelled", "CancelRequested")
    world = after(mode, timeout="1h")
    world.tick(3_600)
    assert (world.input("audit")["r"], world.store.timers) == ("DeadlineExceeded", {})
    world.complete("audit")
    assert end(world) == ("Failed", "DeadlineExceeded")


@MODES
def test_cancel_now_skips_finally(mode: Mode) -> None:
    world = after(mode)
    world.send(CancelRequested(mode="Now"))
    assert (end(world), world.state("audit")) == (("Cancelled", "CancelRequested"), "")


@MODES
def test_undo_comes_first(mode: Mode) -> None:
    world = after(mode, undoable("a"), task("b", dependsOn=["a"]))
    world.complete("a")
    world.fail("b")
    assert ready(world) == ["a~undo"]
    world.complete("a~undo")
    assert ready(world) == ["audit"]
    world.complete("audit")
    assert end(world) == ("Failed", "NodeFailed")
    assert [name for name in names(world) if name.endswith("Started")] == [
        "RunStarted", "UndoStarted", "FinallyStarted",
    ]  # fmt: skip  # in one line each


@MODES
def test_a_failure_of_finally_fails_a_success(mode: Mode) -> None:
    world = after(mode, final=(AUDIT, task("other"), task("next", dependsOn=["other"])))
    world.complete("a")
    world.fail("audit", "first")
    assert (world.status, ready(world)) == ("Running", ["other"])
    world.complete("other")
    world.fail("next", "second")
    assert end(world) == ("Failed", "FinallyFailed")
    assert world.run.error is not None
    assert world.run.error.type == "first"


@MODES
def test_a_failure_of_finally_never_hides_an_earlier_error(mode: Mode) -> None:
    world = after(mode)
    world.fail("a", "boom")
    world.fail("audit", "other")
    assert end(world) == ("Failed", "NodeFailed")
    assert world.run.error is not None
    assert world.run.error.type == "boom"


@MODES
def test_a_caught_failure_of_finally_fails_nothing(mode: Mode) -> None:
    final = (task("audit", onError=[{"next": ["mend"]}]), task("mend"), task("soft", onFailure="continue"))
    world = after(mode, final=final)
    world.complete("a")
    world.fail("soft")
    world.fail("audit")
    world.complete("mend")
    assert end(world) == ("Succeeded", "")


@MODES
def test_retries_joins_and_skips_are_those_of_main(mode: Mode) -> None:
    final = (
        task("p", retry=[{"maxRetries": 1, "initialDelay": "10s"}]),
        {"name": "choose", "switch": [{"when": "${run.status == 'Failed'}", "next": ["page"]}, {"next": []}]},
        task("page"),
        {"name": "both", "dependsOn": ["p", "page"], "join": "merge", "compute": {"v": 1}},
        {"name": "pause", "wait": {"duration": "5s"}, "dependsOn": ["both"]},
    )
    world = after(mode, final=final)
    world.complete("a")
    assert (world.state("choose"), world.state("page")) == ("Completed", "Skipped")
    world.fail("p")
    world.tick(10)
    world.complete("p")
    assert (world.state("both"), world.state("pause")) == ("Completed", "Waiting")
    world.tick(5)
    assert (end(world), world.run.done) == (("Succeeded", ""), 6)


@MODES
def test_a_finally_that_needs_no_worker_ends_at_once(mode: Mode) -> None:
    world = after(mode, final=({"name": "note", "compute": {"v": 1}},))
    world.complete("a")
    assert end(world) == ("Succeeded", "")


def test_a_run_whose_nodes_need_no_worker_reaches_finally_at_its_start() -> None:
    world = after("whole", {"name": "a", "compute": {"v": 1}}, output={"v": "${nodes.a.output.v}"})
    assert world.input("audit")["o"] == {"v": 1}


@MODES
def test_finally_has_a_deadline_of_its_own(mode: Mode) -> None:
    final = (AUDIT, task("late", dependsOn=["audit"]))
    world = after(mode, timeout="1h", final=final, final_timeout="5m")
    world.pass_time(3_599)
    world.complete("a")
    assert [key.kind.value for key in world.store.timers] == ["deadline"]
    world.claim("audit")
    world.tick(299)
    assert world.status == "Running"
    world.tick(1)
    assert end(world) == ("Failed", "FinallyFailed")
    assert world.run.error is not None
    assert (world.run.error.type, world.state("audit")) == ("timeout", "Cancelled")


@MODES
def test_the_deadline_of_finally_hides_no_earlier_error(mode: Mode) -> None:
    world = after(mode, final_timeout="5m")
    world.fail("a", "boom")
    world.tick(300)
    assert end(world) == ("Failed", "NodeFailed")


@MODES
def test_a_deadline_of_main_that_comes_late_changes_nothing(mode: Mode) -> None:
    world = after(mode, timeout="1h", final_timeout="5m")
    world.complete("a")
    assert world.send(DeadlineReached()).outcome == "stale"
    assert ready(world) == ["audit"]


@MODES
def test_suspending_parks_finally_and_freezes_its_deadline(mode: Mode) -> None:
    world = after(mode, final_timeout="5m")
    world.claim("a")
    world.suspend()
    world.complete("a")
    assert (world.status, world.run.stage.value, world.state("audit")) == ("Suspended", "finally", "Pending")
    world.signal("any")
    world.tick(1_000)
    world.resume()
    assert (world.status, ready(world)) == ("Running", ["audit"])
    world.pass_time(100)
    world.suspend()
    world.tick(1_000)
    world.resume()
    world.tick(199)
    assert world.status == "Running"
    world.tick(1)
    assert end(world) == ("Failed", "FinallyFailed")


@MODES
def test_a_suspended_finally_whose_last_node_completes_ends(mode: Mode) -> None:
    world = after(mode)
    world.complete("a")
    world.claim("audit")
    world.suspend()
    world.complete("audit")
    assert end(world) == ("Succeeded", "")


@MODES
def test_a_suspended_run_that_is_cancelled_runs_finally(mode: Mode) -> None:
    world = after(mode)
    world.suspend()
    world.cancel()
    assert (world.status, ready(world)) == ("Running", ["audit"])


@MODES
def test_a_run_that_is_cancelled_before_it_begins_runs_finally(mode: Mode) -> None:
    world = flow(task("a"), final=(AUDIT,), mode=mode, start=False)
    world.start(start_at=world.now.replace(year=2031))
    world.cancel()
    assert (world.status, ready(world), world.store.timers) == ("Running", ["audit"], {})
    assert world.run.started_at is not None
    world.complete("audit")
    assert end(world) == ("Cancelled", "CancelRequested")


@MODES
def test_cancel_while_finally_runs(mode: Mode) -> None:
    world = after(mode)
    world.complete("a")
    reply = world.cancel()
    assert (reply.outcome, reply.reason) == ("refused", "RunEnding")
    world.claim("audit")
    world.send(CancelRequested(mode="Now"))
    assert (end(world), world.state("audit")) == (("Cancelled", "CancelRequested"), "Cancelled")


@MODES
def test_signals_while_finally_runs_are_kept(mode: Mode) -> None:
    world = after(mode)
    world.complete("a")
    assert world.signal("any").reason == "Accepted"


@MODES
def test_fail_in_finally_fails_it_and_cancels_nothing(mode: Mode) -> None:
    final = (AUDIT, {"name": "no", "when": "${run.status == 'Succeeded'}", "fail": {"type": "bad"}})
    world = after(mode, final=final)
    world.complete("a")
    assert (world.state("no"), ready(world)) == ("Failed", ["audit"])
    world.complete("audit")
    assert end(world) == ("Failed", "FinallyFailed")
