"""An end that is read off another one's decision comes to what a decision of its own would have come to."""

from __future__ import annotations

from collections import Counter
from dataclasses import fields, replace
from datetime import timedelta
from random import Random
from typing import Any
from uuid import UUID

import pytest

from partita.domain.model import Definition
from partita.domain.payload import Payload
from partita.domain.state import absorb, decide, merge
from partita.domain.state.effects import Effects
from partita.domain.state.events import TaskCompleted
from partita.domain.state.repeats import Repeat
from partita.domain.state.rows import ErrorInfo, NodeKey, Parent, RunStatus, Stage
from partita.domain.state.slices import Context, Need, Slice
from tests.property.build import definition
from tests.property.profile import CHUNK, chunks
from tests.property.world import RUN_ID as ROOT
from tests.property.world import World

Given = tuple[Slice, TaskCompleted]
STRANGER = UUID("0190a0b0-0000-7000-8000-00000000ffff")
MOVES = 30
NODES: tuple[dict[str, Any], ...] = (
    {"when": "${input.yes}"},
    {"when": "${false}"},
    {"input": {"given": "${input.of}"}},
    {"input": {"fixed": 1}},
    {"timeout": "${input.seconds}"},
    {"timeout": "10s"},
    {"retry": [{"maxRetries": 2, "initialDelay": "0s"}]},
    {"onFailure": "continue"},
    {"scheduleToStart": "1h"},
    {"undo": {"task": {"type": "reverse"}}},
)
"""What a task may have besides; few of them, as most ends are to be plain."""


def drawn(random: Random) -> Definition:
    """A tree of tasks, with a join, a catch or a switch now and then."""
    names = [f"n{number}" for number in range(random.randint(1, 6))]
    nodes: list[dict[str, Any]] = []
    for number, name in enumerate(names):
        spice = random.choice(NODES) if random.random() < 0.25 else {}
        count = min(number, random.choice((0, 1, 1, 1, 1, 2)))
        nodes.append({"name": name, **spice, "dependsOn": random.sample(names[:number], count)})
        if count > 1:
            nodes[-1] |= random.choice(({}, {"join": "any", "cancelRemaining": True}, {"join": "merge"}))
        if number and random.random() < 0.1:
            nodes[number - 1] |= {"onError": [{"match": ["boom"], "next": [name]}]}
    more: dict[str, Any] = random.choice(
        ({}, {}, {}, {"output": "${input.of}"}, {"fail_fast": False}, {"timeout": "1h"})
    )
    return definition(*nodes, **more)


DIFFERENCES: tuple[dict[str, Any], ...] = (
    {"status": RunStatus.SUSPENDED},
    {"stage": Stage.FINALLY},
    {"pending_outcome": "Failed/NodeFailed", "error": ErrorInfo("boom", "")},
    {"applied_cancel_nodes": ("n0", "n1", "n2", "n3", "n4", "n5")},
    {"parent": Parent(ROOT, "child", 0, 1)},
    {"priority": 5},
    {"active": 7},
    {"done": 0},
    {"seq": 70},
    {"revision": 70},
)
"""What makes a run come to something else."""


def stranger(slice_: Slice, event: TaskCompleted, **others: Any) -> Given:
    """Another run that stands alike but for ``others``, with all of its own that an end must not depend on."""
    assert slice_.run is not None
    key = NodeKey(event.node, event.index)
    created = slice_.run.created_at - timedelta(days=1)
    run = replace(slice_.run, id=STRANGER, name="stranger", created_at=created, generation=9, cr_uid="object")
    run = replace(run, **others)
    tasks = {one: replace(row, output=Payload.of("other"), event=None) for one, row in slice_.tasks.items()}
    tasks[key] = replace(tasks[key], ready_key=None, queued_at=None, retries={"0": 1}, input=Payload.of("other"))
    given = Payload.of({"yes": False, "of": "other", "seconds": "99s"})
    since = event.started_at - timedelta(seconds=5)
    return (
        replace(slice_, run=run, input=given, tasks=tasks),
        replace(event, output=Payload.of({"by": "stranger"}), worker="stranger", started_at=since),
    )


def compare(world: World, first: Given, second: Given) -> bool:
    """Fail when the second end depends on the first; whether it was read off that one."""
    context = Context(world.now, world.limits)
    decide(*first, context)
    known, alone = decide(*second, context), decide(*second, Context(world.now, world.limits))
    assert isinstance(alone, Effects)
    assert type(alone) is not Repeat
    for field in fields(Effects):
        assert getattr(known, field.name) == getattr(alone, field.name), f"{field.name} of {second[1]}"
    return type(known) is Repeat


def check(world: World, event: TaskCompleted, different: dict[str, Any]) -> bool:
    """Compare an end with those of strangers; whether it was read off that of one that stands alike."""
    slice_ = world.store.load(Need(whole=True, input=True, mailbox=True, outputs=set(world.store.tasks)))
    own, late = (slice_, event), replace(event, attempt=event.attempt + 1)
    other = stranger(slice_, event, **different)
    compare(world, own, other)
    compare(world, other, own)
    compare(world, own, stranger(slice_, late))
    return compare(world, stranger(slice_, event), own)


def play(seed: int) -> Counter[bool]:
    """One run whose tasks mostly succeed, in any order, with failures and suspensions."""
    random = Random(seed)  # noqa: S311  # a test's chance
    world, found = World(drawn(random)), Counter[bool]()
    world.start({"yes": True, "of": [1, 2], "seconds": "30s"})
    for _ in range(MOVES):
        open_ = sorted({*world.store.leases, *world.store.ready})
        if not open_ or random.random() < 0.05:
            random.choice((world.suspend, world.resume, world.tick))()
            continue
        key = random.choice(open_)
        if random.random() < 0.15:
            world.fail(key.node)
            continue
        event = world.completed(key.node, random.randint(0, 9))
        found[check(world, event, random.choice(DIFFERENCES))] += 1
        world.send(event)
    return found


@pytest.mark.parametrize("first", chunks(600))
def test_a_repeat_is_what_a_decision_of_its_own_would_be(first: int) -> None:
    found = sum((play(seed) for seed in range(first, first + CHUNK)), Counter[bool]())
    assert min(found[True], found[False]) > CHUNK // 4, "ends of both kinds were met"


def both(slice_: Slice, events: list[TaskCompleted], context: Context) -> tuple[Effects, int]:
    """What two ends of one run change together, and how many of them were read off others."""
    merged: Effects | None = None
    found = 0
    for event in events:
        effects = decide(slice_, event, context)
        assert isinstance(effects, Effects)
        found += type(effects) is Repeat
        slice_ = absorb(slice_, effects)
        merged = effects if merged is None else merge(merged, effects)
    assert merged is not None
    return merged, found


def test_repeats_of_one_run_share_a_transaction() -> None:
    world = World(definition(*({"name": name} for name in "ab"), {"name": "c", "dependsOn": ["b"]}))
    world.start()
    events = [world.completed("a"), world.completed("b", 1)]
    slice_, context = world.store.load(Need(whole=True, mailbox=True)), Context(world.now)
    both(stranger(slice_, events[0])[0], events, context)
    known, found = both(slice_, events, context)
    alone, none = both(slice_, events, Context(world.now))
    assert (found, none) == (2, 0)
    assert type(known) is Effects, "whoever writes it must not take it for one of its parts"
    assert known == alone
