"""How deep children go."""

from __future__ import annotations

from partita.domain.model import Definition
from partita.domain.state.effects import ChildStart
from partita.domain.state.slices import Limits
from tests.property.build import definition
from tests.unit.state.family import Family


def recursive(**node: object) -> Definition:
    """A subflow that calls itself."""
    inner = definition({"name": "b", "workflow": {"subflow": "s"}, **node}, subflow="s")
    return definition({"name": "a", "workflow": {"subflow": "s"}}, subflows={"s": inner})


def test_recursion_ends_at_the_limit_with_an_error_that_passes_through() -> None:
    family = Family(recursive(), limits=Limits(child_depth=5))
    family.start()
    assert [start.depth for start in family.sent(ChildStart)] == [1, 2, 3, 4, 5]
    assert family.root.run.error is not None
    assert (family.root.status, family.root.run.error.type) == ("Failed", "depth_exceeded")
    assert {member.status for member in family.runs.values()} == {"Failed"}


def test_fifty_by_default() -> None:
    family = Family(recursive(onError=[{"match": ["depth_exceeded"], "next": []}]))
    family.start()
    assert len(family.runs) == 51
    assert {member.status for member in family.runs.values()} == {"Succeeded"}


def test_detached_children_count() -> None:
    inner = definition({"name": "b", "workflow": {"subflow": "s", "detach": True}}, subflow="s")
    root = definition({"name": "a", "workflow": {"subflow": "s"}}, subflows={"s": inner})
    family = Family(root, limits=Limits(child_depth=3))
    family.start()
    assert [member.status for member in family.runs.values()] == ["Succeeded", "Succeeded", "Succeeded", "Failed"]


def test_recursion_ends_by_itself() -> None:
    inner = definition(
        {"name": "b", "when": "${input.n > 0}", "workflow": {"subflow": "s"}, "input": {"n": "${input.n - 1}"}},
        subflow="s",
        output="${input.n + get(nodes, 'b.output', 0)}",
    )
    root = definition(
        {"name": "a", "workflow": {"subflow": "s"}, "input": {"n": "${input.n}"}},
        subflows={"s": inner},
        output="${nodes.a.output}",
    )
    family = Family(root)
    family.start({"n": 4})
    assert (family.root.status, family.root.result) == ("Succeeded", 10)
