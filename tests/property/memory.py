"""A store in memory that applies effects as the database does: rows by key, deletions before insertions.

Invariant: a payload that is None in an after-image leaves the stored one; slices are loaded as the engine loads them,
whole or only what a decision asked for.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime

from partita.domain.model import Definition
from partita.domain.payload import Payload
from partita.domain.state.copies import copy_task
from partita.domain.state.effects import ChildWait, Effects, Enqueue, TimerKey
from partita.domain.state.events import Continued, Event
from partita.domain.state.rows import NodeKey, RunRow, SignalRow, TaskRow, TimerRow, WaitRow
from partita.domain.state.slices import DefinitionName, Need, Slice
from tests.property.checks import check_run


@dataclass
class StoredSignal:
    """A recorded signal and what became of it."""

    row: SignalRow
    consumed_by: str = ""
    refused: str = ""

    @property
    def open(self) -> bool:
        """Whether a wait may still take it."""
        return not self.consumed_by and not self.refused


@dataclass(frozen=True)
class Lease:
    """An attempt that a worker holds."""

    attempt: int
    since: datetime


@dataclass
class Memory:
    """Everything stored of one run."""

    definition: Definition
    run: RunRow | None = None
    input: Payload | None = None
    output: Payload | None = None
    tasks: dict[NodeKey, TaskRow] = field(default_factory=dict)
    ready: dict[NodeKey, Enqueue] = field(default_factory=dict)
    leases: dict[NodeKey, Lease] = field(default_factory=dict)
    timers: dict[TimerKey, TimerRow] = field(default_factory=dict)
    waits: list[WaitRow] = field(default_factory=list)
    signals: dict[str, StoredSignal] = field(default_factory=dict)
    history: dict[int, tuple[object, ...]] = field(default_factory=dict)
    left: list[Event] = field(default_factory=list)
    """What the run has left to a transaction of its own and has not been applied yet."""
    lookup: Callable[[DefinitionName], int] = lambda _: 0
    """The version of a definition that a child would be started with; 0: none."""

    def apply(self, effects: Effects) -> None:
        """Write effects in the order of the database's statements."""
        if effects.new_run:
            assert self.run is None
            self.input = effects.input
        self.run = effects.run
        if effects.output is not None:
            self.output = effects.output
        self.left += [one.event for one in effects.messages if isinstance(one.event, Continued)]
        self._delete(effects)
        for key, row in effects.tasks.items():
            self.tasks[key] = self._stored(self.tasks.get(key), row)
        for key, entry in effects.enqueue.items():
            assert key not in self.ready, f"{key} is ready twice"
            assert key not in self.leases, f"{key} is ready while it is leased"
            self.ready[key] = entry
        self.timers.update(effects.timers)
        self.waits.extend(effects.waits)
        self._write_signals(effects)
        for line in effects.history:
            assert line.seq not in self.history, f"history has two lines {line.seq}"
            self.history[line.seq] = (
                line.event,
                line.node,
                line.attempt,
                line.who,
                line.error,
                line.details,
                line.index,
            )

    def _delete(self, effects: Effects) -> None:
        if effects.clear:
            self.ready.clear()
            self.leases.clear()
            self.timers.clear()
            self.waits.clear()
        if effects.withdraw:
            self.ready.clear()
        for key in effects.drop_work:
            self.ready.pop(key, None)
            self.leases.pop(key, None)
        for timer in effects.drop_timers:
            self.timers.pop(timer, None)
        self.waits = [wait for wait in self.waits if not _dropped(wait, effects)]

    def _write_signals(self, effects: Effects) -> None:
        for recorded in effects.record_signals:
            assert recorded.row.id not in self.signals, f"signal {recorded.row.id} is recorded twice"
            self.signals[recorded.row.id] = StoredSignal(recorded.row, recorded.consumed_by, recorded.refused)
        for consumed in effects.consumed:
            signal = self.signals[consumed.signal_id]
            assert signal.open, f"signal {consumed.signal_id} is taken twice"
            self.signals[consumed.signal_id] = replace(
                signal, consumed_by="" if consumed.refused else consumed.node, refused=consumed.refused
            )

    @staticmethod
    def _stored(before: TaskRow | None, after: TaskRow) -> TaskRow:
        row = copy_task(after)
        if before is not None:
            row.input = after.input or before.input
            row.output = after.output or before.output
            row.event = after.event or before.event
        return row

    def whole(self) -> Slice:
        """Everything, as a slice."""
        if self.run is None:
            return Slice(self.definition, None)
        need = Need(whole=True, input=True, mailbox=True, outputs=set(self.tasks))
        return self.load(need)

    def load(self, need: Need, signal_ids: frozenset[str] = frozenset()) -> Slice:
        """Only what is needed."""
        if self.run is None:
            found = {name: self.lookup(name) for name in need.versions}
            return Slice(self.definition, None, versions=found)
        keys = set(self.tasks) if need.whole else need.rows | need.outputs
        slice_ = Slice(self.definition, self.run, self.input if need.input else None, whole=need.whole)
        slice_.output = self.output if need.input else None
        slice_.outputs = set(need.outputs)
        slice_.absent = {key for key in need.rows | need.outputs if key not in self.tasks}
        slice_.tasks = {key: self._loaded(key, key in need.outputs) for key in keys if key in self.tasks}
        if need.mailbox:
            slice_.timers = list(self.timers.values())
            slice_.waits = list(self.waits)
            slice_.signals = [signal.row for signal in self.signals.values() if signal.open]
            slice_.leased = set(self.leases)
            slice_.seen_signal_ids = {signal_id for signal_id in signal_ids if signal_id in self.signals}
        slice_.versions = {name: self.lookup(name) for name in need.versions}
        return slice_

    def _loaded(self, key: NodeKey, payloads: bool) -> TaskRow:
        row = copy_task(self.tasks[key])
        if not payloads:
            row.input = row.output = row.event = None
        return row

    def claim(self, key: NodeKey, now: datetime) -> Enqueue:
        """A worker takes ready work."""
        entry = self.ready.pop(key)
        self.leases[key] = Lease(entry.attempt, now)
        return entry

    def image(self) -> dict[str, object]:
        """What two stores that went different ways must have in common: everything but sequence numbers and times."""
        assert self.run is not None
        return {
            "run": (self.run.status, self.run.reason, self.run.active, self.run.done, self.run.error),
            "output": self.output,
            "tasks": {key: _task_image(row) for key, row in self.tasks.items()},
            "ready": {key: entry.attempt for key, entry in self.ready.items()},
            "leases": {key: lease.attempt for key, lease in self.leases.items()},
            "timers": {key: (timer.fire_at, timer.remaining_ms) for key, timer in self.timers.items()},
            "waits": sorted((wait.name, wait.node, str(wait.child or "")) for wait in self.waits),
            "signals": {name: (one.consumed_by, one.refused) for name, one in self.signals.items()},
        }

    def check(self) -> None:
        """The invariants that hold after every transaction, as far as one run can tell."""
        check_run(self)


def _dropped(wait: WaitRow, effects: Effects) -> bool:
    if wait.child is None:
        return NodeKey(wait.node, wait.index) in effects.drop_waits
    return ChildWait(wait.child, wait.node, wait.index) in effects.drop_child_waits


def _task_image(row: TaskRow) -> tuple[object, ...]:
    return (
        row.state,
        row.attempt,
        row.route,
        row.stepped_over,
        row.error,
        row.output,
        row.input,
        dict(row.retries),
        row.edges_live,
        row.detail,
    )
