"""Children and what runs after a run's nodes: undo and finally, of the child and of its parent."""

from __future__ import annotations

from typing import Any, Literal

import pytest

from partita.domain.manifest import definition_from_spec
from partita.domain.state.events import CancelRequested, ChildFinished
from partita.domain.state.rows import NodeKey, RunStatus
from tests.unit.state.family import Family, Member
from tests.unit.state.flows import task, undoable


def family_of(
    *inner: dict[str, Any],
    final: list[dict[str, Any]] | None = None,
    after: list[dict[str, Any]] | None = None,
    **spec: Any,
) -> tuple[Family, Member]:
    """``a`` runs the subflow ``s`` of these nodes, with its finally ``final``; the task ``z`` stands beside it, and
    ``after`` is the parent's finally.
    """
    subflow: dict[str, Any] = {"name": "s", "nodes": list(inner), "output": {"v": "${get(nodes, 't.output', null)}"}}
    if final:
        subflow["finally"] = {"nodes": final}
    if after:
        spec["finally"] = {"nodes": after}
    nodes = [*spec.pop("before", []), *spec.pop("nodes", [{"name": "a", "workflow": {"subflow": "s"}}, task("z")])]
    family = Family(definition_from_spec({"nodes": nodes, "subflows": [subflow], **spec}, name="example"))
    return family, family.start()


def test_the_parent_hears_of_a_child_only_after_its_finally_and_then_its_output() -> None:
    family, root = family_of(task("t"), final=[task("tidy")])
    child = root.child("a")
    child.complete("t", 7)
    assert (child.run.stage.value, root.state("a"), family.sent(ChildFinished)) == ("finally", "Waiting", [])
    child.complete("tidy")
    assert (child.status, root.output("a")) == ("Succeeded", {"v": 7})


def test_a_failure_of_a_childs_finally_is_its_parents_error() -> None:
    _, root = family_of(task("t"), final=[task("tidy")])
    root.child("a").complete("t", 7)
    root.child("a").fail("tidy", "boom")
    assert root.run.error is not None
    assert (root.status, root.run.error.type, root.child("a").run.reason) == ("Failed", "boom", "FinallyFailed")


def test_a_cancelled_child_undoes_what_it_did_while_its_parent_goes_on() -> None:
    _, root = family_of(undoable("t"), task("u"))
    child = root.child("a")
    child.complete("t", 7)
    root.send(CancelRequested(nodes=("a",)))
    assert (root.state("a"), child.run.stage.value) == ("Cancelled", "undo")
    root.complete("z")
    assert root.status == "Succeeded"
    child.complete("t~undo")
    assert child.status == "Cancelled"


@pytest.mark.parametrize(("mode", "status"), [("Graceful", "Running"), ("Now", "Cancelled")])
def test_now_reaches_a_child_that_is_still_ending(mode: Literal["Graceful", "Now"], status: str) -> None:
    _, root = family_of(undoable("t"), task("u"), after=[task("audit")])
    child = root.child("a")
    child.complete("t", 7)
    root.send(CancelRequested())
    assert (root.run.stage.value, child.run.stage.value) == ("undo", "undo")
    root.send(CancelRequested(mode=mode))
    assert (root.status, child.status) == (status, status)


def test_a_parent_undoes_and_tells_others_of_its_end_after_its_children() -> None:
    _, root = family_of(undoable("t"), task("u"), before=[undoable("first")], after=[task("audit")])
    root.complete("first", 1)
    child = root.child("a")
    child.complete("t", 7)
    root.send(CancelRequested())
    assert (set(child.store.ready), set(root.store.ready)) == ({NodeKey("t~undo")}, set())
    child.complete("t~undo")
    assert (child.status, root.state("a"), set(root.store.ready)) == ("Cancelled", "Cancelled", {NodeKey("first~undo")})
    root.complete("first~undo")
    assert set(root.store.ready) == {NodeKey("audit")}
    root.complete("audit")
    assert root.status == "Cancelled"


def test_a_parent_does_not_wait_for_its_children_for_ever() -> None:
    family, root = family_of(undoable("t"), task("u"), after=[task("audit")])
    root.child("a").complete("t", 7)
    root.send(CancelRequested())
    family.tick(60)
    assert (root.state("a"), set(root.store.ready)) == ("Cancelled", {NodeKey("audit")})


def test_a_child_that_ended_before_its_cancellation_reached_it_is_a_late_result() -> None:
    family, root = family_of(task("t"))
    child = root.child("a")
    family.held = True
    child.complete("t", 7)
    root.send(CancelRequested(nodes=("a",)))
    family.held = False
    family.deliver()
    (line,) = root.events("LateResult")
    assert (root.state("a"), line[1:4], line[5]) == (
        "Cancelled", ("a", 1, f"run {child.run.id}"), {"outcome": "Completed", "output": {"v": 7}},
    )  # fmt: skip  # one line a comparison


def test_a_child_that_was_cancelled_is_no_late_result() -> None:
    _, root = family_of(task("t"))
    root.send(CancelRequested(nodes=("a",)))
    assert (root.child("a").status, root.events("LateResult")) == ("Cancelled", [])


def test_cancel_lets_a_suspended_child_end() -> None:
    _, root = family_of(task("t"), final=[task("tidy"), task("more", dependsOn=["tidy"])])
    child = root.child("a")
    child.complete("t", 7)
    child.claim("tidy")
    root.suspend()
    child.complete("tidy")
    assert (child.status, child.state("more")) == ("Suspended", "Pending")
    root.cancel()
    assert (root.status, child.status) == ("Cancelled", "Running"), "nobody is left to resume it"
    child.complete("more")
    assert child.status == "Succeeded"


UNDO = {"name": "a", "workflow": {"subflow": "s"}, "undo": {"task": {"type": "revert"}, "input": {"was": "${output}"}}}


def test_a_child_is_undone_by_a_task_of_its_parent() -> None:
    _, root = family_of(task("t"), nodes=[UNDO, task("z")])
    root.child("a").complete("t", 7)
    root.fail("z")
    row = root.store.tasks[NodeKey("a~undo", 0)]
    assert row.input is not None
    assert (root.run.stage.value, row.input.value) == ("undo", {"was": {"v": 7}})
    root.complete("a~undo")
    assert root.status == "Failed"


def test_undo_waits_for_a_child_in_flight_that_is_cancelled() -> None:
    _, root = family_of(task("t"), nodes=[UNDO, task("z")])
    root.fail("z")
    assert (root.child("a").status, root.status) == ("Cancelled", "Failed"), "a cancelled child is not undone"
    assert NodeKey("a~undo", 0) not in root.store.tasks


def test_a_child_that_succeeds_while_undo_waits_for_it_is_undone() -> None:
    family, root = family_of(task("t"), nodes=[UNDO, task("z")])
    family.held = True
    root.child("a").complete("t", 7)
    root.fail("z")
    assert (root.run.stage.value, root.state("a")) == ("undo", "Waiting")
    family.held = False
    family.deliver()
    assert (root.state("a"), root.state("a~undo")) == ("Completed", "Queued")


def test_a_child_of_finally_is_waited_for() -> None:
    tidy = {"name": "tidy", "workflow": {"subflow": "s"}, "input": {"status": "${run.status}"}}
    _, root = family_of(task("t"), nodes=[task("z")], after=[tidy])
    root.fail("z")
    child = root.child("tidy")
    assert child.store.input is not None
    assert (root.status, child.store.input.value) == ("Running", {"status": "Failed"})
    child.complete("t")
    assert (root.status, root.run.reason) == ("Failed", "NodeFailed")


def test_fail_and_succeed_end_the_subflow_and_not_its_parent() -> None:
    ends = [task("t"), {"name": "e", "when": "${input.ok}", "succeed": {"output": {"v": 1}}}]
    ends.append({"name": "f", "when": "${!input.ok}", "fail": {"type": "refused", "message": "no"}})
    nodes = [
        {"name": "a", "workflow": {"subflow": "s"}, "input": {"ok": True}},
        {
            "name": "b",
            "workflow": {"subflow": "s"},
            "input": {"ok": False},
            "onError": [{"match": ["refused"], "next": []}],
        },
    ]
    family, root = family_of(*ends, nodes=nodes, output={"got": "${nodes.a.output}"})
    assert (root.status, root.result, root.state("b")) == ("Succeeded", {"got": {"v": 1}}, "Failed")
    assert [event.status for event in family.sent(ChildFinished)] == [RunStatus.SUCCEEDED, RunStatus.FAILED]
