"""Decides one event on a stored run, in the ways the engine does: on the whole run, or on slices loaded by need."""

from __future__ import annotations

from collections.abc import Sequence

from partita.domain.state import decide, foresee
from partita.domain.state.effects import Context, Effects, Need
from partita.domain.state.events import ControlsApplied, Event, RunStarted, SignalReceived
from tests.property.memory import Memory

MOST_ROUNDS = 7
"""Three rounds by need, then the whole run, then its mailbox, its outputs, and definitions of children."""


def decide_on(store: Memory, event: Event, context: Context, *, sliced: bool) -> tuple[Effects, int]:
    """What an event changes, and in how many rounds that was found."""
    ids = frozenset(one.id for one in signals_of([event]))
    everything = Need(whole=True, input=True, mailbox=True, outputs=set(store.tasks))
    need = foresee(store.definition, event) if sliced else everything
    for number in range(MOST_ROUNDS):
        decision = decide(store.load(need, ids), event, context)
        if isinstance(decision, Effects):
            return decision, number + 1
        assert sliced or _only_versions(decision), f"the whole run is not enough: {decision}"
        asked = Need(set(need.rows), set(need.outputs), need.input, need.whole, need.mailbox, set(need.versions))
        need.merge(decision)
        assert need != asked, f"asks again for what it has: {decision}"
        if number == 2:
            need.whole = True
    raise AssertionError(f"{MOST_ROUNDS} rounds were not enough: {need}")


def _only_versions(need: Need) -> bool:
    return not (need.rows or need.outputs or need.input or need.whole or need.mailbox)


def signals_of(events: Sequence[Event]) -> list[SignalReceived]:
    """The signals that events carry."""
    found: list[SignalReceived] = []
    for event in events:
        if isinstance(event, SignalReceived):
            found.append(event)
        elif isinstance(event, ControlsApplied):
            found.extend(event.signals)
        elif isinstance(event, RunStarted) and event.controls is not None:
            found.extend(event.controls.signals)
    return found
