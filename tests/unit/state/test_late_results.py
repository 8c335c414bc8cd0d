"""What workers report of attempts that were cancelled while their run goes on."""

from __future__ import annotations

from typing import Any

import pytest

from partita.domain.payload import Payload
from partita.domain.state.events import CancelRequested, LateResult
from partita.domain.state.rows import ErrorInfo
from tests.property.world import Mode, World
from tests.unit.state.flows import flow, task, undoable

MODES = pytest.mark.parametrize("mode", ["whole", "sliced"])


def late(world: World, node: str = "a", attempt: int = 1, **more: Any) -> None:
    """A report of an attempt whose lease is gone; the worker always hears the same."""
    before = world.store.image()
    reply = world.send(LateResult(node=node, index=0, attempt=attempt, worker="worker-1", **more))
    assert reply.outcome == "stale"
    assert world.store.image() == before


def cancelled(mode: Mode) -> World:
    """``a`` was cancelled while a worker had it; ``z`` goes on."""
    world = flow(task("a"), task("z"), mode=mode)
    world.claim("a")
    world.send(CancelRequested(nodes=("a",)))
    return world


@MODES
def test_an_output_is_recorded_if_it_is_small(mode: Mode) -> None:
    world = cancelled(mode)
    late(world, output=Payload.of({"v": 1}))
    late(world, output=Payload.of("x" * 3_000))
    late(world)
    assert [line[5] for line in world.events("LateResult")] == [
        {"outcome": "Completed", "output": {"v": 1}},
        {"outcome": "Completed"},
        {"outcome": "Completed", "output": None},
    ]
    assert [line[1:4] for line in world.events("LateResult")] == [("a", 1, "worker-1")] * 3


@MODES
def test_an_error_is_recorded(mode: Mode) -> None:
    world = cancelled(mode)
    late(world, error=ErrorInfo("boom", "late"))
    (line,) = world.events("LateResult")
    assert (line[4], line[5]) == (ErrorInfo("boom", "late"), {"outcome": "Failed"})


@MODES
def test_only_the_attempt_that_was_cancelled_is(mode: Mode) -> None:
    world = cancelled(mode)
    late(world, attempt=2)
    late(world, "z")
    late(world, "nobody")
    assert world.events("LateResult") == []


@MODES
def test_nothing_is_recorded_after_the_end(mode: Mode) -> None:
    world = cancelled(mode)
    world.complete("z")
    late(world)
    assert world.events("LateResult") == []


@MODES
def test_a_race_leaves_results_that_change_nothing(mode: Mode) -> None:
    world = flow(task("p"), task("a"), task("j", dependsOn=["p", "a"], join="any", cancelRemaining=True), mode=mode)
    world.claim("a")
    world.complete("p")
    late(world, output=Payload.of(1))
    assert len(world.events("LateResult")) == 1


@MODES
def test_what_was_not_waited_for_reports_while_undo_runs(mode: Mode) -> None:
    world = flow(undoable("u"), task("a"), task("x", dependsOn=["u"]), mode=mode)
    world.complete("u")
    world.claim("a")
    world.fail("x")
    late(world, output=Payload.of(1))
    assert len(world.events("LateResult")) == 1
