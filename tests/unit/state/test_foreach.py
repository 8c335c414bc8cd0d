"""forEach: items, windows, chunks, failures, outputs."""

from __future__ import annotations

from typing import Any

import pytest

from partita.domain.state import absorb, decide, foresee, merge
from partita.domain.state.effects import Effects
from partita.domain.state.rows import NodeKey
from partita.domain.state.slices import Context
from tests.property.world import Mode
from tests.unit.state.looping import MODES, Looping, loop

both = pytest.mark.parametrize("mode", MODES)


def each(mode: Mode, items: Any = None, limits: Any = None, **fields: Any) -> Looping:
    """A started run; fields of forEach, or of the node where they begin with ``node_``."""
    node = {name.removeprefix("node_"): value for name, value in fields.items() if name.startswith("node_")}
    spec = {name: value for name, value in fields.items() if not name.startswith("node_")}
    node.setdefault("input", {"v": "${item}", "i": "${index}", "k": "${key}"})
    world = Looping(loop(forEach={"items": "${input.items}", **spec}, **node), mode, **(limits or {}))
    world.start({"items": items})
    return world


@both
def test_each_item_has_its_own_input_and_gives_its_place_in_the_list(mode: Mode) -> None:
    world = each(mode, ["x", "y"])
    assert world.inputs() == [{"v": "x", "i": 0, "k": None}, {"v": "y", "i": 1, "k": None}]
    world.item(1, {"late": 1})
    assert (world.status, world.group.state.value, world.state("z")) == ("Running", "Waiting", "")
    world.item(0, "first")
    assert world.gave() == ["first", {"late": 1}]
    assert (world.state("z"), world.run.done, world.run.active) == ("Queued", 1, 1)
    world.complete("z")
    assert (world.status, world.result) == ("Succeeded", ["first", {"late": 1}])


@both
def test_an_object_gives_an_object_in_the_order_of_its_keys(mode: Mode) -> None:
    world = each(mode, {"b": 2, "a": 1}, **{"as": "one"}, node_input={"v": "${one}", "k": "${key}"}, maxParallel=1)
    assert world.inputs() == [{"v": 1, "k": "a"}, {"v": 2, "k": "b"}]
    world.item(0, "A")
    world.item(1, "B")
    assert list(world.gave().items()) == [("a", "A"), ("b", "B")]


@both
@pytest.mark.parametrize("items", [[], {}])
def test_nothing_to_do_is_done(mode: Mode, items: Any) -> None:
    world = each(mode, items)
    assert (world.gave(), world.state("z"), world.parts()) == (items, "Queued", [])


@both
@pytest.mark.parametrize(
    ("items", "kind"),
    [(7, "expression"), (None, "expression"), ([1, 2, 3, 4], "too_many_items"), (["x" * 300], "input_too_large")],
)
def test_what_cannot_be_iterated_fails_the_node(mode: Mode, items: Any, kind: str) -> None:
    world = each(mode, items, {"loop_items": 3, "output_bytes": 200})
    assert (world.status, world.run.error and world.run.error.type) == ("Failed", kind)


@both
def test_when_is_looked_at_once_and_before_the_items(mode: Mode) -> None:
    world = each(mode, 7, node_when="${false}")
    assert (world.group.state.value, world.parts(), world.state("z")) == ("Skipped", [], "Queued")


@both
def test_at_most_max_parallel_are_in_flight_and_they_start_in_order(mode: Mode) -> None:
    world = each(mode, list(range(5)), maxParallel=2)
    assert (world.ready(), len(world.parts())) == ([0, 1], 5)
    world.item(1)
    assert world.ready() == [0, 2]
    world.item(0)
    world.item(3)
    assert (world.ready(), world.counters.next, world.counters.completed) == ([2, 4], 5, 3)
    world.item(2)
    world.item(4, 4)
    assert world.gave() == [None, None, None, None, 4]


@both
def test_a_window_larger_than_a_chunk_goes_on_by_itself(mode: Mode) -> None:
    world = each(mode, list(range(7)), {"loop_chunk": 3})
    assert world.ready() == [0, 1, 2]
    assert world.go_on() == 2
    assert world.ready() == list(range(7))


@both
def test_items_are_made_when_they_are_needed(mode: Mode) -> None:
    world = each(mode, list(range(7)), {"loop_chunk": 3}, maxParallel=2)
    assert (world.counters.born, world.letters) == (3, [])
    world.item(0)
    assert (world.counters.born, world.counters.next) == (3, 3)
    world.item(1)
    assert (world.counters.born, world.counters.next) == (6, 4)
    for index in range(2, 7):
        world.item(index, index)
    assert world.gave() == [None, None, 2, 3, 4, 5, 6]


@both
def test_one_decision_evaluates_no_more_than_it_may(mode: Mode) -> None:
    world = each(mode, list(range(6)), {"visits": 1})
    assert world.ready() == [0]
    assert world.go_on() == 5
    assert world.ready() == list(range(6))


@both
def test_the_first_failure_fails_the_node_once_the_others_have_ended(mode: Mode) -> None:
    world = each(mode, list(range(4)), maxParallel=2)
    world.break_item(1)
    assert (world.status, world.ready(), world.counters.closing) == ("Running", [0], "failed")
    world.item(0, "kept")
    assert (world.status, world.parts()) == ("Failed", ["Completed", "Failed", "Cancelled", "Cancelled"])
    assert world.run.error is not None
    assert (world.run.error.type, world.group.state.value) == ("boom", "Failed")


@both
def test_cancel_remaining_does_not_wait_for_them(mode: Mode) -> None:
    world = each(mode, list(range(4)), maxParallel=2, cancelRemaining=True)
    world.break_item(1)
    assert (world.status, world.parts()) == ("Failed", ["Cancelled", "Failed", "Cancelled", "Cancelled"])


@both
@pytest.mark.parametrize(
    ("tolerated", "broken", "end"),
    [(1, 1, "Completed"), (1, 2, "Failed"), ("50%", 2, "Completed"), ("50%", 3, "Failed"), ("49%", 2, "Failed")],
)
def test_some_failures_are_tolerated(mode: Mode, tolerated: Any, broken: int, end: str) -> None:
    world = each(mode, list(range(4)), maxFailures=tolerated, node_onFailure="continue")
    for index in range(4):
        if index < broken:
            world.break_item(index)
        else:
            world.item(index, index)
    assert world.group.state.value == end
    if end == "Completed":
        assert world.gave() == [None if index < broken else index for index in range(4)]


@both
def test_join_count_ends_the_node_well(mode: Mode) -> None:
    world = each(mode, list(range(4)), joinCount=2, maxParallel=3)
    world.break_item(0)
    world.item(1, 1)
    assert world.ready() == [2, 3]
    world.item(3, 3)
    assert (world.counters.closing, world.state("z")) == ("joined", "")
    world.break_item(2)
    assert (world.gave(), world.state("z")) == ([None, 1, None, 3], "Queued")


@both
def test_join_count_with_cancel_remaining_ends_at_once(mode: Mode) -> None:
    world = each(mode, list(range(5)), joinCount=1, maxParallel=3, cancelRemaining=True)
    world.item(1, "won")
    assert world.parts() == ["Cancelled", "Completed", "Cancelled", "Cancelled", "Cancelled"]
    assert (world.gave(), world.ready(), world.run.active) == ([None, "won", None, None, None], [], 1)


@both
def test_a_join_count_that_is_out_of_reach_fails(mode: Mode) -> None:
    world = each(mode, [1, 2, 3], joinCount=2, maxFailures=3)
    world.break_item(0)
    assert world.counters.closing == ""
    world.break_item(1)
    assert world.counters.closing == "failed"
    assert each(mode, [1], joinCount=2).run.error is not None
    assert each(mode, [1], joinCount=2).run.error.type == "too_few_items"  # type: ignore[union-attr]  # see above


@both
def test_what_is_to_fail_fails_although_enough_items_complete_later(mode: Mode) -> None:
    world = each(mode, [1, 2, 3], joinCount=2, maxFailures=0)
    world.break_item(0)
    world.item(1)
    world.item(2)
    assert (world.status, world.counters.closing) == ("Failed", "failed")


@both
def test_large_inputs_are_made_a_few_at_a_time(mode: Mode) -> None:
    world = each(mode, [1, 2, 3], {"visits": 1_000}, node_input={"v": "x" * 40_000, "i": "${index}"})
    assert (world.ready(), world.go_on(), world.ready()) == ([0], 2, [0, 1, 2])


@both
def test_an_input_that_cannot_be_evaluated_fails_its_item_in_its_turn(mode: Mode) -> None:
    fields = {"maxFailures": 1, "maxParallel": 1, "node_input": {"v": "${item.v}"}}
    world = each(mode, [{"v": 1}, {}, {"v": 3}], **fields)
    assert (world.parts(), world.counters.faulty) == (["Queued", "Pending", "Pending"], 1)
    world.item(0, "one")
    assert (world.parts(), world.counters.failed) == (["Completed", "Failed", "Queued"], 1)
    assert world.counters.faulty == 0, "from here on rows are not read before they start"
    world.item(2, "three")
    assert world.gave() == ["one", None, "three"]
    assert each(mode, [{}, {"v": 1}], node_input={"v": "${item.v}"}).parts() == ["Failed", "Cancelled"]


@both
def test_items_retry_by_their_own_names(mode: Mode) -> None:
    tier = {"maxRetries": 1, "initialDelay": "10s", "when": "${item == 'again' && index == 1}"}
    world = each(mode, ["x", "again"], node_retry=[tier], maxFailures=1)
    world.break_item(1)
    assert world.part(1).state.value == "Waiting"
    world.break_item(0)
    world.tick(20)
    assert world.ready() == [1]
    assert (world.part(1).attempt, world.inputs()[1]["v"]) == (2, "again")
    world.item(1, "ok")
    assert world.gave() == [None, "ok"]


@both
def test_a_timeout_may_depend_on_the_item(mode: Mode) -> None:
    world = each(mode, ["1m", "2m", "3m"], node_timeout="${item}", maxParallel=2)
    world.item(0)
    timeouts = {key.index: entry.timeout_ms for key, entry in world.store.ready.items()}
    assert timeouts == {1: 120_000, 2: 180_000}


@both
def test_outputs_that_are_too_large_together_fail_the_node_without_being_loaded(mode: Mode) -> None:
    world = each(mode, [1, 2, 3], {"output_bytes": 100})
    world.item(0, "x" * 40)
    world.item(1, "x" * 40)
    world.item(2, "x" * 40)
    assert world.run.error is not None
    assert (world.status, world.run.error.type) == ("Failed", "output_too_large")


@both
def test_an_error_that_is_caught_shows_what_was_achieved(mode: Mode) -> None:
    nodes = {"name": "c", "compute": {"from": "${from}", "state": "${nodes.a.state}"}}
    made = loop(
        nodes,
        forEach={"items": [1, 2], "maxParallel": 2},
        onError=[{"match": ["boom"], "next": ["c"]}],
        output="${nodes.c.output}",
    )
    world = Looping(made, mode)
    world.start()
    world.item(1, "kept")
    world.break_item(0)
    assert world.status == "Succeeded"
    assert world.result["from"] == [
        {"node": "a", "output": [None, "kept"], "error": {"type": "boom", "message": "boom happened", "details": None}}
    ]


@both
def test_a_batch_of_completions_is_one_write_of_the_group(mode: Mode) -> None:
    world = each(mode, list(range(6)), maxParallel=3)
    world.send_batch([world.done(0, 0), world.done(1, 1), world.done(2, 2)])
    assert (world.ready(), world.counters.completed) == ([3, 4, 5], 3)
    world.send_batch([world.done(index, index) for index in (5, 4, 3)])
    assert world.gave() == list(range(6))


def test_an_ordinary_completion_is_decided_at_once_and_the_last_one_in_two_rounds() -> None:
    nodes = {"name": "p"}, {"name": "w", "dependsOn": ["a", "p"], "input": {"v": "${input.items.size()}"}}
    made = loop(*nodes, forEach={"items": "${input.items}", "maxParallel": 10}, input={"v": "${item}"})
    world = Looping(made, "sliced")
    world.start({"items": list(range(200))})
    world.complete("p")
    world.most_rounds = 0
    for index in range(199):
        world.item(index, index)
    assert world.most_rounds == 1
    world.item(199, 199)
    assert world.most_rounds == 2
    assert world.gave() == list(range(200))


def test_an_item_that_starts_unread_is_known_to_be_stored_and_its_payloads_not_to_be_loaded() -> None:
    world = each("sliced", list(range(4)), maxParallel=2)
    report = world.done(0)
    before = world.store.load(foresee(world.definition, report))
    first = decide(before, report, Context(world.now))
    assert isinstance(first, Effects)
    key = NodeKey("a", 2)
    after = absorb(before, first)
    assert (first.unread, key in after.tasks, key in after.outputs) == ({key}, True, False)
    merged = merge(first, Effects(first.run))
    assert merged.unread == {key}
