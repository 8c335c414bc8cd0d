"""The working state of one decision: what it has read (``Reading``) and what it changes.

Invariant: every row that a decision changes is copied once, into ``tasks``. A draft with needs is thrown away.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from uuid import UUID

from partita.domain.payload import Payload
from partita.domain.state.combine import settle_recorded
from partita.domain.state.copies import copy_run, copy_task, new_task
from partita.domain.state.effects import ChildStart, ChildWait, Consumed, Effects, HistoryEntry, Message, TimerKey
from partita.domain.state.events import Continued, Event, LoopContinued, MailboxContinued, ParkedReleased, Reply
from partita.domain.state.plan import NodePlan
from partita.domain.state.reading import Reading
from partita.domain.state.rows import (
    ACTIVE,
    FROZEN,
    GROUP,
    Detail,
    ErrorInfo,
    NodeKey,
    NodeState,
    RunRow,
    SignalRow,
    TaskRow,
    TimerKind,
    TimerRow,
    WaitRow,
)
from partita.domain.state.slices import Context, Slice


class Draft(Reading):
    """One decision in the making."""

    __slots__ = ("at_once", "begun", "cause", "ended", "made", "parked", "parts", "settled", "visits")

    def __init__(self, slice_: Slice, context: Context, run: RunRow) -> None:
        super().__init__(slice_, context, run)
        self.begun = False
        self.ended = False
        """Nothing more of the run's stage may start; ``closing`` goes on from here."""
        self.at_once = False
        """The run ends without undo and finally."""
        self.cause: NodeKey | None = None
        """The node that ended the run."""
        self.parked: list[str] = []
        """Nodes that start in a transaction of its own, because this decision has spent enough."""
        self.made = 0
        """Rows of items that were made."""
        self.visits = 0
        """What the expressions evaluated so far have spent (see ``expressions.limits.VISITS``)."""
        self.settled: deque[tuple[NodePlan, TaskRow]] = deque()
        """Nodes whose edges have not been followed yet."""
        self.parts: deque[tuple[NodePlan, TaskRow]] = deque()
        """Items, iterations and undo rows that have settled and whose loop or stage has not been told yet."""

    def begin(self) -> RunRow:
        """The run row, to be changed."""
        if not self.begun:
            self.begun = True
            if not self.fresh:
                self.run = copy_run(self.run)
                self.effects.run = self.run
        return self.run

    def visible(self, *, urgent: bool = False) -> None:
        """People can see a difference."""
        self.effects.visible = True
        if urgent:
            self.effects.urgent = True

    def image(self, plan: NodePlan, row: TaskRow | None) -> TaskRow:
        """The row, to be changed; the node's own is made when it has none."""
        key = plan.key if row is None else plan.key_of(row.index)
        owned = self.tasks.get(key)
        if owned is None:
            owned = new_task(key, plan.kind) if row is None else copy_task(row)
            self.tasks[key] = owned
        return owned

    def make(self, plan: NodePlan, index: int) -> TaskRow:
        """A new row of an item, an iteration or an undo."""
        key = NodeKey(plan.name, index)
        row = self.tasks[key] = new_task(key, plan.kind)
        return row

    def unread(self, plan: NodePlan, index: int) -> TaskRow:
        """The image of an item that was made and has not started: what its row holds is known without reading it."""
        row = self.make(plan, index)
        self.effects.unread.add(row.key)
        return row

    def later(self, node: str) -> None:
        """Go on with a loop in a transaction of its own."""
        self._go_on_later(LoopContinued(node=node))

    def hand_out_later(self) -> None:
        """Go on with handing out buffered signals in a transaction of its own."""
        self._go_on_later(MailboxContinued())

    def _go_on_later(self, event: Continued) -> None:
        message = Message(self.run.id, event)
        if message not in self.effects.messages:
            self.effects.messages.append(message)

    def activate(self, row: TaskRow, state: NodeState) -> None:
        """The node begins, or goes on, to be Queued or Waiting."""
        if row.state not in ACTIVE:
            self.run.active += 1
        row.state = state
        row.fired = True
        self.effects.visible = True

    def settle(self, plan: NodePlan, row: TaskRow, state: NodeState) -> None:
        """The row has ended; the edges of a node are followed later, and the loop of an item is told later."""
        run = self.run
        if row.state in ACTIVE:
            run.active -= 1
        row.state = state
        row.finished_at = self.now
        self.effects.visible = True
        if plan.is_part(row.index):
            self.parts.append((plan, row))
        else:
            run.done += 1
            self.settled.append((plan, row))

    def stop(self) -> None:
        """Nothing more of the run's stage starts, and no edge is followed any more."""
        self.ended = True
        self.settled.clear()
        self.parts.clear()

    def complete(self, plan: NodePlan, row: TaskRow, output: Payload) -> None:
        """The node has ended well."""
        row.output = output
        row.error = None
        if plan.undo is not None and row.index != GROUP:
            self.to_undo(row, self.run.seq)
        self.settle(plan, row, NodeState.COMPLETED)

    def to_undo(self, row: TaskRow, order: int) -> None:
        """The row is reversed if the run does not succeed, before rows of a lower ``order``."""
        row.detail = replace(row.detail or Detail(), order=order)

    def set_timer(self, kind: TimerKind, node: str, delay_ms: int, index: int = 0) -> None:
        """Set a timer that ends in so many ms of the time in which the run is not suspended."""
        if self.suspended:
            timer = TimerRow(kind, node, index, FROZEN, delay_ms)
        else:
            timer = TimerRow(kind, node, index, self.now + timedelta(milliseconds=delay_ms))
        self.effects.timers[TimerKey(kind, node, index)] = timer

    def drop_timers(self, row: TaskRow, kinds: Iterable[TimerKind]) -> None:
        """Take back timers of a row."""
        for kind in kinds:
            key = TimerKey(kind, row.node, row.index)
            self.effects.timers.pop(key, None)
            self.effects.drop_timers.add(key)

    def send(self, run_id: UUID, event: Event | ChildStart) -> None:
        """Leave a message for a run, this one included."""
        self.effects.messages.append(Message(run_id, event))

    def next_seq(self) -> int:
        """The run's next sequence number."""
        self.run.seq += 1
        return self.run.seq

    def note(
        self,
        event: str,
        *,
        key: NodeKey | None = None,
        attempt: int = 0,
        who: str = "",
        started_at: datetime | None = None,
        error: ErrorInfo | None = None,
        details: Mapping[str, object] | None = None,
    ) -> int:
        """Add a line of history; returns its sequence number."""
        seq = self.next_seq()
        error = self.kept(error)
        node, index = key or ("", 0)
        self.effects.history.append(
            HistoryEntry(seq, event, self.now, node, index, attempt, who, started_at, error, details)
        )
        return seq

    def kept(self, error: ErrorInfo | None) -> ErrorInfo | None:
        """An error as it is recorded: a message may quote a whole document, and goes from child to parent."""
        most = self.limits.error_message
        if error is None or len(error.message) <= most:
            return error
        return ErrorInfo(error.type, error.message[:most], error.details)

    def consume(self, signal: SignalRow, node: str, refused: str = "") -> None:
        """A buffered signal is taken (or refused) for good."""
        left = self.signals()
        del left[next(place for place, other in enumerate(left) if other.id == signal.id)]
        taken = Consumed(signal.id, node, refused)
        if not settle_recorded(self.effects.record_signals, taken):
            self.effects.consumed.append(taken)

    def add_waits(self, waits: list[WaitRow]) -> None:
        """Signals of these names are waited for. Raises Lacking."""
        self.waits_left = sorted([*self.waits(), *waits], key=lambda wait: wait.seq)
        self.effects.waits += waits

    def drop_waits(self, key: NodeKey) -> None:
        """The node waits for no signal any more; what is kept for children stays. Raises Lacking."""
        self._forget_waits(None, key)
        self.effects.drop_waits.add(key)

    def drop_child_waits(self, key: ChildWait) -> None:
        """The node of a child waits for no signal of this mailbox any more. Raises Lacking."""
        self._forget_waits(key.child, NodeKey(key.node, key.index))
        self.effects.drop_child_waits.add(key)

    def _forget_waits(self, child: UUID | None, key: NodeKey) -> None:
        gone = (child, *key)
        self.waits_left = [wait for wait in self.waits() if (wait.child, wait.node, wait.index) != gone]
        self.effects.waits = [wait for wait in self.effects.waits if (wait.child, wait.node, wait.index) != gone]

    def reply(self, outcome: Reply) -> None:
        """What the sender is told."""
        self.effects.reply = outcome

    def seal(self) -> Effects:
        """The finished effects."""
        if self.parked and not self.terminal:
            self.send(self.run.id, ParkedReleased(nodes=tuple(self.parked)))
        if self.effects.visible:
            self.run.revision += 1
        return self.effects


def keys_of(plans: Iterable[NodePlan]) -> set[NodeKey]:
    """Keys of nodes."""
    return {plan.key for plan in plans}
