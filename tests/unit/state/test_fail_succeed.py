"""Nodes that end the run."""

from __future__ import annotations

from typing import Any

import pytest

from partita.domain.state.slices import Limits
from tests.property.world import Mode
from tests.unit.state.flows import end, flow, ready, task, undoable

MODES = pytest.mark.parametrize("mode", ["whole", "sliced"])


def ends(kind: str, spec: Any, **more: Any) -> dict[str, Any]:
    """The node ``last`` after ``a``."""
    return {"name": "last", "dependsOn": ["a"], kind: spec, **more}


@MODES
@pytest.mark.parametrize("fail_fast", [True, False])
def test_fail_ends_the_run_at_once(fail_fast: bool, mode: Mode) -> None:  # a parameter of the test
    spec = {"type": "refused", "message": "no: ${nodes.a.output}"}
    world = flow(task("a"), task("b"), ends("fail", spec), failFast=fail_fast, mode=mode)
    world.claim("b")
    world.complete("a", 7)
    assert end(world) == ("Failed", "NodeFailed")
    assert world.run.error is not None
    assert (world.run.error.type, world.run.error.message) == ("refused", "no: 7")
    assert world.states() == {"a": "Completed", "b": "Cancelled", "last": "Failed"}
    assert world.row("last").error == world.run.error
    assert world.events("RunFinished")[0][1] == "last"


@pytest.mark.parametrize(
    "message", ["${nodes.a.output.none}", "${nodes.a.output}", "${json.parse(nodes.a.output.nul)}"]
)
def test_a_message_that_cannot_be_made_ends_the_run_too(message: str) -> None:
    world = flow(task("a"), task("b"), ends("fail", {"type": "refused", "message": message}), failFast=False)
    world.complete("a", {"nul": '"a\\u0000b"'})
    assert end(world) == ("Failed", "NodeFailed")
    assert world.run.error is not None
    assert world.run.error.type == "expression"


def test_a_fail_without_a_message() -> None:
    world = flow(ends("fail", {"type": "refused"}, dependsOn=[]))
    assert world.run.error is not None
    assert (world.run.error.type, world.run.error.message) == ("refused", "")


@MODES
@pytest.mark.parametrize("fail_fast", [True, False])
def test_succeed_ends_the_run_at_once(fail_fast: bool, mode: Mode) -> None:  # a parameter of the test
    world = flow(
        undoable("a"),
        task("b"),
        ends("succeed", {"output": {"v": "${nodes.a.output}"}}, when="${nodes.a.output == 7}"),
        task("c", dependsOn=["last"]),
        output={"never": "${nodes.b.output.none}"},
        failFast=fail_fast,
        mode=mode,
    )
    world.claim("b")
    world.complete("a", 7)
    assert (end(world), world.result, world.run.error) == (("Succeeded", ""), {"v": 7}, None)
    assert world.states() == {"a": "Completed", "b": "Cancelled", "last": "Completed"}
    assert world.output("last") == {"v": 7}


def test_a_succeed_without_an_output() -> None:
    world = flow(task("a"), ends("succeed", {}))
    world.complete("a", 7)
    assert (end(world), world.store.output) == (("Succeeded", ""), world.row("last").output)
    assert world.result is None


@pytest.mark.parametrize(("output", "kind"), [("${input.none}", "expression"), ("x" * 40, "output_too_large")])
def test_an_output_that_cannot_be_kept_is_the_nodes_failure(output: str, kind: str) -> None:
    world = flow(task("a"), ends("succeed", {"output": {"v": output}}), limits=Limits(output_bytes=30))
    world.complete("a", 7)
    assert (end(world), world.state("last")) == (("Failed", "NodeFailed"), "Failed")
    assert world.run.error is not None
    assert world.run.error.type == kind


@MODES
def test_a_node_that_ends_the_run_is_skipped_like_any_other(mode: Mode) -> None:
    world = flow(task("a"), ends("fail", {"type": "refused"}, when="${nodes.a.output == 1}"), mode=mode)
    world.complete("a", 2)
    assert (end(world), world.state("last")) == (("Succeeded", ""), "Skipped")


@MODES
def test_succeed_runs_finally_with_its_output_and_undoes_nothing(mode: Mode) -> None:
    audit = task("audit", input={"o": "${run.output}", "s": "${run.status}"})
    world = flow(undoable("a"), ends("succeed", {"output": {"v": 1}}), final=[audit], mode=mode)
    world.complete("a")
    assert ready(world) == ["audit"]
    assert world.input("audit") == {"o": {"v": 1}, "s": "Succeeded"}


@MODES
def test_fail_undoes(mode: Mode) -> None:
    world = flow(undoable("a"), ends("fail", {"type": "refused"}), mode=mode)
    world.complete("a")
    assert ready(world) == ["a~undo"]


@MODES
def test_a_node_that_ends_the_run_waits_while_it_is_suspended(mode: Mode) -> None:
    world = flow(task("a"), ends("fail", {"type": "refused"}), mode=mode)
    world.claim("a")
    world.suspend()
    world.complete("a")
    assert world.status == "Suspended"
    world.resume()
    assert end(world) == ("Failed", "NodeFailed")


@MODES
def test_a_failure_among_the_first_nodes_ends_the_run_at_its_start(mode: Mode) -> None:
    world = flow(task("p"), task("a", input={"v": "${input.none}"}), task("z"), mode=mode)
    assert (end(world), world.state("p"), ready(world)) == (("Failed", "NodeFailed"), "Cancelled", [])


@MODES
def test_a_message_that_quotes_a_document_is_cut(mode: Mode) -> None:
    """It is kept with the node and the run, and goes from child to parent."""
    world = flow(task("a"), ends("fail", {"type": "refused", "message": "${nodes.a.output}"}), mode=mode)
    world.complete("a", "x" * 100_000)
    error = world.row("last").error
    assert error is not None
    assert (error.type, len(error.message)) == ("refused", 4_096)
    assert world.run.error == error
