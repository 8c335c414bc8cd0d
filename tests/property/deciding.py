"""Decides one event on a stored run, in the ways the engine does: on the whole run, or on slices loaded by need."""

from __future__ import annotations

from collections.abc import Sequence

from partita.domain.state import absorb, decide, foresee, merge
from partita.domain.state.effects import Effects
from partita.domain.state.events import (
    AttemptTimedOut,
    ControlsApplied,
    Event,
    LeaseLost,
    Reply,
    RunStarted,
    SignalReceived,
    TaskCompleted,
    TaskFailed,
)
from partita.domain.state.rows import NodeKey
from partita.domain.state.slices import Context, Need, Slice
from tests.property.memory import Memory

MOST_ROUNDS = 7
"""Three rounds by need, then the whole run, then its mailbox, its outputs, and definitions of children."""


def decide_on(store: Memory, event: Event, context: Context, *, sliced: bool) -> tuple[Effects, int]:
    """What an event changes, and in how many rounds that was found."""
    ids = frozenset(one.id for one in signals_of([event]))
    everything = Need(whole=True, input=True, mailbox=True, outputs=set(store.tasks))
    need = foresee(store.definition, event) if sliced else everything
    for number in range(MOST_ROUNDS):
        slice_ = store.load(need, ids)
        decision = decide(slice_, event, context)
        if isinstance(decision, Effects):
            check_written(store, slice_, decision)
            return decision, number + 1
        assert sliced or _only_versions(decision), f"the whole run is not enough: {decision}"
        asked = Need(set(need.rows), set(need.outputs), need.input, need.whole, need.mailbox, set(need.versions))
        need.merge(decision)
        assert need != asked, f"asks again for what it has: {decision}"
        if number == 2:
            need.whole = True
    raise AssertionError(f"{MOST_ROUNDS} rounds were not enough: {need}")


def decide_batch(store: Memory, events: Sequence[Event], context: Context) -> tuple[Effects, list[Reply]]:
    """What several events change in one transaction, each decided on the slice that the one before has left."""
    ids = frozenset(one.id for one in signals_of(events))
    need = Need(whole=True, input=True, mailbox=True, outputs=set(store.tasks))
    slice_ = store.load(need, ids)
    merged: Effects | None = None
    replies = []
    leased = slice_.leased or set()
    for number, event in enumerate(events):
        if slice_.leased is not None:
            slice_.leased = (slice_.leased & leased) | fenced(events[number + 1 :])
        decision = decide(slice_, event, context)
        if isinstance(decision, Need):
            assert _only_versions(decision), f"the whole run is not enough: {decision}"
            slice_.versions |= {name: store.lookup(name) for name in decision.versions}
            decision = decide(slice_, event, context)
        assert isinstance(decision, Effects)
        slice_ = absorb(slice_, decision)
        replies.append(decision.reply)
        merged = decision if merged is None else merge(merged, decision)
    assert merged is not None
    return merged, replies


def fenced(events: Sequence[Event]) -> set[NodeKey]:
    """Attempts whose leases the fence has taken away for reports that are still to be decided."""
    reports = (TaskCompleted, TaskFailed, LeaseLost, AttemptTimedOut)
    return {NodeKey(event.node, event.index) for event in events if isinstance(event, reports)}


def check_written(store: Memory, slice_: Slice, effects: Effects) -> None:
    """A row is inserted if it was not looked up, else updated: that must be right for each of them."""
    for key in effects.tasks:
        known = key in slice_.tasks or key in effects.unread
        assert known == (key in store.tasks), f"{key} would be {'updated' if known else 'inserted'}"


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
