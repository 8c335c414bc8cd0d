"""Many runs in a world without I/O: each is decided alone, and messages between them wait in an inbox.

Invariant: a message is applied exactly once (it is deleted by the transaction that applies it); messages to one run
keep their order, those to different runs may be applied in any interleaving. After every transaction all invariants
are checked, those of one run and those between runs.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from uuid import UUID

from partita.domain.errors import InvalidInputError
from partita.domain.manifest import prepare_input
from partita.domain.model import Definition
from partita.domain.payload import Payload
from partita.domain.state.effects import ChildStart, Effects, Message
from partita.domain.state.events import ChildFinished, Event, Reply, RunStarted
from partita.domain.state.rows import GROUP, ErrorInfo, NodeKey, NodeState, RunRow, RunStatus
from partita.domain.state.slices import Context, DefinitionName, Limits
from tests.property.deciding import decide_batch, decide_on
from tests.property.memory import Memory
from tests.property.reference.children import placeholder
from tests.property.reference.script import Path

ROOT = UUID("0190a0b0-0000-7000-8000-000000000001")
EPOCH = datetime(2030, 1, 1, tzinfo=UTC)
Catalogue = Mapping[str, Mapping[int, Definition]]


@dataclass(frozen=True)
class Mail:
    """A row of the inbox."""

    run_id: UUID
    content: Event | ChildStart


class Realm:
    """Runs, their stores, the inbox between them, and one clock."""

    def __init__(
        self,
        definition: Definition,
        *,
        catalogue: Catalogue | None = None,
        sliced: bool = False,
        bounds: Mapping[str, int] | None = None,
    ) -> None:
        self.catalogue: Catalogue = {definition.name: {1: definition}, **(catalogue or {})}
        self.sliced = sliced
        self.limits = Limits(child_depth=4, **(bounds or {}))
        self.now = EPOCH
        self.stores: dict[UUID, Memory] = {}
        self.paths: dict[UUID, Path] = {ROOT: ()}
        self.inbox: list[Mail] = []
        self.transactions = 0
        self.definition = definition

    # Deciding --------------------------------------------------------------------------------------------------------

    def start(self, given: object) -> None:
        """Start the root run."""
        event = RunStarted(
            run_id=ROOT,
            namespace="default",
            name="example-1",
            definition=self.definition.name,
            version=1,
            input=Payload.of(given),
        )
        self.stores[ROOT] = Memory(self.definition, lookup=self._lookup)
        self.send(ROOT, event)

    def send(self, run_id: UUID, event: Event) -> Reply:
        """One event in a transaction of its own."""
        store = self.stores[run_id]
        before = store.run
        effects, _ = decide_on(store, event, Context(self.now, self.limits), sliced=self.sliced)
        self._apply(store, effects)
        if before is not None and before.finished_at is not None:
            assert store.run is not None
            assert store.run.status is before.status, "a finished run changed"
        return effects.reply

    def send_batch(self, run_id: UUID, events: Sequence[Event]) -> list[Reply]:
        """Several events of one run in one transaction."""
        store = self.stores[run_id]
        effects, replies = decide_batch(store, events, Context(self.now, self.limits))
        self._apply(store, effects)
        return replies

    def _apply(self, store: Memory, effects: Effects) -> None:
        store.apply(effects)
        for message in effects.messages:
            self._post(store, effects, message)
        store.check()
        self.transactions += 1

    def _post(self, store: Memory, effects: Effects, message: Message) -> None:
        self.inbox.append(Mail(message.run_id, message.event))
        if isinstance(message.event, ChildStart) and message.run_id not in self.paths:
            self.paths[message.run_id] = (*self.path(store), self._step(effects, message))

    @staticmethod
    def _step(effects: Effects, message: Message) -> tuple[str, int, int]:
        assert isinstance(message.event, ChildStart)
        if (parent := message.event.parent) is not None:
            return parent.node, parent.index, parent.attempt
        for key, row in effects.tasks.items():
            if key.index != GROUP and row.output is not None and row.output.value == {"runId": str(message.run_id)}:
                return key.node, key.index, row.attempt
        raise AssertionError("a detached child is not the output of a node")

    def deliver(self, position: int = 0) -> None:
        """Apply a message; it must be the first of its target."""
        mail = self.inbox[position]
        assert mail.run_id not in {one.run_id for one in self.inbox[:position]}, "out of order"
        del self.inbox[position]
        if isinstance(mail.content, ChildStart):
            self._start_child(mail.run_id, mail.content)
        elif mail.run_id in self.stores:
            left = self.stores[mail.run_id].left
            if mail.content in left:
                left.remove(mail.content)
            self.send(mail.run_id, mail.content)

    def deliverable(self) -> list[int]:
        """Positions of messages that may be next: the first of each target."""
        first: dict[UUID, int] = {}
        for position, mail in enumerate(self.inbox):
            first.setdefault(mail.run_id, position)
        return list(first.values())

    def _start_child(self, run_id: UUID, child: ChildStart) -> None:
        definition = self.catalogue[child.definition][child.version].flow(child.subflow)
        try:
            given = child.input if child.subflow else prepare_input(definition, child.input.value)
        except InvalidInputError as error:
            self._refuse(run_id, child, ErrorInfo("invalid_input", str(error)))
            return
        event = RunStarted(
            run_id=run_id,
            namespace="default",
            name="",
            definition=child.definition,
            version=child.version,
            input=given,
            priority=child.priority,
            timeout_ms=child.timeout_ms,
            subflow=child.subflow,
            parent=child.parent,
            mailbox_id=child.mailbox_id,
            depth=child.depth,
        )
        assert run_id not in self.stores, "a child is started twice"
        self.stores[run_id] = Memory(definition, lookup=self._lookup)
        self.send(run_id, event)

    def _refuse(self, run_id: UUID, child: ChildStart, error: ErrorInfo) -> None:
        """A child cannot be started: its parent is told in the same transaction."""
        if child.parent is not None:
            failed = RunStatus.FAILED
            parent = child.parent
            event = ChildFinished(
                node=parent.node, index=parent.index, attempt=parent.attempt, child=run_id, status=failed, error=error
            )
            self.inbox.append(Mail(parent.run_id, event))

    def _lookup(self, wanted: DefinitionName) -> int:
        versions = self.catalogue.get(wanted.name, {})
        version = wanted.version or max(versions, default=0)
        return version if version in versions else 0

    # Time ------------------------------------------------------------------------------------------------------------

    def milliseconds(self, moment: datetime) -> int:
        """Since the beginning."""
        return (moment - EPOCH) // timedelta(milliseconds=1)

    def set_time(self, milliseconds: int) -> None:
        """Let time pass."""
        self.now = max(self.now, EPOCH + timedelta(milliseconds=milliseconds))

    # What can be seen ------------------------------------------------------------------------------------------------

    def path(self, store: Memory) -> Path:
        """Where a run is in the tree."""
        return self.paths[self.run(store).id]

    @staticmethod
    def run(store: Memory) -> RunRow:
        """A store's run."""
        assert store.run is not None
        return store.run

    @property
    def root(self) -> Memory:
        """The root's store."""
        return self.stores[ROOT]

    @property
    def finished(self) -> bool:
        """Whether every run has ended, and nothing is on its way."""
        return not self.inbox and all(self.run(store).finished_at is not None for store in self.stores.values())

    def named(self, value: object) -> object:
        """A value with the ids of runs replaced by their places."""
        text = json.dumps(value)
        for run_id, path in self.paths.items():
            text = text.replace(f'"{run_id}"', json.dumps(placeholder(path)))
        return json.loads(text)

    def check_between(self) -> None:
        """The invariants between runs, at a moment when no message is on its way."""
        assert not self.inbox
        for store in self.stores.values():
            self._check_waits(store)
            for key, row in store.tasks.items():
                if row.state is NodeState.WAITING:
                    self._check_waiting(store, key)

    def _check_waits(self, store: Memory) -> None:
        for wait in store.waits:
            if wait.child is not None:
                row = self.stores[wait.child].tasks[NodeKey(wait.node, wait.index)]
                assert row.state is NodeState.WAITING, f"a wait of a child's node that is {row.state} is left"

    def _check_waiting(self, store: Memory, key: NodeKey) -> None:
        row, run = store.tasks[key], self.run(store)
        if row.kind == "workflow" and key.index >= 0 and not any(timer.node == key.node for timer in store.timers):
            assert row.detail is not None
            assert row.detail.child is not None
            child = self.run(self.stores[row.detail.child])
            assert child.finished_at is None, f"{key} waits for a child that has ended"
            assert child.parent is not None
            assert (child.parent.run_id, child.parent.attempt) == (run.id, row.attempt)
        if row.kind == "waitForEvent" and run.mailbox_id not in (None, run.id):
            assert run.mailbox_id is not None
            standing = [wait for wait in self.stores[run.mailbox_id].waits if wait.child == run.id]
            assert any(wait.node == key.node for wait in standing), f"{key} waits for nothing"
