"""Different ways to the same decision, with children, loops and messages: on slices, in batches, in small portions."""

from __future__ import annotations

from dataclasses import fields, replace
from random import Random
from typing import Any
from uuid import UUID

import pytest

from partita.domain.state.effects import Effects
from partita.domain.state.events import Event, ResumeRequested, SuspendRequested
from partita.domain.state.rows import TaskRow
from partita.domain.state.slices import Context
from tests.property.comparison import catalogue, disagreement, parsed, realm_of
from tests.property.deciding import decide_on
from tests.property.generator import Case, generate
from tests.property.minimise import shown
from tests.property.performance import Due
from tests.property.profile import CHUNK, chunks
from tests.property.realm import ROOT, Realm
from tests.property.reference import Script
from tests.property.wandering import Wandering


class Twin(Realm):
    """Decides every event on the whole run and on a slice, and compares."""

    def send(self, run_id: UUID, event: Event) -> Any:
        """One event in a transaction of its own."""
        store, context = self.stores[run_id], Context(self.now, self.limits)
        whole, _ = decide_on(store, event, context, sliced=False)
        sliced, _ = decide_on(store, event, context, sliced=True)
        for field in fields(Effects):
            first, second = getattr(whole, field.name), getattr(sliced, field.name)
            if field.name == "tasks":
                first = {key: _without_payloads(row) for key, row in first.items()}
                second = {key: _without_payloads(row) for key, row in second.items()}
            if field.name != "unread":
                assert first == second, f"{field.name} of {event}"
        return super().send(run_id, event)


def _without_payloads(row: TaskRow) -> TaskRow:
    return replace(row, input=None, output=None, event=None)


@pytest.mark.parametrize("first", chunks(300))
def test_a_slice_decides_as_the_whole_run_does(first: int) -> None:
    for seed in range(first, first + CHUNK):
        case = generate(seed)
        definition = parsed(case.spec)
        if definition is None:
            continue
        twin = Twin(definition, catalogue=catalogue(), sliced=bool(seed % 2))
        wandering = Wandering(twin, case.script, Random(seed))  # noqa: S311  # a test's chance
        wandering.start()
        wandering.wander(60, disturb=wandering.pause)
        wandering.resume()
        wandering.wander(60)


@pytest.mark.parametrize("first", chunks(300))
def test_portions_of_any_size_give_the_same_result(first: int) -> None:
    for seed in range(first, first + CHUNK):
        case = generate(seed)
        bounds = {"loop_chunk": 1 + seed % 3, "visits": 1 + seed % 5}
        lines = disagreement(case, sliced=bool(seed % 2), bounds=bounds)
        assert not lines, f"seed {seed}:\n" + "\n".join(lines or ()) + "\n" + shown(case)


@pytest.mark.parametrize("first", chunks(300))
def test_a_batch_decides_as_single_events_do(first: int) -> None:
    batches = 0
    for seed in range(first, first + CHUNK):
        case = generate(seed)
        if parsed(case.spec) is not None:
            batches += _Pair(case, seed).play()
    assert batches > CHUNK // 2, "too few batches"


class _Pair:
    """The same events, one by one in one realm and in batches in another."""

    def __init__(self, case: Case, seed: int) -> None:
        definition = parsed(case.spec)
        assert definition is not None
        self.random = Random(seed)  # noqa: S311  # a test's chance
        self.seed = seed
        self.single, self.batch = (self._side(case.script, realm_of(definition)) for _ in range(2))

    def _side(self, script: Script, realm: Realm) -> Wandering:
        return Wandering(realm, script, self.random)

    @property
    def sides(self) -> tuple[Wandering, Wandering]:
        """Both realms."""
        return self.single, self.batch

    def play(self) -> int:
        """Compare after every batch; how many had several events."""
        batches = 0
        for side in self.sides:
            side.start()
        for _ in range(40):
            for side in self.sides:
                side.claim()
            paths = sorted({due.path for due in self.single.dues()} | self._addressed())
            if not paths:
                break
            batches += self._transaction(self.random.choice(paths))
            self._agree()
        return batches

    def _addressed(self) -> set[Any]:
        realm = self.single.realm
        return {realm.paths[mail.run_id] for mail in realm.inbox if mail.run_id in realm.stores}

    def _transaction(self, path: Any) -> bool:
        """Messages, attempts and perhaps a timer of one run at one moment."""
        run_id = next(one for one, other in self.single.realm.paths.items() if other == path)
        dues = sorted(due for due in self.single.dues() if due.path == path)
        attempts = [due for due in dues if due.kind == "attempt"]
        timers = [due for due in dues if due.kind != "attempt"][:1]
        at = timers[0].at if timers and self.random.randrange(3) == 0 else 0
        for side in self.sides:
            side.realm.set_time(at)
        picked = self.random.sample(attempts, self.random.randint(0, len(attempts)))
        picked += [due for due in timers if self.single.realm.milliseconds(self.single.realm.now) >= due.at]
        controls: list[Event] = self.random.choice([[], [], [], [SuspendRequested(), ResumeRequested()]])
        if run_id != ROOT:
            controls = []
        letters = [len(self._letters(side, run_id)) for side in self.sides]
        assert letters[0] == letters[1]
        if run_id not in self.single.realm.stores:
            return False
        count = self._batched(run_id, picked, controls)
        self._singly(run_id, picked, controls)
        return count > 1

    @staticmethod
    def _letters(side: Wandering, run_id: UUID) -> list[Any]:
        return [mail for mail in side.realm.inbox if mail.run_id == run_id]

    def _take(self, side: Wandering, run_id: UUID) -> list[Event]:
        letters = self._letters(side, run_id)
        side.realm.inbox = [mail for mail in side.realm.inbox if mail.run_id != run_id]
        store = side.realm.stores[run_id]
        events: list[Event] = [mail.content for mail in letters]
        store.left = [event for event in store.left if event not in events]
        return events

    def _batched(self, run_id: UUID, picked: list[Due], controls: list[Event]) -> int:
        side = self.batch
        store = side.realm.stores[run_id]
        events = self._take(side, run_id)
        events += [side.event_of_due(store, due) for due in picked]
        events += controls
        if events:
            side.realm.send_batch(run_id, events)
        return len(events)

    def _singly(self, run_id: UUID, picked: list[Due], controls: list[Event]) -> None:
        side = self.single
        store = side.realm.stores[run_id]
        for event in self._take(side, run_id):
            side.realm.send(run_id, event)
        for due in picked:
            if due in side.dues():
                side.realm.send(run_id, side.event_of_due(store, due))
        for event in controls:
            side.realm.send(run_id, event)

    def _agree(self) -> None:
        first, second = (side.realm.stores for side in self.sides)
        assert first.keys() == second.keys(), f"seed {self.seed}"
        for run_id, store in first.items():
            assert store.image() == second[run_id].image(), f"seed {self.seed}"
            assert store.run == second[run_id].run, f"seed {self.seed}"
            assert store.history == second[run_id].history, f"seed {self.seed}"
