"""What reaches children from their parents: cancel, suspend, resume."""

from __future__ import annotations

from typing import Any

import pytest

from partita.domain.model import Definition
from partita.domain.state.effects import ChildStart
from partita.domain.state.events import CancelRequested
from tests.property.build import definition
from tests.unit.state.family import Family, Member


def nested(*nodes: dict[str, Any], **more: Any) -> Definition:
    """``a`` runs ``b``, which runs the task ``t``; ``z`` stands beside ``a``."""
    return definition(
        *(nodes or ({"name": "a", "workflow": {"subflow": "s"}}, {"name": "z"})),
        subflows={
            "s": definition({"name": "b", "workflow": {"subflow": "u"}}, subflow="s"),
            "u": definition({"name": "t"}, subflow="u"),
        },
        **more,
    )


def family_of(*nodes: dict[str, Any], **more: Any) -> tuple[Family, Member, Member, Member]:
    family = Family(nested(*nodes, **more))
    root = family.start()
    child = root.child("a")
    return family, root, child, child.child("b")


def test_cancelling_the_parent_cancels_the_whole_tree() -> None:
    _, root, child, last = family_of()
    root.cancel()
    assert [member.status for member in (root, child, last)] == ["Cancelled"] * 3
    assert last.store.ready == {}


@pytest.mark.parametrize("mode", ["Graceful", "Now"])
def test_the_mode_is_passed_on(mode: Any) -> None:
    family, root, *_ = family_of()
    root.send(CancelRequested(mode=mode))
    assert [event.mode for event in family.sent(CancelRequested)] == [mode, mode]


def test_a_failure_of_the_parent_cancels_children() -> None:
    _, root, child, last = family_of()
    root.fail("z")
    assert (root.status, child.status, last.status) == ("Failed", "Cancelled", "Cancelled")


def test_the_deadline_of_the_parent_cancels_children() -> None:
    family, root, child, last = family_of(timeout="1h")
    family.tick(3_600)
    assert (root.run.reason, child.status, last.status) == ("DeadlineExceeded", "Cancelled", "Cancelled")


def test_cancel_remaining_cancels_the_child() -> None:
    _, root, child, last = family_of(
        {"name": "a", "workflow": {"subflow": "s"}},
        {"name": "z"},
        {"name": "j", "dependsOn": ["a", "z"], "join": "any", "cancelRemaining": True},
    )
    root.complete("z")
    assert (root.status, root.state("a"), child.status, last.status) == (
        "Running",
        "Cancelled",
        "Cancelled",
        "Cancelled",
    )
    root.complete("j")
    assert root.status == "Succeeded"


def test_cancelling_a_node_cancels_its_child() -> None:
    _, root, child, last = family_of()
    root.send(CancelRequested(nodes=("a",)))
    assert (root.status, root.state("a"), child.status, last.status) == (
        "Running",
        "Cancelled",
        "Cancelled",
        "Cancelled",
    )
    root.complete("z")
    assert root.status == "Succeeded"


def test_a_child_that_is_in_its_backoff_has_nobody_to_cancel() -> None:
    family, root, child, _ = family_of(
        {"name": "a", "workflow": {"subflow": "s"}, "retry": [{"maxRetries": 1}]}, {"name": "z"}
    )
    child.child("b").fail("t")
    assert root.state("a") == "Waiting"
    root.cancel()
    assert family.sent(CancelRequested) == []
    assert (root.status, child.status) == ("Cancelled", "Failed")


def test_a_start_on_its_way_comes_before_the_cancel() -> None:
    family = Family(nested())
    family.held = True
    family.root.start()
    family.root.cancel()
    assert [type(message.event) for message in family.inbox] == [ChildStart, CancelRequested]
    family.held = False
    family.deliver()
    assert [member.status for member in family.runs.values()] == ["Cancelled", "Cancelled", "Cancelled"]


def test_a_childs_end_racing_its_parents_cancel_changes_nothing() -> None:
    family, root, child, last = family_of()
    family.held = True
    last.complete("t")
    family.deliver_one()
    assert child.status == "Succeeded"
    root.cancel()
    family.held = False
    family.deliver()
    assert (root.status, root.state("a"), child.status) == ("Cancelled", "Cancelled", "Succeeded")


def test_suspending_reaches_the_whole_tree_and_resuming_too() -> None:
    _, root, child, last = family_of()
    root.suspend()
    assert [member.status for member in (root, child, last)] == ["Suspended"] * 3
    assert last.store.ready == {}
    root.resume()
    assert [member.status for member in (root, child, last)] == ["Running"] * 3
    last.complete("t")
    root.complete("z")
    assert root.status == "Succeeded"


def test_time_does_not_pass_for_suspended_children() -> None:
    family = Family(
        definition(
            {"name": "a", "workflow": {"subflow": "s"}, "timeout": "1h"},
            subflows={"s": definition({"name": "t", "wait": {"duration": "10s"}}, subflow="s")},
        )
    )
    root = family.start()
    root.suspend()
    family.tick(7_200)
    assert root.child("a").status == "Suspended"
    root.resume()
    family.tick(10)
    assert root.status == "Succeeded"


def test_a_child_that_ends_while_its_parent_is_suspended_is_recorded_and_starts_nothing() -> None:
    _, root, child, last = family_of({"name": "a", "workflow": {"subflow": "s"}}, {"name": "z", "dependsOn": ["a"]})
    last.claim("t")
    root.suspend()
    last.complete("t", 1)
    assert (child.state("b"), child.status, root.state("a"), root.state("z")) == (
        "Completed", "Succeeded", "Completed", "Pending",
    )  # fmt: skip  # one line a comparison
    root.resume()
    assert root.state("z") == "Queued"


def test_a_retry_while_suspended_begins_with_the_resumption() -> None:
    family, root, _, last = family_of(
        {"name": "a", "workflow": {"subflow": "s"}, "retry": [{"maxRetries": 1, "initialDelay": "0s"}]}, {"name": "z"}
    )
    last.claim("t")
    root.suspend()
    last.fail("t")
    assert (root.state("a"), root.row("a").attempt, len(family.sent(ChildStart))) == ("Queued", 2, 2)
    root.resume()
    assert (root.state("a"), len(family.sent(ChildStart))) == ("Waiting", 4)
    root.child("a").child("b").complete("t")
    assert root.state("a") == "Completed"


def test_a_retry_that_waits_to_begin_can_be_cancelled() -> None:
    family, root, _, last = family_of(
        {"name": "a", "workflow": {"subflow": "s"}, "retry": [{"maxRetries": 1, "initialDelay": "0s"}]}, {"name": "z"}
    )
    last.claim("t")
    root.suspend()
    last.fail("t")
    root.cancel()
    assert (root.status, len(family.sent(ChildStart))) == ("Cancelled", 2)


def test_a_backoff_is_frozen_with_its_run() -> None:
    family, root, _, last = family_of(
        {"name": "a", "workflow": {"subflow": "s"}, "retry": [{"maxRetries": 1, "initialDelay": "10s"}]}, {"name": "z"}
    )
    last.fail("t")
    family.pass_time(4)
    root.suspend()
    family.tick(100)
    root.resume()
    family.tick(5)
    assert len(family.sent(ChildStart)) == 2
    family.tick(1)
    assert len(family.sent(ChildStart)) == 4


def test_a_suspended_child_is_cancelled_with_its_parent() -> None:
    _, root, child, last = family_of()
    root.suspend()
    root.cancel()
    assert [member.status for member in (root, child, last)] == ["Cancelled"] * 3
