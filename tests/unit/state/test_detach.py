"""Detached children: started, and then nobody's."""

from __future__ import annotations

from typing import Any

import pytest

from partita.domain.manifest import definition_from_spec
from partita.domain.state.effects import ChildStart
from partita.domain.state.events import CancelRequested, ChildFinished, SuspendRequested, WaitOpened
from tests.property.build import definition
from tests.unit.state.family import Family


def detached(inner: list[dict[str, Any]] | None = None, **workflow: Any) -> Family:
    """The detached child ``a`` and the task ``z`` beside it."""
    other = definition(*(inner or [{"name": "t"}]))
    root = definition(
        {"name": "a", "workflow": {"detach": True, **(workflow or {"subflow": "s"})}},
        {"name": "z"},
        subflows={"s": definition(*(inner or [{"name": "t"}]), subflow="s")},
        output="${nodes.a.output.runId}",
    )
    family = Family(root)
    family.definitions["other", 3] = other
    family.deployed["other"] = 3
    family.start()
    return family


@pytest.mark.parametrize("workflow", [{"subflow": "s"}, {"name": "other"}])
def test_a_detached_child_completes_its_node_at_once_with_its_id(workflow: dict[str, Any]) -> None:
    family = detached(**workflow)
    root, child = family.root, family.root.child("a")
    assert (root.state("a"), root.output("a")) == ("Completed", {"runId": str(child.run.id)})
    assert child.status == "Running"
    (start,) = family.sent(ChildStart)
    assert (start.parent, start.mailbox_id, start.depth) == (None, None, 1)
    assert [line[0] for line in root.events() if line[1] == "a"] == ["ChildStarted"]


def test_its_end_is_told_to_nobody() -> None:
    family = detached()
    family.root.child("a").fail("t")
    assert family.sent(ChildFinished) == []
    assert family.root.status == "Running"
    family.root.complete("z")
    assert family.root.result == str(family.root.child("a").run.id)


def test_controls_of_the_parent_do_not_reach_it() -> None:
    family = detached()
    family.root.suspend()
    family.root.resume()
    family.root.cancel()
    assert family.sent(SuspendRequested) == family.sent(CancelRequested) == []
    assert family.root.child("a").status == "Running"


def test_it_has_a_mailbox_of_its_own() -> None:
    family = detached([{"name": "t", "waitForEvent": {"name": "go"}}])
    child = family.root.child("a")
    assert family.root.signal("go", 1).reason == "Accepted"
    assert child.state("t") == "Waiting"
    child.signal("go", 2)
    assert child.output("t") == 2
    assert family.sent(WaitOpened) == []


def test_its_subflows_share_its_mailbox() -> None:
    waits = definition({"name": "t", "waitForEvent": {"name": "go", "schema": {"type": "integer"}}}, subflow="u")
    inner = definition({"name": "b", "workflow": {"subflow": "u"}}, subflow="s", subflows={"u": waits})
    root = definition(
        {"name": "a", "workflow": {"subflow": "s", "detach": True}}, {"name": "z"}, subflows={"s": inner, "u": waits}
    )
    family = Family(root)
    child = family.start().child("a")
    assert child.child("b").run.mailbox_id == child.run.id
    assert child.signal("go", "no").reason == "SchemaMismatch"
    child.signal("go", 2)
    assert child.status == "Succeeded"


def test_a_subflow_knows_every_subflow_of_its_version() -> None:
    wait = {"name": "t", "waitForEvent": {"name": "go", "schema": {"type": "integer"}}}
    spec = {
        "nodes": [{"name": "a", "workflow": {"subflow": "s", "detach": True}}],
        "subflows": [
            {"name": "s", "nodes": [{"name": "b", "workflow": {"subflow": "u"}}]},
            {"name": "u", "nodes": [wait]},
        ],
    }
    child = Family(definition_from_spec(spec, name="example")).start().child("a")
    assert child.signal("go", "no").reason == "SchemaMismatch"
    child.signal("go", 2)
    assert child.status == "Succeeded"
