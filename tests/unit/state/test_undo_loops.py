"""Undo of loops: each Completed item or iteration is reversed on its own."""

from __future__ import annotations

from typing import Any

import pytest

from partita.domain.payload import Payload
from partita.domain.state.events import LeaseLost, TaskCompleted, TaskFailed
from partita.domain.state.rows import ErrorInfo, NodeKey
from partita.domain.state.slices import Limits, Need, Slice
from tests.property.world import Mode, World
from tests.unit.state.flows import end, flow, letter, task, undoable

MODES = pytest.mark.parametrize("mode", ["whole", "sliced"])


def item(world: World, node: str, index: int, event: str = "complete") -> None:
    """An item's attempt ends."""
    key = NodeKey(node, index)
    if key in world.store.ready:
        world.store.claim(key, world.now)
    lease = world.store.leases.pop(key)
    attempt: dict[str, Any] = {"node": node, "index": index, "attempt": lease.attempt, "worker": "worker-1"}
    if event == "complete":
        world.send(TaskCompleted(**attempt, output=Payload.of({"of": index}), started_at=lease.since))
    elif event == "fail":
        world.send(TaskFailed(**attempt, error=ErrorInfo("boom", "no"), started_at=lease.since))
    else:
        world.send(LeaseLost(**attempt, started_at=lease.since))


def keys(world: World) -> list[tuple[str, int]]:
    """Rows that a worker may take."""
    return sorted((key.node, key.index) for key in world.store.ready)


@MODES
def test_every_completed_item_of_a_failed_loop_is_undone_on_its_own(mode: Mode) -> None:
    each = {"items": ["x", "y", "z", "w"], "maxParallel": 4}
    node = undoable("a", {"i": "${input.v}", "o": "${output.of}"}, input={"v": "${item}"}, forEach=each)
    world = flow(node, mode=mode)
    item(world, "a", 2)
    item(world, "a", 0)
    world.store.claim(NodeKey("a", 3), world.now)
    item(world, "a", 1, "fail")
    item(world, "a", 3)
    assert world.run.stage.value == "undo"
    seen = []
    while world.status == "Running":
        ((name, index),) = keys(world)
        given = world.store.tasks[NodeKey(name, index)].input
        assert given is not None
        seen.append((name, index, given.value))
        item(world, name, index)
    assert seen == [
        ("a~undo", 3, {"i": "w", "o": 3}),
        ("a~undo", 0, {"i": "x", "o": 0}),
        ("a~undo", 2, {"i": "z", "o": 2}),
    ]
    assert (end(world), world.run.done, world.run.total) == (("Failed", "NodeFailed"), 1, 1)


@MODES
def test_items_in_flight_are_waited_for(mode: Mode) -> None:
    each = {"items": [1, 2, 3], "maxParallel": 2}
    world = flow(undoable("a", forEach=each), task("x"), mode=mode)
    world.store.claim(NodeKey("a", 0), world.now)
    world.store.claim(NodeKey("a", 1), world.now)
    world.fail("x")
    group = world.store.tasks[NodeKey("a", -1)]
    assert (group.state.value, keys(world)) == ("Cancelled", [])
    item(world, "a", 0)
    item(world, "a", 1, "lose")
    assert keys(world) == [("a~undo", 1)]
    item(world, "a~undo", 1)
    item(world, "a~undo", 0)
    assert end(world) == ("Failed", "NodeFailed")


@MODES
def test_iterations_are_undone_one_by_one(mode: Mode) -> None:
    world = flow(undoable("a", repeat={"until": "${output.of == 5}", "maxIterations": 2}), mode=mode)
    item(world, "a", 0)
    item(world, "a", 1)
    assert keys(world) == [("a~undo", 1)]
    item(world, "a~undo", 1)
    assert keys(world) == [("a~undo", 0)]
    item(world, "a~undo", 0)
    assert world.run.error is not None
    assert (end(world), world.run.error.type) == (("Failed", "NodeFailed"), "max_iterations")


def test_ten_chunks_of_items_read_the_run_once() -> None:
    each = {"items": "${range(0, 30)}", "maxParallel": 30}
    world = flow(undoable("a", forEach=each), task("x"), mode="sliced", limits=Limits(loop_chunk=3))
    while world.last is not None and world.last.messages:
        world.send(letter(world))
    order = [(number * 7) % 30 for number in range(30)]
    for number in order:
        item(world, "a", number)
    world.fail("x")
    undone: list[int] = []
    loads = counted_loads(world)
    while world.status == "Running":
        ((_, index),) = keys(world)
        undone.append(index)
        item(world, "a~undo", index)
        assert not any(loads[:-2]), "only the last undo row looks at the whole run, to see that it was the last"
    assert undone == list(reversed(order))
    assert any(loads[-2:])


def counted_loads(world: World) -> list[bool]:
    """Whether each load from now on was of the whole run."""
    loads: list[bool] = []
    load = world.store.load

    def counting(need: Need, signal_ids: frozenset[str] = frozenset()) -> Slice:
        loads.append(need.whole)
        return load(need, signal_ids)

    world.store.load = counting  # type: ignore[method-assign]  # the test's own eyes
    return loads
