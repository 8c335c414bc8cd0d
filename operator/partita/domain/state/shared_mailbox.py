"""A mailbox that subflows share: what its owner does for their waits, and what a child does with the answers.

Invariant: a wait of a child stands in the owner's mailbox or has been answered once, with a signal or with its timeout;
an answer closes it. So signals are handed out one at a time, the oldest first to the wait with the lowest place, and a
signal that is on its way beats a deadline that has expired. A child whose node is not content with a signal opens the
wait again at its old place. The trade-off is a message each way, against a child reading its ancestor's rows.
"""

from __future__ import annotations

from partita.domain.state.attempts import STALE
from partita.domain.state.draft import Draft
from partita.domain.state.edges import propagate
from partita.domain.state.effects import ChildWait
from partita.domain.state.events import (
    SignalGiven,
    WaitClosed,
    WaitExpired,
    WaitOpened,
    WaitTimedOut,
)
from partita.domain.state.mailbox import offer, waits_of
from partita.domain.state.plan import NodePlan
from partita.domain.state.rows import NodeKey, NodeState, SignalRow, TaskRow, TimerKind, WaitRow
from partita.domain.state.taking import accept, time_out, waiting_row
from partita.domain.state.waiting import VISITS_A_SIGNAL, event_timeout, open_shared, others_first, refuse_earlier

# The owner --------------------------------------------------------------------------------------------------------


def wait_opened(draft: Draft, event: WaitOpened) -> None:
    """A node of a child waits: it gets the oldest signal that fits, or waits here. Raises Lacking."""
    if draft.terminal or waits_of(draft, ChildWait(event.child, event.node, event.index)):
        draft.reply(STALE)
        return
    draft.begin()
    waits = _waits(draft, event)
    buffered = [signal for signal in draft.signals() if signal.name in waits]
    if event.ignore_earlier:
        refuse_earlier(draft, event.node, buffered)
        buffered = []
    draft.visible(urgent=True)
    if others_first(draft, buffered) or not _give_buffered(draft, event, waits, buffered):
        draft.add_waits(list(waits.values()))


def _waits(draft: Draft, event: WaitOpened) -> dict[str, WaitRow]:
    place = event.place or draft.next_seq()
    waits: dict[str, WaitRow] = {}
    for number, name in enumerate(event.names):
        wait = WaitRow(name, place, event.node, event.index, draft.now, event.child, event.subflow, number)
        waits.setdefault(name, wait)
    return waits


def _give_buffered(draft: Draft, event: WaitOpened, waits: dict[str, WaitRow], buffered: list[SignalRow]) -> bool:
    for signal in buffered:
        if draft.visits >= draft.limits.visits:
            draft.hand_out_later()
            return False
        refused = offer(draft, waits[signal.name], signal, event.names)
        draft.consume(signal, event.node, refused)
        draft.visits += VISITS_A_SIGNAL
        if not refused:
            return True
    return False


def wait_closed(draft: Draft, event: WaitClosed) -> None:
    """A node of a child does not wait any more. Raises Lacking."""
    _close(draft, event)


def wait_expired(draft: Draft, event: WaitExpired) -> None:
    """A child's wait has reached its timeout: it is answered, unless a signal is on its way to it. Raises Lacking."""
    if _close(draft, event):
        draft.send(event.child, WaitTimedOut(node=event.node, index=event.index))


def _close(draft: Draft, event: WaitClosed | WaitExpired) -> bool:
    key = ChildWait(event.child, event.node, event.index)
    if draft.terminal or not waits_of(draft, key):
        draft.reply(STALE)
        return False
    draft.begin()
    draft.drop_child_waits(key)
    draft.visible(urgent=True)
    return True


# The child --------------------------------------------------------------------------------------------------------


def signal_given(draft: Draft, event: SignalGiven) -> None:
    """A signal for a node of this run, checked by the owner of the mailbox. Raises Lacking."""
    current = _waiting(draft, event)
    if current is None:
        return
    plan, row = current
    row = waiting_row(draft, plan, row)
    draft.begin()
    signal = event.signal
    draft.note("SignalReceived", key=row.key, who=signal.sender, details={"id": signal.id, "name": signal.name})
    image = draft.image(plan, row)
    accept(draft, plan, image, signal)
    if image.state is NodeState.WAITING:
        _wait_on(draft, plan, image, event)
    propagate(draft)


def _wait_on(draft: Draft, plan: NodePlan, row: TaskRow, event: SignalGiven) -> None:
    """The signal was not enough; if the node's time ran out while it was on its way, the owner is told again."""
    open_shared(draft, row, event.names, place=event.place)
    if plan.node.timeout is not None and not any(
        timer.kind is TimerKind.EVENT_TIMEOUT and (timer.node, timer.index) == row.key for timer in draft.timers()
    ):
        event_timeout(draft, plan, row)


def wait_timed_out(draft: Draft, event: WaitTimedOut) -> None:
    """No signal came in time for a node of this run. Raises Lacking."""
    current = _waiting(draft, event)
    if current is not None:
        plan, row = current
        draft.begin()
        draft.visible(urgent=True)
        time_out(draft, plan, draft.image(plan, row))
        propagate(draft)


def _waiting(draft: Draft, event: SignalGiven | WaitTimedOut) -> tuple[NodePlan, TaskRow] | None:
    plan = draft.plan.nodes.get(event.node)
    if plan is not None and not draft.terminal:
        row = draft.row(NodeKey(event.node, event.index))
        if row is not None and row.state is NodeState.WAITING:
            return plan, row
    draft.reply(STALE)
    return None
