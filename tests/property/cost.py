"""What a decision costs: ``python -m tests.property.cost`` prints one JSON line a figure, in µs.

Not a test: a busy machine would make it fail. The budget of a plain completion is 15 to 25 µs.
"""

from __future__ import annotations

import json
import timeit
from collections.abc import Callable

from partita.domain.payload import Payload
from partita.domain.state import absorb, decide, foresee, merge
from partita.domain.state.effects import Effects
from partita.domain.state.events import Event, TaskCompleted
from partita.domain.state.slices import Context, Slice
from tests.property.build import definition
from tests.property.world import EPOCH, World

TIMES = 2_000


def _micros(work: Callable[[], object]) -> float:
    return round(min(timeit.repeat(work, number=TIMES, repeat=7)) / TIMES * 1e6, 1)


def _show(figure: str, value: float) -> None:
    print(json.dumps({"figure": figure, "value": value, "unit": "us"}))


def main() -> None:
    """Measure three steps in a row, as in the benchmark of the engine."""
    three = definition({"name": "a"}, {"name": "b", "dependsOn": ["a"]}, {"name": "c", "dependsOn": ["b"]})
    world = World(three)
    context = Context(EPOCH)
    _show("start", _micros(lambda: decide(Slice(three, None), world.started(), context)))
    world.start()
    for node in "abc":
        event: Event = TaskCompleted(
            node=node, index=0, attempt=1, output=Payload.parse('{"ok":true}'), worker="w", started_at=EPOCH
        )
        slice_ = world.store.whole()
        _show(f"complete {node}", _micros(lambda slice_=slice_, event=event: decide(slice_, event, context)))  # type: ignore[misc]  # bound at once
        world.complete(node, {"ok": True})
    event = world.peeked("b")
    effects = world.last
    assert effects is not None
    _show("foresee", _micros(lambda: foresee(three, event)))
    _show("absorb", _micros(lambda: absorb(slice_, effects)))
    _show("merge", _micros(lambda: merge(Effects(world.run), Effects(world.run))))


if __name__ == "__main__":
    main()
