"""Plays a script in any order that may happen, with what people and crashes add to it.

Times are ignored but for timers among themselves: an attempt may take no time or for ever. So a result can be compared
with the reference only where the reference says that times do not matter.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from partita.domain.payload import Payload
from partita.domain.state.events import (
    CancelRequested,
    ChildFinished,
    Continued,
    Event,
    LateResult,
    LeaseLost,
    ResumeRequested,
    SignalReceived,
    SuspendRequested,
    TaskCompleted,
    TaskFailed,
)
from partita.domain.state.rows import ErrorInfo, NodeKey, NodeState, RunStatus, Stage
from tests.property.memory import Memory
from tests.property.performance import Due, Performance
from tests.property.realm import ROOT, Mail, Realm
from tests.property.reference import Script

MOST_MOVES = 3_000
Move = Callable[[], None]


class Wandering(Performance):
    """A realm in which anything happens next that may."""

    def __init__(self, realm: Realm, script: Script, random: Random) -> None:
        super().__init__(realm, script)
        self.random = random
        self.sent: list[Mail] = []
        """What was applied before and may be sent again."""

    def wander(self, most: int = MOST_MOVES, disturb: Callable[[], None] | None = None) -> None:
        """Make so many moves, or fewer if everything ends; ``disturb`` may act between them."""
        for _ in range(most):
            self.claim()
            moves = self.moves()
            if not moves:
                return
            self.random.choice(moves)()
            if disturb is not None:
                disturb()

    def moves(self) -> list[Move]:
        """What may happen next: attempts end, the earliest timer fires, messages arrive."""
        dues = sorted(self.dues())
        attempts = [due for due in dues if due.kind == "attempt"]
        timers = [due for due in dues if due.kind != "attempt"][:1]
        found: list[Move] = [self._move(due) for due in [*attempts, *timers]]
        return found + [self._delivery(position) for position in self.realm.deliverable()]

    def _move(self, due: Due) -> Move:
        def happen() -> None:
            if due.kind != "attempt":
                self.realm.set_time(due.at)
            self.happen(due)

        return happen

    def _delivery(self, position: int) -> Move:
        def deliver() -> None:
            self.sent.append(self.realm.inbox[position])
            self.realm.deliver(position)

        return deliver

    # What people and crashes add -------------------------------------------------------------------------------------

    def pause(self) -> None:
        """The root is suspended or resumed, seldom."""
        root = self.realm.run(self.realm.root)
        if root.finished_at is not None or self.random.randrange(4):
            return
        suspended = root.status is RunStatus.SUSPENDED
        self.realm.send(ROOT, ResumeRequested() if suspended else SuspendRequested())

    def resume(self) -> None:
        """The root is resumed if it is suspended."""
        if self.realm.run(self.realm.root).status is RunStatus.SUSPENDED:
            self.realm.send(ROOT, ResumeRequested())

    def cancel(self, *, now: bool = False) -> None:
        """The root is cancelled."""
        self.realm.send(ROOT, CancelRequested(mode="Now" if now else "Graceful"))

    def repeat(self) -> None:
        """Something that was applied, or is too late, comes once more: it must change nothing."""
        if self.random.randrange(3):
            return
        store = self.random.choice([*self.realm.stores.values()])
        if store.run is None or not store.tasks:
            return
        for event in self._too_late(store):
            before = store.image()
            reply = self.realm.send(self.realm.run(store).id, event)
            assert store.image() == before, f"{event} changed something"
            assert reply.outcome != "applied" or isinstance(event, Continued), f"{event} was applied"

    def _too_late(self, store: Memory) -> list[Event]:
        key = self.random.choice(sorted(store.tasks))
        row = store.tasks[key]
        now, node, index = self.realm.now, key.node, key.index
        settled = row.state not in (NodeState.QUEUED, NodeState.WAITING)
        attempt = row.attempt if settled else row.attempt + 1
        error = ErrorInfo("boom", "late")
        common = {"node": node, "index": index, "attempt": attempt, "worker": "worker-2"}
        found: list[Event] = [
            TaskCompleted(output=Payload.of("late"), started_at=now, **common),  # type: ignore[arg-type]  # as above
            TaskFailed(error=error, started_at=now, **common),  # type: ignore[arg-type]  # as above
            LeaseLost(started_at=now, **common),  # type: ignore[arg-type]  # as above
            ChildFinished(
                node=node,
                index=index,
                attempt=attempt,
                child=ROOT,
                status=RunStatus.SUCCEEDED,
                output=Payload.of("late"),
            ),
        ]
        if settled:
            found.append(LateResult(output=Payload.of("late"), **common))  # type: ignore[arg-type]  # as above
        known = [one.row for one in store.signals.values()]
        return found + [SignalReceived(id=one.id, name=one.name, payload=one.payload) for one in known[:1]]

    def give_back(self) -> None:
        """A worker hands an attempt back: nothing is spent, unless undo waits for the attempt."""
        stores = [one for one in self.realm.stores.values() if self.realm.run(one).stage is not Stage.UNDO]
        held = [(store, key) for store in stores for key in sorted(store.leases)]
        if held and not self.random.randrange(4):
            store, key = self.random.choice(held)
            self._hand_back(store, key)

    def _hand_back(self, store: Memory, key: NodeKey) -> None:
        lease = store.leases.pop(key)
        event = LeaseLost(
            node=key.node,
            index=key.index,
            attempt=lease.attempt,
            worker="worker-1",
            started_at=lease.since,
            handed_back=True,
        )
        self.realm.send(self.realm.run(store).id, event)
