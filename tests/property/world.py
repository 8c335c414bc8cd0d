"""One run in a world without I/O: events go through ``decide`` into a store in memory; the clock is set by hand.

The ways to decide are those of the engine: on the whole run, on slices that are loaded by need, or several events of
one batch on absorbed slices whose merged effects are written at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Literal
from uuid import UUID

from partita.domain.model import Definition
from partita.domain.payload import Payload
from partita.domain.state import absorb, decide, merge
from partita.domain.state.effects import Effects, TimerKey
from partita.domain.state.events import (
    AttemptTimedOut,
    CancelRequested,
    ControlsApplied,
    DeadlineReached,
    Event,
    LeaseLost,
    Reply,
    ResumeRequested,
    RunStarted,
    ScheduleToStartExpired,
    SignalReceived,
    SuspendRequested,
    TaskCompleted,
    TaskFailed,
    TimerDue,
)
from partita.domain.state.rows import ErrorInfo, NodeKey, RunRow, TaskRow, TimerKind
from partita.domain.state.slices import Context, Limits
from tests.property.deciding import decide_on, signals_of
from tests.property.memory import Memory

RUN_ID = UUID("0190a0b0-0000-7000-8000-000000000001")
EPOCH = datetime(2030, 1, 1, tzinfo=UTC)
Mode = Literal["whole", "sliced"]


class World:
    """A run, its store and its clock."""

    def __init__(self, definition: Definition, *, mode: Mode = "whole", limits: Limits | None = None) -> None:
        self.definition = definition
        self.mode: Mode = mode
        self.limits = limits or Limits()
        self.now = EPOCH
        self.store = Memory(definition)
        self.last: Effects | None = None
        self.most_rounds = 0

    # Deciding --------------------------------------------------------------------------------------------------------

    def send(self, event: Event) -> Reply:
        """One event in a transaction of its own."""
        effects = self.decide(event)
        self.last = effects
        self.store.apply(effects)
        self.store.check()
        return effects.reply

    def send_batch(self, events: Sequence[Event]) -> list[Reply]:
        """Several events in one transaction."""
        slice_ = self.store.whole()
        slice_.seen_signal_ids = {one.id for one in signals_of(events) if one.id in self.store.signals}
        merged: Effects | None = None
        replies = []
        for event in events:
            effects = decide(slice_, event, self._context())
            assert isinstance(effects, Effects), f"the whole run is not enough: {effects}"
            slice_ = absorb(slice_, effects)
            replies.append(effects.reply)
            merged = effects if merged is None else merge(merged, effects)
        if merged is not None:
            self.last = merged
            self.store.apply(merged)
            self.store.check()
        return replies

    def _context(self) -> Context:
        return Context(self.now, self.limits)

    def decide(self, event: Event) -> Effects:
        """What an event changes."""
        effects, rounds = decide_on(self.store, event, self._context(), sliced=self.mode == "sliced")
        self.most_rounds = max(self.most_rounds, rounds)
        return effects

    # What people, workers and the clock do ---------------------------------------------------------------------------

    def start(self, given: Any = None, **more: Any) -> Reply:
        """Start the run."""
        return self.send(self.started(given, **more))

    def started(self, given: Any = None, **more: Any) -> RunStarted:
        """The event that starts the run."""
        return RunStarted(
            run_id=RUN_ID,
            namespace="default",
            name="example-1",
            definition="example",
            version=1,
            input=Payload.of(given or {}),
            **more,
        )

    def claim(self, node: str) -> int:
        """A worker takes the node's attempt; returns its number."""
        return self.store.claim(NodeKey(node), self.now).attempt

    def end_lease(self, node: str) -> tuple[int, datetime]:
        """Delete the node's lease as the fence does (taking the work first if nobody has)."""
        key = NodeKey(node)
        if key in self.store.ready:
            self.claim(node)
        lease = self.store.leases.pop(key)
        return lease.attempt, lease.since

    def completed(self, node: str, output: Any = None) -> TaskCompleted:
        """The event of a worker's success; ends the lease."""
        attempt, since = self.end_lease(node)
        return TaskCompleted(
            node=node, index=0, attempt=attempt, output=Payload.of(output), worker="worker-1", started_at=since
        )

    def peeked(self, node: str) -> TaskCompleted:
        """The event of a success of the node's attempt that leaves the lease alone."""
        attempt = self.row(node).attempt
        return TaskCompleted(
            node=node, index=0, attempt=attempt, output=Payload.of(1), worker="worker-2", started_at=self.now
        )

    def failed(self, node: str, kind: str = "boom", **more: Any) -> TaskFailed:
        """The event of a worker's failure; ends the lease."""
        attempt, since = self.end_lease(node)
        details = more.pop("details", None)
        error = ErrorInfo(kind, f"{kind} happened", Payload.of(details) if details is not None else None)
        return TaskFailed(node=node, index=0, attempt=attempt, error=error, worker="worker-1", started_at=since, **more)

    def complete(self, node: str, output: Any = None) -> Reply:
        """A worker completes the node."""
        return self.send(self.completed(node, output))

    def fail(self, node: str, kind: str = "boom", **more: Any) -> Reply:
        """A worker fails the node's attempt."""
        return self.send(self.failed(node, kind, **more))

    def lose(self, node: str, *, handed_back: bool = False) -> Reply:
        """A worker vanishes with the node's attempt, or hands it back."""
        attempt, since = self.end_lease(node)
        return self.send(
            LeaseLost(node=node, index=0, attempt=attempt, worker="worker-1", started_at=since, handed_back=handed_back)
        )

    def time_out(self, node: str) -> Reply:
        """The attempt's deadline passes."""
        attempt, since = self.end_lease(node)
        return self.send(AttemptTimedOut(node=node, index=0, attempt=attempt, worker="worker-1", started_at=since))

    def never_taken(self, node: str) -> Reply:
        """No worker takes the node in time."""
        entry = self.store.ready.pop(NodeKey(node))
        return self.send(ScheduleToStartExpired(node=node, index=0, attempt=entry.attempt))

    def signal(self, name: str, payload: Any = None, *, id: str = "", sender: str = "") -> Reply:  # noqa: A002  # the field's name
        """A signal arrives."""
        return self.send(self.signalled(name, payload, id=id, sender=sender))

    def signalled(self, name: str, payload: Any = None, *, id: str = "", sender: str = "") -> SignalReceived:  # noqa: A002  # the field's name
        """The event of a signal."""
        return SignalReceived(
            id=id or f"s{len(self.store.signals) + 1}", name=name, payload=Payload.of(payload), sender=sender
        )

    def suspend(self) -> Reply:
        """Suspend the run."""
        return self.send(SuspendRequested(by="me"))

    def resume(self) -> Reply:
        """Resume the run."""
        return self.send(ResumeRequested(by="me"))

    def cancel(self) -> Reply:
        """Cancel the run."""
        return self.send(CancelRequested(by="me", reason="no longer wanted"))

    def controls(self, generation: int, **more: Any) -> Reply:
        """Controls of a generation of the run's object."""
        return self.send(ControlsApplied(cr_generation=generation, **more))

    def pass_time(self, seconds: float = 0) -> None:
        """Let time pass without anybody noticing."""
        self.now += timedelta(seconds=seconds)

    def due(self) -> list[TimerKey]:
        """Timers that have fallen due, the earliest first."""
        late = [(timer.fire_at, key.kind.value, key.node, key) for key, timer in self.store.timers.items()]
        return [key for fire_at, _, _, key in sorted(late, key=lambda one: one[:3]) if fire_at <= self.now]

    def fire(self, key: TimerKey) -> Event:
        """Delete a due timer as the fence does; returns its event."""
        del self.store.timers[key]
        if key.kind is TimerKind.DEADLINE:
            return DeadlineReached()
        return TimerDue(kind=key.kind, node=key.node, index=key.index)

    def tick(self, seconds: float = 0) -> None:
        """Let time pass and apply every timer that falls due."""
        self.pass_time(seconds)
        while due := self.due():
            self.send(self.fire(due[0]))

    # What can be seen ------------------------------------------------------------------------------------------------

    @property
    def run(self) -> RunRow:
        """The run's row."""
        assert self.store.run is not None
        return self.store.run

    @property
    def status(self) -> str:
        """The run's status."""
        return self.run.status.value

    def row(self, node: str) -> TaskRow:
        """A node's row."""
        return self.store.tasks[NodeKey(node)]

    def state(self, node: str) -> str:
        """A node's state; '' for one that has no row."""
        row = self.store.tasks.get(NodeKey(node))
        return row.state.value if row is not None else ""

    def states(self) -> dict[str, str]:
        """States of all nodes that have rows."""
        return {row.node: row.state.value for row in self.store.tasks.values()}

    def output(self, node: str) -> Any:
        """A node's output."""
        payload = self.row(node).output
        return payload.value if payload is not None else None

    def input(self, node: str) -> Any:
        """The input of a node's attempts."""
        payload = self.row(node).input
        return payload.value if payload is not None else None

    @property
    def result(self) -> Any:
        """The run's output."""
        return self.store.output.value if self.store.output is not None else None

    def events(self, name: str = "") -> list[tuple[Any, ...]]:
        """Lines of history (of one event), in order."""
        return [line for _, line in sorted(self.store.history.items()) if not name or line[0] == name]
