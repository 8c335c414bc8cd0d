"""What decisions ask for, how few rounds they take, and how several events share a transaction."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from partita.domain.error_types import RESERVED, matches
from partita.domain.payload import Payload
from partita.domain.state import absorb, decide, foresee, foreseen, merge
from partita.domain.state.copies import copy_run, copy_task, new_task
from partita.domain.state.effects import Effects, TimerKey, new_effects
from partita.domain.state.events import CancelRequested, Event, SuspendRequested
from partita.domain.state.rows import (
    Detail,
    ErrorInfo,
    NodeKey,
    NodeState,
    Parent,
    ReadyKey,
    RunRow,
    RunStatus,
    TaskRow,
    TimerKind,
)
from partita.domain.state.slices import Context, Need, Slice, new_slice
from tests.property.build import definition
from tests.property.world import EPOCH, RUN_ID, World


def chain(count: int, **more: Any) -> list[dict[str, Any]]:
    """Tasks that each read the one before."""
    first: list[dict[str, Any]] = [{"name": "n0"}]
    return first + [{"name": f"n{i}", "input": f"${{nodes.n{i - 1}.output}}", **more} for i in range(1, count)]


def test_the_usual_event_takes_one_round() -> None:
    world = World(definition(*chain(100), output="${nodes.n99.output}"), mode="sliced")
    world.start()
    for number in range(100):
        world.complete(f"n{number}", number)
    assert (world.status, world.result, world.most_rounds) == ("Succeeded", 99, 1)


@pytest.mark.parametrize("nodes", [3, 64, 100])
def test_a_usual_event_reads_one_row_of_a_chain(nodes: int) -> None:
    world = World(definition(*chain(nodes)), mode="sliced")
    world.start()
    world.complete("n0")
    need = foresee(world.definition, world.peeked("n1"))
    assert (need.rows, need.whole, need.mailbox) == ({NodeKey("n1")}, False, False)


def test_a_run_is_foreseen_whole_where_the_event_ends_or_freezes_it() -> None:
    assert foresee(definition(*chain(64)), CancelRequested()).whole
    assert not foresee(definition(*chain(3)), World(definition()).signalled("a")).whole


def test_a_foreseen_need_may_be_changed() -> None:
    world = World(definition(*chain(70)), mode="sliced")
    world.start()
    event = world.peeked("n0")
    foresee(world.definition, event).merge(Need(rows={NodeKey("other")}))
    assert NodeKey("other") not in foresee(world.definition, event).rows
    assert foreseen(world.definition, event) == foresee(world.definition, event)


def test_computes_that_read_old_outputs_need_few_rounds() -> None:
    """A hundred computes in a row, each reading an output from long before, behind a task with a catch route."""
    old = [{"name": f"o{i}"} for i in range(100)]
    computes: list[dict[str, Any]] = [
        {
            "name": f"c{i}",
            "dependsOn": [f"c{i - 1}" if i else "gate"],
            "compute": f"${{nodes.o{i}.output + {'nodes.c' + str(i - 1) + '.output' if i else '0'}}}",
        }
        for i in range(100)
    ]
    world = World(
        definition(*old, {"name": "gate", "dependsOn": ["o0"]}, *computes, output="${nodes.c99.output}"), mode="sliced"
    )
    world.start()
    for i in range(100):
        world.complete(f"o{i}", i)
    world.complete("gate")
    assert (world.status, world.result) == ("Succeeded", sum(range(100)))
    assert world.most_rounds <= 5


def test_every_need_of_a_pass_is_collected() -> None:
    targets = [{"name": f"t{i}", "dependsOn": ["a", "b"], "input": f"${{nodes.x{i}.output}}"} for i in range(3)]
    sources = [{"name": f"x{i}"} for i in range(3)]
    world = World(definition({"name": "a"}, {"name": "b"}, *sources, *targets))
    world.start()
    for name in ("x0", "x1", "x2", "b"):
        world.complete(name, 1)
    event = world.completed("a")
    first = decide(world.store.load(Need(rows={NodeKey("a")})), event, Context(EPOCH))
    assert isinstance(first, Need)
    assert first.rows == {NodeKey(f"t{i}") for i in range(3)}
    keys = first.rows | {NodeKey("a"), *(NodeKey(f"x{i}") for i in range(3))}
    second = decide(world.store.load(Need(rows=keys)), event, Context(EPOCH))
    assert isinstance(second, Need)
    assert second.outputs == {NodeKey(f"x{i}") for i in range(3)}


def test_the_slice_is_left_as_it_was() -> None:
    world = World(definition({"name": "a"}, {"name": "b", "dependsOn": ["a"]}, {"name": "w", "waitForEvent": {}}))
    world.start()
    events: list[Event] = [world.completed("a", 1), world.signalled("w", 1), SuspendRequested(), CancelRequested()]
    slice_ = world.store.whole()
    for event in events:
        before = repr(slice_)
        effects = decide(slice_, event, Context(EPOCH))
        assert isinstance(effects, Effects)
        assert repr(slice_) == before
        absorb(slice_, effects)
        assert repr(slice_) == before


def test_the_same_decision_twice_is_the_same() -> None:
    world = World(definition({"name": "a", "retry": [{"jitter": 1.0}]}))
    world.start()
    event = world.failed("a")
    assert decide(world.store.whole(), event, Context(EPOCH)) == decide(world.store.whole(), event, Context(EPOCH))


def test_a_signal_that_is_buffered_and_taken_in_one_batch_is_recorded_once() -> None:
    world = World(definition({"name": "p"}, {"name": "a", "dependsOn": ["p"], "waitForEvent": {}}))
    world.start()
    world.send_batch([world.signalled("a", 1, id="s1"), world.completed("p")])
    assert world.last is not None
    assert world.last.consumed == []
    assert [(signal.row.id, signal.consumed_by) for signal in world.last.record_signals] == [("s1", "a")]
    assert world.status == "Succeeded"


def test_work_that_a_batch_starts_and_ends_is_never_offered() -> None:
    world = World(definition({"name": "a"}, {"name": "b", "dependsOn": ["a"]}))
    world.start()
    world.send_batch([world.completed("a"), CancelRequested()])
    assert (world.status, world.store.ready) == ("Cancelled", {})


def test_a_timer_that_a_batch_drops_and_sets_again_stays() -> None:
    key = TimerKey(TimerKind.WAIT, "a", 0)
    world = World(definition({"name": "a", "wait": {"duration": "1h"}}))
    world.start()
    assert world.last is not None
    first, second = Effects(world.run, drop_timers={key}), Effects(world.run, timers=dict(world.last.timers))
    merged = merge(first, second)
    assert (set(merged.timers), merged.drop_timers) == ({key}, {key})


def test_copies_have_every_field() -> None:
    run = RunRow(
        id=RUN_ID, namespace="n", name="r", definition="d", version=3, status=RunStatus.FAILED, generation=1,
        revision=2, seq=3, reason="x", active=4, done=5, total=6, priority=1, error=ErrorInfo("t", "m"),
        pending_outcome="o", deadline_at=EPOCH, deadline_remaining_ms=7, cr_uid="u", cr_generation=8,
        applied_suspend=True, applied_cancel=True, created_at=EPOCH, started_at=EPOCH, finished_at=EPOCH,
        retry_counts={"a": 1}, applied_cancel_nodes=("a",), subflow="s", parent=Parent(RUN_ID, "n", 0, 1),
        mailbox_id=RUN_ID, depth=1,
    )  # fmt: skip  # a record with every field set
    task = TaskRow(
        node="a", index=2, kind="task", state=NodeState.FAILED, attempt=3, edges_settled=4, edges_live=5, fired=True,
        route=("z",), stepped_over=True, retries={"0": 1}, first_failed_at=EPOCH, ready_key=ReadyKey("q", 1, 2, 3),
        input=Payload.of(1), output=Payload.of(2), error=ErrorInfo("t", "m"), event=Payload.of(3), queued_at=EPOCH,
        finished_at=EPOCH, detail=Detail(order=1),
    )  # fmt: skip  # a record with every field set
    assert copy_run(run) == run
    assert copy_task(task) == task
    assert new_task(NodeKey("a", 2), "task") == TaskRow(node="a", index=2, kind="task", state=NodeState.PENDING)
    assert new_effects(run) == Effects(run)
    assert new_slice(definition(), run) == Slice(definition(), run)
    assert copy_run(run) is not run
    for row in (run, task):
        defaults = {field.name for field in dataclasses.fields(row) if getattr(row, field.name) == field.default}
        assert defaults - {"stage"} == set(), "set every field, so that a forgotten one is seen"


def test_match_lists() -> None:
    assert matches((), "boom")
    assert matches(("any",), "timeout")
    assert not matches(("boom",), "other")
    assert matches(("fatal",), "fatal")
    for reserved in RESERVED:
        assert matches(("any",), reserved.name) == reserved.any_matches


def test_a_slice_of_nothing_starts_a_run() -> None:
    world = World(definition({"name": "a"}))
    effects = decide(Slice(world.definition, None), world.started(), Context(EPOCH))
    assert isinstance(effects, Effects)
    after = absorb(Slice(world.definition, None), effects)
    assert (after.whole, after.waits, after.timers, after.signals) == (True, [], [], [])
