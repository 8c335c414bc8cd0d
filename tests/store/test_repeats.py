"""The rows of an end that repeats another one are those that would be gathered for it alone."""

from __future__ import annotations

from dataclasses import fields, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final
from uuid import UUID

import pytest

from partita.domain.payload import Payload
from partita.domain.state import decide
from partita.domain.state.events import TaskCompleted
from partita.domain.state.repeats import Repeat, spelled_out
from partita.domain.state.rows import ErrorInfo, NodeKey, ReadyKey, RunRow, TaskRow
from partita.domain.state.slices import Context, Need, Slice
from partita.minting import new_id
from partita.store import repeats
from partita.store.places import PlacedRun, PlacedTask
from partita.store.sequence import ReadySequence
from partita.store.writes import NewLease, ProjectionDelays, Writes
from tests.property.build import definition
from tests.property.world import World

NOW: Final = datetime(2031, 6, 1, tzinfo=UTC)
A, B, C = ({"name": "a"}, {"name": "b", "dependsOn": ["a"]}, {"name": "c", "dependsOn": ["a"], "input": {"fixed": 1}})
QUEUED: Final = {"ready_key": ReadyKey("default", 3, 0, 77)}


def placed(slice_: Slice) -> Slice:
    """As it is after reading it from the database."""
    assert slice_.run is not None
    run = PlacedRun(**{one.name: getattr(slice_.run, one.name) for one in fields(RunRow)})
    run.place = b"\0\0\0\0\0\1"
    tasks: dict[NodeKey, TaskRow] = {}
    for key, row in slice_.tasks.items():
        task = tasks[key] = PlacedTask(**{one.name: getattr(row, one.name) for one in fields(TaskRow)})
        task.place = b"\0\0\0\0\0\2"
    return replace(slice_, run=run, tasks=tasks)


def repeated(world: World, name: str, run: dict[str, Any], task: dict[str, Any]) -> tuple[Slice, Repeat]:
    """An end that was read off the same run's end, with some of the fields of its rows changed."""
    event = world.completed(name, {"answer": 42})
    context = Context(NOW)
    slice_ = world.store.load(Need(whole=True, mailbox=True))
    decide(slice_, event, context)
    key = NodeKey(name)
    assert slice_.run is not None
    changed = {**slice_.tasks, key: replace(slice_.tasks[key], **task)}
    before = placed(replace(slice_, run=replace(slice_.run, id=new_id(), **run), tasks=changed))
    effects = decide(before, event, context)
    assert type(effects) is Repeat
    return before, effects


def gathered(before: Slice, effects: Any, handed: dict[NodeKey, NewLease]) -> dict[str, object]:
    """All rows, by the name of their list."""
    writes = Writes(NOW, ReadySequence(NOW), ProjectionDelays(timedelta(milliseconds=100), timedelta(seconds=1)))
    writes.add(before, effects, handed)
    return {one.name: getattr(writes, one.name) for one in fields(Writes) if one.name not in {"common", "sequence"}}


RUNS: Final[tuple[dict[str, Any], ...]] = (
    {},
    {"cr_uid": "object", "name": "of-an-object"},
    {"generation": 4, "namespace": "other"},
    {"deadline_at": NOW + timedelta(hours=1)},
    {"deadline_remaining_ms": 5},
)
TASKS: Final[tuple[dict[str, Any], ...]] = (
    {},
    QUEUED,
    {"error": ErrorInfo("boom", "tried before"), "retries": {"0": 1}, "first_failed_at": NOW},
)


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("run", RUNS)
@pytest.mark.parametrize("nodes", [(A,), (A, B), (A, B, C), (A, {"name": "apart"})])
@pytest.mark.parametrize("offered", [0, 1, 9])
def test_rows_of_a_repeat_are_those_of_the_effects_spelled_out(
    nodes: tuple[dict[str, Any], ...], run: dict[str, Any], task: dict[str, Any], offered: int
) -> None:
    world = World(definition(*nodes))
    world.start()
    before, effects = repeated(world, "a", run, task)
    leases = [
        (key, NewLease(new_id(), UUID(int=7), "worker", NOW + timedelta(minutes=5))) for key in effects.pattern.enqueue
    ]
    full = spelled_out(effects.pattern, effects.before, effects.row, effects.event)
    handed = dict(leases[:offered])
    assert gathered(before, effects, handed) == gathered(before, full, handed)


@pytest.mark.parametrize("nodes", [(A,), (A, B), (A, B, C)])
def test_ordinary_repeats_are_gathered_in_the_short_way(nodes: tuple[dict[str, Any], ...]) -> None:
    world = World(definition(*nodes))
    world.start()
    before, effects = repeated(world, "a", {}, {})
    handed = {key: NewLease(new_id(), new_id(), "worker", NOW) for key in effects.pattern.enqueue}
    writes = Writes(NOW, ReadySequence(NOW), ProjectionDelays(timedelta(0), timedelta(0)))
    assert repeats.add(writes, before, effects, handed)
    assert len(writes.ends) == len(writes.steps) == 1


@pytest.mark.parametrize("task", TASKS)
def test_a_row_that_is_stored_already_is_not_inserted_again(task: dict[str, Any]) -> None:
    world = World(definition(A, B))
    world.start()
    before, effects = repeated(world, "a", {}, task)
    before.tasks[NodeKey("b")] = TaskRow(node="b", kind="task", state=effects.row.state)
    lease = NewLease(new_id(), new_id(), "worker", NOW)
    full = spelled_out(effects.pattern, effects.before, effects.row, effects.event)
    handed = {NodeKey("b"): lease}
    assert gathered(before, effects, handed) == gathered(before, full, handed)


def test_what_is_made_on_demand_is_the_same_for_every_reader() -> None:
    world = World(definition(A, B))
    world.start()
    _, effects = repeated(world, "a", {}, {})
    full = spelled_out(effects.pattern, effects.before, effects.row, effects.event)
    assert effects.visible is full.visible
    assert effects.run == full.run
    assert effects.run is effects.run
    with pytest.raises(AttributeError, match="unknown"):
        _ = effects.unknown
    assert isinstance(effects.event, TaskCompleted)
    assert effects.event.output == Payload.of({"answer": 42})
