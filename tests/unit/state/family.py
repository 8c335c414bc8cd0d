"""Several runs in one world without I/O: each is a World of its own; what they send each other is delivered in order.

The smallest driver that children, their controls and shared mailboxes can be tested with.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any
from uuid import UUID

from partita.domain.model import Definition
from partita.domain.state.effects import ChildStart, Message
from partita.domain.state.events import ChildFinished, Event, Reply, RunStarted
from partita.domain.state.rows import ErrorInfo, NodeKey, RunStatus
from partita.domain.state.slices import DefinitionName, Limits, Need, Slice
from tests.property.memory import Memory
from tests.property.world import EPOCH, RUN_ID, Mode, World


class Shelf(Memory):
    """A store that looks versions up for a run that is being started, too."""

    def load(self, need: Need, signal_ids: frozenset[str] = frozenset()) -> Slice:
        """Only what is needed."""
        slice_ = super().load(need, signal_ids)
        slice_.versions = {name: self.lookup(name) for name in need.versions}
        return slice_


class Member(World):
    """A run whose messages reach its family."""

    def __init__(self, family: Family, definition: Definition) -> None:
        super().__init__(definition, mode=family.mode, limits=family.limits)
        self.family = family
        self.now = family.now
        self.store = Shelf(definition)
        self.store.lookup = family.lookup

    def send(self, event: Event) -> Reply:
        """One event in a transaction of its own, and what follows from it."""
        reply = self.apply(event)
        self.family.deliver()
        return reply

    def apply(self, event: Event) -> Reply:
        """One event in a transaction of its own; what it sends waits in the inbox."""
        reply = super().send(event)
        assert self.last is not None
        self.family.inbox.extend(self.last.messages)
        self.family.log.extend(self.last.messages)
        return reply

    def child_id(self, node: str, index: int = 0) -> UUID:
        """The id of the child of a row's current attempt."""
        detail = self.store.tasks[NodeKey(node, index)].detail
        assert detail is not None
        assert detail.child is not None
        return detail.child

    def child(self, node: str, index: int = 0) -> Member:
        """The child of a row's current attempt."""
        return self.family.runs[self.child_id(node, index)]


class Family:
    """A root run and its descendants."""

    def __init__(
        self, definition: Definition, *others: Definition, mode: Mode = "sliced", limits: Limits | None = None
    ) -> None:
        """``others`` are definitions that children run, each of version 1 and deployed."""
        self.mode: Mode = mode
        self.limits = limits or Limits()
        self.definitions = {(one.name, 1): one for one in (definition, *others)}
        self.deployed = {one.name: 1 for one in (definition, *others)}
        self.now = EPOCH
        self.runs: dict[UUID, Member] = {}
        self.inbox: deque[Message] = deque()
        self.log: list[Message] = []
        self.held = False
        """Messages wait until it is unset and ``deliver`` is called."""
        self.root = self._member(RUN_ID, definition)

    def lookup(self, name: DefinitionName) -> int:
        """The version that a child would be started with; 0 for none."""
        version = self.deployed.get(name.name, 0) if name.version is None else name.version
        return version if (name.name, version) in self.definitions else 0

    def _member(self, run_id: UUID, definition: Definition) -> Member:
        member = self.runs[run_id] = Member(self, definition)
        return member

    def deliver(self) -> None:
        """Apply messages in order, and those that follow from them."""
        while self.inbox and not self.held:
            self.deliver_one()

    def deliver_one(self, kind: type = object) -> None:
        """Apply the oldest message (of this kind)."""
        message = next(one for one in self.inbox if isinstance(one.event, kind))
        self.inbox.remove(message)
        if isinstance(message.event, ChildStart):
            self._start(message.run_id, message.event)
        elif message.run_id in self.runs:
            self.runs[message.run_id].apply(message.event)

    def _start(self, run_id: UUID, start: ChildStart) -> None:
        definition = self.definitions[start.definition, start.version].flow(start.subflow)
        started = RunStarted(
            run_id=run_id,
            namespace="default",
            name="",
            definition=start.definition,
            version=start.version,
            input=start.input,
            priority=start.priority,
            timeout_ms=start.timeout_ms,
            subflow=start.subflow,
            parent=start.parent,
            mailbox_id=start.mailbox_id,
            depth=start.depth,
        )
        self._member(run_id, definition).apply(started)

    def start(self, given: Any = None, **more: Any) -> Member:
        """Start the root."""
        self.root.start(given, **more)
        return self.root

    def pass_time(self, seconds: float) -> None:
        """Let time pass for every run without anybody noticing."""
        for member in self.runs.values():
            member.pass_time(seconds)
        self.now = self.root.now

    def tick(self, seconds: float = 0) -> None:
        """Let time pass, and apply every timer that falls due."""
        self.pass_time(seconds)
        for member in list(self.runs.values()):
            member.tick()

    def refuse_child(self, member: Member, node: str, kind: str) -> None:
        """The child of a node could not be started, as the shell reports it."""
        child = member.child_id(node)
        member.send(
            ChildFinished(
                node=node,
                index=0,
                attempt=member.row(node).attempt,
                child=child,
                status=RunStatus.FAILED,
                error=ErrorInfo(kind, f"{kind} happened"),
            )
        )

    def sent(self, kind: type, *, where: Callable[[Any], bool] = lambda _: True) -> list[Any]:
        """Every message of this kind that was ever sent, in order."""
        return [one.event for one in self.log if isinstance(one.event, kind) and where(one.event)]
