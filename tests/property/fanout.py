"""What an item of a loop costs to decide: ``python -m tests.property.fanout`` prints one JSON line a figure, in µs.

A forEach of 100, 1,000 and 10,000 items, and a repeat of as many iterations, on slices that are loaded by need, from
their start to their end: a cost that grows with the length of the loop shows. Not a test, as a busy machine would
make it fail.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from time import process_time

from partita.domain.model import Definition
from partita.domain.payload import Payload
from partita.domain.state import decide, foresee
from partita.domain.state.effects import Effects
from partita.domain.state.events import Event, LoopContinued, RunStarted, TaskCompleted
from partita.domain.state.rows import NodeKey
from partita.domain.state.slices import Context
from tests.property.build import definition
from tests.property.memory import Memory
from tests.property.world import EPOCH, RUN_ID

SIZES = (100, 1_000, 10_000)
CONTEXT = Context(EPOCH)
EACH = definition(
    {"name": "a", "forEach": {"items": "${input.items}", "maxParallel": 100}, "input": {"v": "${item}"}},
    {"name": "z", "dependsOn": ["a"]},
)
AGAIN = definition(
    {
        "name": "a",
        "repeat": {"until": "${iteration + 1 >= input.n}", "collect": "${output.ok}", "maxIterations": 10_000},
        "input": {"n": "${iteration}"},
    }
)


class Spent:
    """Seconds spent deciding, and the most rounds that a decision took."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.rounds = 0


def _decide(store: Memory, event: Event, spent: Spent) -> Effects:
    need, rounds = foresee(store.definition, event), 0
    while True:
        slice_ = store.load(need)
        begun = process_time()
        decision = decide(slice_, event, CONTEXT)
        spent.seconds += process_time() - begun
        rounds += 1
        if isinstance(decision, Effects):
            break
        need.merge(decision)
    spent.rounds = max(spent.rounds, rounds)
    store.apply(decision)
    return decision


def _reports(store: Memory) -> Iterator[TaskCompleted]:
    """Successes of whatever is ready, in order."""
    while key := next(iter(store.ready), None):
        if key.node != "a":
            return
        attempt = store.ready.pop(key).attempt
        output = Payload.parse('{"ok":true}')
        yield TaskCompleted(node="a", index=key.index, attempt=attempt, output=output, worker="w", started_at=EPOCH)


def measure(made: Definition, size: int) -> Spent:
    """Run a loop of so many parts from its start to its end."""
    store, spent = Memory(made), Spent()
    started = RunStarted(
        run_id=RUN_ID,
        namespace="default",
        name="",
        definition="example",
        version=1,
        input=Payload.of({"items": [f"item {number}" for number in range(size)], "n": size}),
    )
    effects = _decide(store, started, spent)
    while any(isinstance(one.event, LoopContinued) for one in effects.messages):
        effects = _decide(store, LoopContinued(node="a"), spent)
    for report in _reports(store):
        _decide(store, report, spent)
    assert store.tasks[NodeKey("a", -1)].state.value == "Completed"
    assert store.tasks[NodeKey("a", size - 1)].state.value == "Completed"
    return spent


def main() -> None:
    """Print what an item and an iteration cost."""
    for name, made in (("item", EACH), ("iteration", AGAIN)):
        for size in SIZES:
            spent = measure(made, size)
            micros = round(spent.seconds / size * 1e6, 1)
            print(json.dumps({"figure": f"{name} of {size}", "value": micros, "unit": "us", "rounds": spent.rounds}))


if __name__ == "__main__":
    main()
