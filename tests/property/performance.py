"""Plays a script on many runs: in the order of its times, as the reference does, or in any order that may happen."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple
from uuid import UUID

from partita.domain.payload import Payload
from partita.domain.state.effects import TimerKey
from partita.domain.state.events import (
    AttemptTimedOut,
    CancelRequested,
    ControlsApplied,
    DeadlineReached,
    Event,
    LeaseLost,
    ScheduleToStartExpired,
    SignalReceived,
    TaskCompleted,
    TaskFailed,
    TimerDue,
)
from partita.domain.state.rows import ErrorInfo, NodeKey, TimerKind
from tests.property.memory import Memory
from tests.property.realm import Realm
from tests.property.reference.script import ASKED_AFTER_MS, Act, Path, Script, error_of, result_of

MOST_STEPS = 3_000
Choose = Callable[[int], int]


class Due(NamedTuple):
    """Something that will happen; of two at the same time the smaller goes first."""

    at: int
    kind: str
    path: Path
    node: str
    item: int


class Performance:
    """A realm and a script."""

    def __init__(self, realm: Realm, script: Script) -> None:
        self.realm, self.script = realm, script
        self.untaken: dict[tuple[Path, NodeKey, int], int] = {}
        """Since when attempts have been ready that no worker takes."""
        self.acts = sorted(script.acts, key=lambda act: act.at)

    def start(self) -> None:
        """Start the root run."""
        self.realm.start(self.script.input)

    # As the script says ----------------------------------------------------------------------------------------------

    def play(self) -> None:
        """Everything in the order of its times; workers take what is ready at once, messages arrive at once."""
        self.start()
        for _ in range(MOST_STEPS):
            self.drain()
            self.realm.check_between()
            if not self.step():
                break
        assert self.realm.finished, f"not every run ended: {self.unfinished()}"

    def drain(self, choose: Choose | None = None) -> None:
        """Apply messages until there are none; hand out what is ready."""
        while self.realm.inbox:
            positions = self.realm.deliverable()
            self.realm.deliver(positions[choose(len(positions))] if choose is not None else 0)
        self.claim()

    def claim(self) -> None:
        """Workers take what is ready."""
        for store in self.realm.stores.values():
            path = self.realm.path(store)
            for key, entry in sorted(store.ready.items()):
                if self.script.outcome(path, key.node, key.index, entry.attempt).how == "untaken":
                    self.untaken.setdefault((path, key, entry.attempt), self.realm.milliseconds(self.realm.now))
                else:
                    store.claim(key, self.realm.now)

    def step(self) -> bool:
        """The next thing that is due; says whether there was one."""
        dues = self.dues()
        first = min(dues, default=None)
        if self.acts and (first is None or self.acts[0].at <= first.at):
            if first is None and self.realm.run(self.realm.root).finished_at is not None:
                return False
            self.act(self.acts.pop(0))
            return True
        if first is None:
            return False
        self.realm.set_time(first.at)
        self.happen(first)
        return True

    def dues(self) -> list[Due]:
        """Attempts and timers, with the times when they end."""
        found: list[Due] = []
        for store in self.realm.stores.values():
            path = self.realm.path(store)
            for key, lease in store.leases.items():
                outcome = self.script.outcome(path, key.node, key.index, lease.attempt)
                at = self.realm.milliseconds(lease.since) + outcome.after
                found.append(Due(at, "attempt", path, key.node, key.index))
            for key, entry in store.ready.items():
                since = self.untaken.get((path, key, entry.attempt))
                if since is not None:
                    after = self.script.outcome(path, key.node, key.index, entry.attempt).after
                    found.append(Due(since + after, "attempt", path, key.node, key.index))
            for timer_key, timer in store.timers.items():
                if timer.remaining_ms is None:
                    at = self.realm.milliseconds(timer.fire_at)
                    found.append(Due(at, timer_key.kind.value, path, timer_key.node, timer_key.index))
        return found

    def happen(self, due: Due) -> None:
        """An attempt ends or a timer fires."""
        store = self.store(due.path)
        self.realm.send(self.realm.run(store).id, self.event_of_due(store, due))

    def event_of_due(self, store: Memory, due: Due) -> Event:
        """The event of something that is due, with its lease or timer taken away as the fence does."""
        return self.report(store, NodeKey(due.node, due.item)) if due.kind == "attempt" else self._fire(store, due)

    @staticmethod
    def _fire(store: Memory, due: Due) -> Event:
        kind = TimerKind(due.kind)
        del store.timers[TimerKey(kind, due.node, due.item)]
        if kind is TimerKind.DEADLINE:
            return DeadlineReached()
        return TimerDue(kind=kind, node=due.node, index=due.item)

    def report(self, store: Memory, key: NodeKey) -> Event:
        """What the worker of an attempt reports; ends its lease. No worker may have taken it."""
        if key in store.ready:
            entry = store.ready.pop(key)
            return ScheduleToStartExpired(node=key.node, index=key.index, attempt=entry.attempt)
        lease = store.leases.pop(key)
        how = self.script.outcome(self.realm.path(store), key.node, key.index, lease.attempt).how
        node, index, attempt, since = key.node, key.index, lease.attempt, lease.since
        if how == "ok":
            output = Payload.of(result_of(node, index, attempt))
            return TaskCompleted(
                node=node, index=index, attempt=attempt, output=output, worker="worker-1", started_at=since
            )
        if how in ("lost", "timeout"):
            made = LeaseLost if how == "lost" else AttemptTimedOut
            return made(node=node, index=index, attempt=attempt, worker="worker-1", started_at=since)
        reported = error_of(how)
        asked = how == "asked"
        return TaskFailed(
            node=node,
            index=index,
            attempt=attempt,
            error=ErrorInfo(reported["type"], reported["message"]),
            worker="worker-1",
            started_at=since,
            retryable=asked,
            retry_after_ms=ASKED_AFTER_MS if asked else None,
        )

    def act(self, act: Act) -> None:
        """Somebody does something to the root."""
        self.realm.set_time(act.at)
        if self.realm.run(self.realm.root).finished_at is not None:
            return
        for run_id, store in [*self.realm.stores.items()]:
            run = self.realm.run(store)
            if self.realm.path(store) == act.path and run.finished_at is None and run.mailbox_id in (None, run_id):
                self.realm.send(run_id, self.event_of(act))

    def event_of(self, act: Act) -> Event:
        """The event of an act."""
        match act.what:
            case "signal":
                return SignalReceived(id=f"s{len(self.acts)}", name=act.name, payload=Payload.of(act.payload))
            case "cancelNodes" if act.at % 2:
                return CancelRequested(nodes=tuple(act.name.split()))
            case "cancelNodes":
                generation = self.realm.run(self.realm.root).cr_generation + 1
                return ControlsApplied(cr_generation=generation, cancel_nodes=tuple(act.name.split()))
            case _:
                return CancelRequested(mode="Now" if act.what == "now" else "Graceful")

    # In any order ----------------------------------------------------------------------------------------------------

    def play_in_any_order(self, choose: Choose) -> None:
        """Attempts end, timers fire and messages arrive in the chosen order, whatever their times are."""
        self.start()
        for _ in range(MOST_STEPS):
            self.claim()
            dues = sorted(self.dues())
            attempts = [due for due in dues if due.kind == "attempt"]
            timers = [due for due in dues if due.kind != "attempt"][:1]
            messages = self.realm.deliverable()
            count = len(attempts) + len(timers) + len(messages)
            if not count:
                break
            chosen = choose(count)
            if chosen < len(messages):
                self.realm.deliver(messages[chosen])
                continue
            due = [*attempts, *timers][chosen - len(messages)]
            if due.kind != "attempt":
                self.realm.set_time(due.at)
            self.happen(due)
        assert self.realm.finished, f"not every run ended: {self.unfinished()}"

    # Finding ---------------------------------------------------------------------------------------------------------

    def store(self, path: Path) -> Memory:
        """The store of a run."""
        return next(store for store in self.realm.stores.values() if self.realm.path(store) == path)

    def unfinished(self) -> list[tuple[Path, UUID, list[str]]]:
        """Runs that have not ended, and their rows."""
        return [
            (self.realm.path(store), run_id, [f"{key}: {row.state}" for key, row in store.tasks.items()])
            for run_id, store in self.realm.stores.items()
            if self.realm.run(store).finished_at is None
        ]
