"""Loops over children: each item and iteration has a child of its own, with its own attempts."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from partita.domain.manifest import definition_from_spec
from partita.domain.state.effects import ChildStart
from partita.domain.state.events import CancelRequested, WaitClosed
from partita.domain.state.rows import NodeKey
from tests.property.world import EPOCH
from tests.unit.state.family import Family, Member


def family_of(inner: dict[str, Any], **node: Any) -> tuple[Family, Member]:
    """``a`` loops over the subflow ``s`` of this node ``t``."""
    subflow = {"name": "s", "nodes": [{"name": "t", **inner}], "output": {"v": "${nodes.t.output}"}}
    loop = {"name": "a", "workflow": {"subflow": "s"}, "input": {"n": "${get(input, 'n', 0)}"}, **node}
    nodes = [loop, {"name": "z", "dependsOn": ["a"], "task": {"type": "work"}}]
    spec = {"nodes": nodes, "subflows": [subflow], "output": {"all": "${nodes.a.output}"}}
    family = Family(definition_from_spec(spec, name="example"))
    return family, family.start({"items": [3, 4, 5], "t": "90s"})


TASK = {"task": {"type": "work"}}
EACH: dict[str, Any] = {"forEach": {"items": "${input.items}"}, "input": {"n": "${item}"}}


def state(member: Member, index: int) -> str:
    """The state of an item."""
    return member.store.tasks[NodeKey("a", index)].state.value


def test_every_item_has_a_child_with_its_own_input() -> None:
    family, root = family_of(TASK, **EACH)
    children = [root.child("a", index) for index in range(3)]
    assert len({child.run.id for child in children}) == 3
    assert [start.input.value for start in family.sent(ChildStart)] == [{"n": 3}, {"n": 4}, {"n": 5}]
    assert [start.parent.index for start in family.sent(ChildStart)] == [0, 1, 2]
    for number in (2, 0, 1):
        children[number].complete("t", number)
    group = root.store.tasks[NodeKey("a", -1)]
    assert group.output is not None
    assert (group.state.value, group.output.value) == ("Completed", [{"v": 0}, {"v": 1}, {"v": 2}])


def test_the_window_holds_for_children() -> None:
    family, root = family_of(TASK, **{**EACH, "forEach": {"items": "${input.items}", "maxParallel": 1}})
    assert len(family.sent(ChildStart)) == 1
    root.child("a", 0).complete("t", 0)
    assert len(family.sent(ChildStart)) == 2


def test_a_retry_is_the_items_own() -> None:
    family, root = family_of(TASK, **EACH, retry=[{"maxRetries": 1, "initialDelay": "10s"}])
    first = root.child("a", 1)
    first.fail("t")
    assert state(root, 1) == "Waiting"
    family.tick(10)
    second = root.child("a", 1)
    assert (second.run.id != first.run.id, len(family.sent(ChildStart))) == (True, 4)
    assert second.store.input is not None
    assert second.store.input.value == {"n": 4}


def test_a_timeout_is_an_items_own_and_sees_it() -> None:
    _, root = family_of(TASK, **EACH, timeout="${item == 4 ? input.t : '1h'}")
    deadlines = [root.child("a", index).run.deadline_at for index in range(3)]
    assert deadlines == [EPOCH + timedelta(seconds=seconds) for seconds in (3_600, 90, 3_600)]


def test_a_failed_item_fails_the_node_with_the_childs_error_and_the_others_are_waited_for_or_cancelled() -> None:
    each = {**EACH, "forEach": {"items": "${input.items}", "cancelRemaining": True}}
    family, root = family_of(TASK, **each)
    others = [root.child("a", index) for index in (0, 2)]
    root.child("a", 1).fail("t", "boom")
    assert root.run.error is not None
    assert (root.status, root.run.error.type) == ("Failed", "boom")
    assert [child.status for child in others] == ["Cancelled", "Cancelled"]
    assert len(family.sent(CancelRequested)) == 2


def test_controls_reach_every_child() -> None:
    _, root = family_of(TASK, **EACH)
    children = [root.child("a", index) for index in range(3)]
    root.suspend()
    assert {child.status for child in children} == {"Suspended"}
    root.resume()
    assert {child.status for child in children} == {"Running"}
    root.cancel()
    assert {child.status for child in children} == {"Cancelled"}


def test_children_of_items_wait_in_one_mailbox_in_their_order() -> None:
    wait = {"waitForEvent": {"name": "go"}}
    family, root = family_of(wait, **EACH)
    assert len({wait.child for wait in root.store.waits}) == 3
    children = [root.child("a", index) for index in range(3)]
    root.signal("go", {"n": 1})
    assert [child.status for child in children] == ["Succeeded", "Running", "Running"]
    root.cancel()
    assert root.store.waits == []
    assert len(family.sent(WaitClosed)) == 2


def test_every_iteration_has_a_child() -> None:
    repeat = {"repeat": {"until": "${output.v == 2}", "maxIterations": 5}, "input": {"n": "${iteration}"}}
    family, root = family_of(TASK, **repeat)
    root.child("a", 0).complete("t", 1)
    root.child("a", 1).complete("t", 2)
    assert [start.input.value for start in family.sent(ChildStart)] == [{"n": 0}, {"n": 1}]
    group = root.store.tasks[NodeKey("a", -1)]
    assert group.output is not None
    assert group.output.value == {"v": 2}


def test_an_iteration_that_ends_while_suspended_starts_no_other() -> None:
    family, root = family_of(TASK, repeat={"until": "${output.v == 2}"})
    child = root.child("a", 0)
    child.claim("t")
    root.suspend()
    child.complete("t", 1)
    assert len(family.sent(ChildStart)) == 1
    root.resume()
    assert len(family.sent(ChildStart)) == 2


def test_detached_items_complete_at_once() -> None:
    family, root = family_of(TASK, **EACH, workflow={"subflow": "s", "detach": True})
    group = root.store.tasks[NodeKey("a", -1)]
    assert group.output is not None
    assert [list(one) for one in group.output.value] == [["runId"]] * 3
    assert len(family.runs) == 4


def test_all_items_run_one_version() -> None:
    other = definition_from_spec({"nodes": [{"name": "t", **TASK}]}, name="other")
    loop = {"name": "a", "workflow": {"name": "other"}, "forEach": {"items": "${input.items}", "maxParallel": 1}}
    family = Family(definition_from_spec({"nodes": [loop]}, name="example"))
    family.definitions |= {("other", 1): other, ("other", 2): other}
    family.deployed["other"] = 1
    root = family.start({"items": [1, 2]})
    family.deployed["other"] = 2
    root.child("a", 0).complete("t")
    assert [start.version for start in family.sent(ChildStart)] == [1, 1]
    root.child("a", 1).complete("t")
    group = root.store.tasks[NodeKey("a", -1)]
    assert group.detail is not None
    assert (root.status, group.detail.version) == ("Succeeded", 1)


def test_a_definition_that_does_not_exist_fails_the_items() -> None:
    loop = {"name": "a", "workflow": {"name": "other"}, "forEach": {"items": "${input.items}", "maxFailures": 2}}
    family = Family(definition_from_spec({"nodes": [loop], "output": {"all": "${nodes.a.output}"}}, name="example"))
    root = family.start({"items": [1, 2]})
    assert (root.status, root.result) == ("Succeeded", {"all": [None, None]})
