"""A store in memory that applies effects as the database does: rows by key, deletions before insertions.

Invariant: a payload that is None in an after-image leaves the stored one; slices are loaded as the engine loads them,
whole or only what a decision asked for.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime

from partita.domain.model import Definition
from partita.domain.payload import Payload
from partita.domain.state.copies import copy_task
from partita.domain.state.effects import Effects, Enqueue, Need, Slice, TimerKey
from partita.domain.state.rows import FROZEN, NodeKey, NodeState, RunRow, SignalRow, TaskRow, TimerRow, WaitRow


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

    def apply(self, effects: Effects) -> None:
        """Write effects in the order of the database's statements."""
        if effects.new_run:
            assert self.run is None
            self.input = effects.input
        self.run = effects.run
        if effects.output is not None:
            self.output = effects.output
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
            self.history[line.seq] = (line.event, line.node, line.attempt, line.who, line.error, line.details)

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
        self.waits = [wait for wait in self.waits if NodeKey(wait.node, wait.index) not in effects.drop_waits]

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
            return Slice(self.definition, None)
        keys = set(self.tasks) if need.whole else need.rows
        slice_ = Slice(self.definition, self.run, self.input if need.input else None, whole=need.whole)
        slice_.outputs = set(need.outputs)
        slice_.absent = {key for key in need.rows if key not in self.tasks}
        slice_.tasks = {key: self._loaded(key, key in need.outputs) for key in keys if key in self.tasks}
        if need.mailbox:
            slice_.timers = list(self.timers.values())
            slice_.waits = list(self.waits)
            slice_.signals = [signal.row for signal in self.signals.values() if signal.open]
            slice_.leased = set(self.leases)
            slice_.seen_signal_ids = {signal_id for signal_id in signal_ids if signal_id in self.signals}
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
            "waits": sorted((wait.name, wait.node) for wait in self.waits),
            "signals": {name: (one.consumed_by, one.refused) for name, one in self.signals.items()},
        }

    def check(self) -> None:
        """The invariants that hold after every transaction."""
        run = self.run
        assert run is not None
        states = [row.state for row in self.tasks.values()]
        active = sum(state in (NodeState.QUEUED, NodeState.WAITING) for state in states)
        settled = sum(
            state in (NodeState.COMPLETED, NodeState.FAILED, NodeState.SKIPPED, NodeState.CANCELLED) for state in states
        )
        assert run.active == active, f"active is {run.active}, counted {active}"
        assert run.done == settled, f"done is {run.done}, counted {settled}"
        if run.finished_at is not None:
            left = [*self.ready, *self.leases, *self.timers, *self.waits]
            assert not left, f"a finished run has work: {left}"
            assert active == 0
            return
        self._check_alive(run)

    def _check_alive(self, run: RunRow) -> None:
        suspended = run.status.value == "Suspended"
        parked = any(row.fired and row.state is NodeState.PENDING for row in self.tasks.values())
        assert not parked or suspended, "a node is parked although the run is not suspended"
        timers = {key.node for key in self.timers}
        waits = {wait.node for wait in self.waits}
        for key, row in self.tasks.items():
            if row.state is NodeState.QUEUED:
                owned = (key in self.ready) + (key in self.leases)
                assert owned == 1 or (suspended and owned == 0), f"{key} has {owned} ready rows and leases"
            elif row.state is NodeState.WAITING:
                assert key.node in timers or key.node in waits, f"{key} waits for nothing"
            else:
                assert key not in self.ready, f"{key} is ready and {row.state}"
                assert key not in self.leases, f"{key} is leased and {row.state}"
                assert key.node not in timers | waits, f"{key} has a timer or wait and is {row.state}"
        alive = self.ready or self.leases or self.timers or self.waits
        assert alive or suspended, "an unfinished run waits for nothing"
        for timer in self.timers.values():
            frozen = suspended and timer.kind.value != "start"
            assert (timer.fire_at == FROZEN) == frozen, f"{timer} of a run that is {run.status}"


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
    )
