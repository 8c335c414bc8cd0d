"""repeat: one iteration after the other, until what it gave is enough."""

from __future__ import annotations

from typing import Any

import pytest

from partita.domain.payload import Payload
from partita.domain.state.rows import TimerKind
from tests.property.world import Mode
from tests.unit.state.looping import MODES, Looping, loop

both = pytest.mark.parametrize("mode", MODES)
SEEN = {"n": "${iteration}", "last": "${previous}"}


def again(mode: Mode, limits: Any = None, node: Any = None, **fields: Any) -> Looping:
    """A started run; fields of repeat."""
    world = Looping(loop(repeat=fields, **{"input": SEEN, **(node or {})}), mode, **(limits or {}))
    world.start({"enough": 2})
    return world


@both
def test_until_ends_it_and_the_last_output_is_the_nodes(mode: Mode) -> None:
    world = again(mode, until="${output >= input.enough}")
    world.item(0, 0)
    world.item(1, 1)
    assert (world.group.state.value, world.ready(), world.state("z")) == ("Waiting", [2], "")
    world.item(2, 2)
    assert world.inputs() == [{"n": 0, "last": None}, {"n": 1, "last": 0}, {"n": 2, "last": 1}]
    assert (world.gave(), world.state("z"), world.run.done, world.counters.completed) == (2, "Queued", 1, 3)


@both
def test_while_ends_it_when_it_is_false(mode: Mode) -> None:
    world = again(mode, **{"while": "${output.more}"})
    world.item(0, {"more": True})
    world.item(1, {"more": False})
    assert world.gave() == {"more": False}


@both
def test_conditions_see_the_iteration_and_the_output_before(mode: Mode) -> None:
    world = again(mode, until="${iteration == 2 || (previous != null && previous == output)}")
    world.item(0, "a")
    world.item(1, "b")
    world.item(2, "c")
    assert world.gave() == "c"
    world = again(mode, until="${previous == output}")
    world.item(0, "a")
    world.item(1, "a")
    assert world.gave() == "a"


@both
def test_collect_gathers_one_value_an_iteration(mode: Mode) -> None:
    world = again(mode, until="${iteration == 2}", collect="${output.v}")
    for index in range(3):
        world.item(index, {"v": index * 10})
    assert (world.gave(), world.part(2).output) == ([0, 10, 20], Payload.of({"v": 20}))


@both
def test_what_is_collected_is_bounded(mode: Mode) -> None:
    world = again(mode, {"output_bytes": 60}, until="${false}", collect="${output}")
    world.item(0, "x" * 30)
    world.item(1, "x" * 30)
    assert world.run.error is not None
    assert world.run.error.type == "output_too_large"


@both
def test_it_ends_with_an_error_after_max_iterations(mode: Mode) -> None:
    world = again(mode, until="${false}", maxIterations=2)
    world.item(0)
    world.item(1)
    assert world.run.error is not None
    assert (world.status, world.run.error.type, world.parts()) == ("Failed", "max_iterations", ["Completed"] * 2)


@both
def test_an_iteration_that_fails_fails_the_node_after_its_retries(mode: Mode) -> None:
    node = {"retry": [{"maxRetries": 1, "initialDelay": "5s", "when": "${iteration == 1 && previous == 'x'}"}]}
    world = again(mode, until="${false}", node=node)
    world.item(0, "x")
    world.break_item(1)
    assert world.part(1).state.value == "Waiting"
    world.tick(10)
    world.break_item(1)
    assert (world.status, world.parts(), world.counters.failed) == ("Failed", ["Completed", "Failed"], 1)


@both
@pytest.mark.parametrize("field", ["until", "collect", "delay"])
def test_an_expression_that_fails_fails_the_node(mode: Mode, field: str) -> None:
    fields = {"until": "${false}", field: "${output.none}" if field != "delay" else "${previous}"}
    world = again(mode, **fields)
    world.item(0, {"v": 1})
    assert world.run.error is not None
    assert (world.status, world.run.error.type, world.part(0).state.value) == ("Failed", "expression", "Completed")


@both
def test_an_input_that_fails_is_the_iterations_failure(mode: Mode) -> None:
    world = again(mode, until="${false}", node={"input": {"v": "${previous == null ? 1 : previous.none}"}})
    world.item(0, {"v": 1})
    assert (world.status, world.parts()) == ("Failed", ["Completed", "Failed"])


@both
def test_the_next_iteration_starts_after_the_delay(mode: Mode) -> None:
    world = again(mode, until="${iteration == 1}", delay="${iteration == 1 ? '1m' : '1h'}")
    world.item(0, "x")
    assert (world.parts(), world.inputs()[1], world.counters.running) == (["Completed", "Waiting"], None, 1)
    assert [key.kind for key in world.store.timers] == [TimerKind.DELAY]
    world.tick(59)
    assert world.ready() == []
    world.tick(1)
    assert (world.ready(), world.inputs()[1]) == ([1], {"n": 1, "last": "x"})
    world.item(1, "y")
    assert world.gave() == "y"


@both
def test_a_batch_that_ends_one_iteration_starts_the_next(mode: Mode) -> None:
    world = again(mode, until="${iteration == 1}")
    world.send_batch([world.done(0, 0)])
    world.send_batch([world.done(1, 1)])
    assert world.gave() == 1


def test_an_ordinary_iteration_is_decided_at_once() -> None:
    world = again("sliced", until="${iteration == 9}", collect="${output}")
    world.most_rounds = 0
    for index in range(9):
        world.item(index, index)
    assert world.most_rounds == 1
    world.item(9, 9)
    assert (world.most_rounds, world.gave()) == (2, list(range(10)))
