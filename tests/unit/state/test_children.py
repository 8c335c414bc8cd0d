"""Children: how they start, and what their end does to the node that waits for them."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from partita.domain.ids import child_id, time_of
from partita.domain.model import Definition
from partita.domain.state.effects import ChildStart
from partita.domain.state.events import ChildFinished
from partita.domain.state.rows import RunStatus
from partita.domain.state.slices import Limits
from tests.property.build import definition
from tests.property.world import EPOCH, RUN_ID
from tests.unit.state.family import Family


def parent(subflow: Definition | None = None, **fields: Any) -> Definition:
    """The node ``a`` that runs the subflow ``s``, and the task ``z`` after it."""
    inner = subflow or definition({"name": "t"}, subflow="s", output="${nodes.t.output}")
    return definition(
        {"name": "a", "workflow": {"subflow": "s"}, **fields},
        {"name": "z", "dependsOn": ["a"]},
        subflows={"s": inner},
        output="${get(nodes, 'a.output', null)}",
    )


def started(
    given: Any = None, subflow: Definition | None = None, limits: Limits | None = None, **fields: Any
) -> Family:
    family = Family(parent(subflow, **fields), limits=limits)
    family.start(given)
    return family


def by_name(**workflow: Any) -> Family:
    other = definition({"name": "t"}, output={"got": "${input}"})
    family = Family(definition({"name": "a", "workflow": workflow, "input": {"n": "${input.n}"}}))
    family.definitions["other", 3] = other
    family.deployed["other"] = 3
    return family


def test_a_child_starts_with_its_input_and_its_output_is_the_nodes() -> None:
    family = started({"n": 1}, input={"n": "${input.n}"})
    root = family.root
    child = root.child("a")
    assert (root.state("a"), child.status) == ("Waiting", "Running")
    assert child.store.input is not None
    assert child.store.input.value == {"n": 1}
    child.complete("t", 7)
    assert (child.status, root.state("a"), root.output("a"), root.state("z")) == ("Succeeded", "Completed", 7, "Queued")
    root.complete("z")
    assert (root.status, root.result) == ("Succeeded", 7)


def test_a_child_without_an_output_gives_null() -> None:
    family = started(subflow=definition({"name": "t"}, subflow="s"))
    family.root.child("a").complete("t", 7)
    assert (family.root.state("a"), family.root.output("a")) == ("Completed", None)


def test_the_row_of_a_child_says_where_it_belongs() -> None:
    family = started(input={})
    run = family.root.child("a").run
    assert run.parent is not None
    assert (run.parent.run_id, run.parent.node, run.parent.index, run.parent.attempt) == (RUN_ID, "a", 0, 1)
    assert (run.subflow, run.mailbox_id, run.depth, run.version) == ("s", RUN_ID, 1, 1)


def test_a_childs_root_error_passes_through() -> None:
    family = started()
    family.root.child("a").fail("t", "card_declined", details={"code": 51})
    error = family.root.run.error
    assert error is not None
    assert error.details is not None
    assert (family.root.status, family.root.run.reason) == ("Failed", "NodeFailed")
    assert (error.type, error.message, error.details.value) == ("card_declined", "card_declined happened", {"code": 51})


def test_a_childs_error_is_caught_like_any() -> None:
    family = started(onError=[{"match": ["boom"], "next": []}])
    family.root.child("a").fail("t", "boom")
    assert family.root.status == "Succeeded"


def test_a_cancelled_child_is_the_error_cancelled_which_any_does_not_take() -> None:
    family = started(retry=[{"maxRetries": 5, "initialDelay": "0s"}])
    family.root.child("a").cancel()
    error = family.root.run.error
    assert error is not None
    assert (family.root.status, error.type) == ("Failed", "cancelled")


def test_a_childs_bad_output_is_its_root_error() -> None:
    family = started(subflow=definition({"name": "t"}, subflow="s", output="${nodes.t.output.none}"))
    family.root.child("a").complete("t", {})
    assert family.root.run.error is not None
    assert family.root.run.error.type == "expression"


def test_a_retry_starts_another_child_with_the_same_input_and_keeps_every_attempt() -> None:
    family = started({"n": 1}, input={"n": "${input.n}"}, retry=[{"maxRetries": 1, "initialDelay": "10s"}])
    root = family.root
    first = root.child("a")
    family.pass_time(5)
    first.fail("t", "boom")
    assert (root.state("a"), root.row("a").attempt) == ("Waiting", 1)
    detail = root.row("a").detail
    assert detail is not None
    assert detail.child is None, "the backoff waits for no child"
    family.tick(10)
    second = root.child("a")
    assert second.run.id != first.run.id
    assert second.store.input is not None
    assert (second.store.input.value, root.row("a").attempt) == ({"n": 1}, 2)
    second.complete("t", 7)
    assert root.output("a") == 7
    lines = [(line[0], line[2], line[4] and line[4].type, line[5]) for line in root.events() if line[1] == "a"]
    assert lines == [
        ("ChildStarted", 1, None, {"child": str(first.run.id), "subflow": "s"}),
        ("ChildFinished", 1, "boom", {"child": str(first.run.id), "status": "Failed", "retryInMs": 10_000}),
        ("ChildStarted", 2, None, {"child": str(second.run.id), "subflow": "s"}),
        ("ChildFinished", 2, None, {"child": str(second.run.id), "status": "Succeeded"}),
    ]


def test_a_retry_at_once_starts_another_child_in_the_same_transaction() -> None:
    family = started(retry=[{"maxRetries": 1, "initialDelay": "0s"}])
    first = family.root.child("a")
    first.fail("t")
    assert family.root.child("a").run.id != first.run.id
    family.root.child("a").fail("t")
    assert family.root.status == "Failed"


def test_only_the_current_attempts_child_is_heard() -> None:
    family = started(retry=[{"maxRetries": 1, "initialDelay": "0s"}])
    root, first = family.root, family.root.child("a")
    first.fail("t")
    late = ChildFinished(node="a", index=0, attempt=1, child=first.run.id, status=RunStatus.SUCCEEDED)
    wrong = ChildFinished(node="a", index=0, attempt=2, child=first.run.id, status=RunStatus.SUCCEEDED)
    early = ChildFinished(node="a", index=0, attempt=1, child=root.child_id("a"), status=RunStatus.SUCCEEDED)
    unknown = ChildFinished(node="none", index=0, attempt=2, child=first.run.id, status=RunStatus.SUCCEEDED)
    assert [root.send(event).outcome for event in (late, wrong, early, unknown)] == ["stale"] * 4
    assert root.state("a") == "Waiting"
    root.cancel()
    right = ChildFinished(node="a", index=0, attempt=2, child=root.child_id("a"), status=RunStatus.SUCCEEDED)
    assert root.send(right).outcome == "stale"


@pytest.mark.parametrize(
    ("workflow", "version"), [({"name": "other"}, 3), ({"name": "other", "version": 1}, 1)], ids=["deployed", "fixed"]
)
def test_a_child_by_name_runs_the_version_of_the_moment_and_records_it(workflow: dict[str, Any], version: int) -> None:
    family = by_name(**workflow)
    family.definitions["other", 1] = family.definitions["other", 3]
    root = family.start({"n": 1})
    family.deployed["other"] = 4
    detail, child = root.row("a").detail, root.child("a")
    assert detail is not None
    assert (detail.version, child.run.version, child.run.definition, child.run.mailbox_id) == (
        version, version, "other", None,
    )  # fmt: skip  # one line a comparison
    child.complete("t")
    assert root.output("a") == {"got": {"n": 1}}


def test_a_retry_keeps_the_version() -> None:
    other = definition({"name": "t"})
    retry = [{"maxRetries": 1, "initialDelay": "10s"}]
    family = Family(definition({"name": "a", "workflow": {"name": "other"}, "retry": retry}))
    family.definitions |= {("other", 1): other, ("other", 2): other}
    family.deployed["other"] = 1
    root = family.start()
    root.child("a").fail("t")
    family.deployed["other"] = 2
    family.tick(10)
    assert root.child("a").run.version == 1


@pytest.mark.parametrize("workflow", [{"name": "missing"}, {"name": "other", "version": 9}])
def test_a_definition_that_does_not_exist_is_an_error_of_the_node(workflow: dict[str, Any]) -> None:
    family = by_name(**workflow)
    root = family.start({"n": 1})
    assert root.run.error is not None
    assert (root.status, root.run.error.type) == ("Failed", "definition_not_found")
    assert family.sent(ChildStart) == []


def test_an_input_that_the_childs_schema_refuses_is_the_attempts_failure() -> None:
    family = by_name(name="other")
    family.held = True
    root = family.start({"n": 1})
    family.refuse_child(root, "a", "invalid_input")
    assert root.run.error is not None
    assert (root.status, root.run.error.type) == ("Failed", "invalid_input")


def test_an_input_beyond_the_limit_starts_nothing() -> None:
    family = started({"n": "x" * 20}, limits=Limits(output_bytes=10), input={"n": "${input.n}"})
    assert family.root.run.error is not None
    assert family.root.run.error.type == "input_too_large"
    assert family.sent(ChildStart) == []


@pytest.mark.parametrize(("timeout", "seconds"), [("90s", 90), ("${input.t}", 45), (None, 3_600)])
def test_the_timeout_of_a_child_is_the_nodes_or_its_own(timeout: str | None, seconds: int) -> None:
    inner = definition({"name": "t"}, subflow="s", timeout="1h")
    node: dict[str, Any] = {"timeout": timeout} if timeout else {}
    family = started({"t": "45s"}, subflow=inner, **node)
    child = family.root.child("a")
    assert child.run.deadline_at == EPOCH + timedelta(seconds=seconds)
    family.tick(seconds)
    assert (child.status, child.run.reason) == ("Failed", "DeadlineExceeded")
    assert family.root.run.error is not None
    assert family.root.run.error.type == "timeout"


def test_a_timeout_that_cannot_be_evaluated_is_the_nodes_failure() -> None:
    family = started({"t": "soon"}, timeout="${input.t}")
    assert family.root.run.error is not None
    assert family.root.run.error.type == "expression"


@pytest.mark.parametrize(("priority", "expected"), [(None, 1), (-2, -2)])
def test_the_priority_of_a_child_is_the_nodes_or_the_parents(priority: int | None, expected: int) -> None:
    node: dict[str, Any] = {} if priority is None else {"priority": priority}
    family = Family(parent(**node))
    assert family.start(priority=1).child("a").run.priority == expected


def test_a_childs_id_follows_from_its_attempt_and_the_moment() -> None:
    family = started()
    assert family.root.child_id("a") == child_id(RUN_ID, 0, "a", 0, 1, EPOCH)
    assert time_of(family.root.child_id("a")) == EPOCH
    others = {
        child_id(RUN_ID, generation, node, index, attempt, EPOCH)
        for generation in (0, 1) for node in "ab" for index in (0, 1) for attempt in (1, 2)
    }  # fmt: skip  # one line a loop
    assert len(others) == 16


def test_children_have_children() -> None:
    inner = definition({"name": "b", "workflow": {"subflow": "u"}}, subflow="s", output="${nodes.b.output}")
    last = definition({"name": "t"}, subflow="u", output={"v": "${nodes.t.output}"})
    family = Family(definition({"name": "a", "workflow": {"subflow": "s"}}, subflows={"s": inner, "u": last}))
    root = family.start()
    last_run = root.child("a").child("b")
    assert (last_run.run.depth, last_run.run.mailbox_id) == (2, RUN_ID)
    last_run.complete("t", 7)
    assert (root.status, root.output("a")) == ("Succeeded", {"v": 7})


def _rounds(family: Family) -> int:
    return max(member.most_rounds for member in family.runs.values())


@pytest.mark.parametrize("retry", [[], [{"maxRetries": 1, "initialDelay": "10s"}]])
def test_the_usual_events_of_children_take_one_round(retry: list[dict[str, Any]]) -> None:
    other = definition({"name": "t"}, {"name": "u", "dependsOn": ["t"], "compute": "${nodes.t.output}"})
    root = definition(
        {"name": "c", "compute": "${input.n}"},
        {"name": "a", "dependsOn": ["c"], "workflow": {"name": "other"}, "input": {"n": "${input.n}"}, "retry": retry},
        {"name": "b", "dependsOn": ["a"], "workflow": {"name": "other", "version": 1}, "input": {"n": 2}},
        {"name": "w", "dependsOn": ["b"], "workflow": {"subflow": "s"}},
        subflows={
            "s": definition(
                {"name": "w", "waitForEvent": {"timeout": "1h", "until": "${events.size() == 2}"}}, subflow="s"
            )
        },
    )
    family = Family(root)
    family.definitions["other", 1] = other
    family.deployed["other"] = 1
    member = family.start({"n": 1})
    if retry:
        family.refuse_child(member, "a", "boom")
        family.tick(10)
    member.child("a").complete("t", 1)
    member.child("b").complete("t", 1)
    member.signal("w", 1)
    member.signal("w", 2)
    assert (member.status, _rounds(family)) == ("Succeeded", 1)


def test_a_budget_of_workers_is_the_childs_and_not_its_parents() -> None:
    family = started(limits=Limits(unknown_types=1))
    child = family.root.child("a")
    child.fail("t", "unknown_task_type")
    family.tick(1)
    child.fail("t", "unknown_task_type")
    assert family.root.run.error is not None
    assert (family.root.status, family.root.run.error.type) == ("Failed", "unknown_task_type")
    assert len(family.sent(ChildStart)) == 1
