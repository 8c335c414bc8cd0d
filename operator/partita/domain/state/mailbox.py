"""A run's mailbox: signals that arrive, and the waits that they are for, of this run and of subflows that share it.

Invariant: a signal is taken at most once, the oldest first; a signal that came before its waiter is kept. A signal
that breaks the schema of the wait it would go to is refused for good, with the path, and the wait goes on.
"""

from __future__ import annotations

from typing import Final

from partita.domain.model import EventAlternative, EventSpec
from partita.domain.names import SIGNAL_IDENTITY, SIGNAL_NAME
from partita.domain.state.draft import Draft
from partita.domain.state.effects import ChildWait, RecordedSignal
from partita.domain.state.events import Reply, SignalGiven, SignalReceived
from partita.domain.state.plan import NodePlan
from partita.domain.state.rows import NodeKey, SignalRow, WaitRow
from partita.domain.state.taking import accept, broken, event_of, waiting_row
from partita.domain.state.waiting import VISITS_A_SIGNAL, came_before, names_again

RUN_FINISHED: Final = "RunFinished"
SCHEMA_MISMATCH: Final = "SchemaMismatch"
MAILBOX_FULL: Final = "MailboxFull"
PAYLOAD_TOO_LARGE: Final = "PayloadTooLarge"
INVALID_SIGNAL: Final = "InvalidSignal"
SHARED_MAILBOX: Final = "SharedMailbox"
ACCEPTED: Final = "Accepted"
CONSUMED: Final = "Consumed"


def receive(draft: Draft, event: SignalReceived) -> Reply:
    """A signal arrives: it is refused, buffered, or taken by the node that has waited longest. Raises Lacking."""
    if draft.run.mailbox_id is not None:
        return Reply("refused", SHARED_MAILBOX, f"signals of a subflow go to run {draft.run.mailbox_id}")
    if draft.seen(event.id):
        return Reply("already_applied")
    wait = None if draft.terminal else _oldest_wait(draft, event.name)
    if wait is not None and _queued(draft, event.name):
        wait = None
    refusal = _refusal(draft, event, waited_for=wait is not None)
    if refusal is not None:
        return refusal
    draft.begin()
    draft.visible()
    details: dict[str, object] = {"id": event.id, "name": event.name}
    key = NodeKey(wait.node, wait.index) if wait is not None and wait.child is None else None
    seq = draft.note("SignalReceived", key=key, who=event.sender, details=details)
    signal = SignalRow(event.id, event.name, seq, event.payload, event.sender, draft.now)
    if wait is None:
        draft.signals().append(signal)
        draft.effects.record_signals.append(RecordedSignal(signal))
        return Reply("applied", ACCEPTED)
    refused = _take(draft, wait, signal) if wait.child is None else _hand_over(draft, wait, signal)
    draft.effects.record_signals.append(RecordedSignal(signal, "" if refused else wait.node, refused))
    if wait.child is not None:
        details |= {"child": str(wait.child), "node": wait.node}
    if refused:
        details["refused"] = refused
        return Reply("refused", SCHEMA_MISMATCH, refused)
    return Reply("applied", CONSUMED)


def _queued(draft: Draft, name: str) -> bool:
    """Whether signals of this name are still being handed out, so that a new one has to stand behind them."""
    return any(signal.name == name for signal in draft.signals())


def hand_out(draft: Draft) -> None:
    """Go on giving buffered signals to the waits that stand for them, each to the oldest, until the decision has spent
    enough. Raises Lacking.
    """
    draft.begin()
    for signal in tuple(draft.signals()):
        wait = _oldest_wait(draft, signal.name)
        if wait is None:
            continue
        if draft.visits >= draft.limits.visits:
            draft.hand_out_later()
            return
        if signal.seq < wait.seq and _ignores_earlier(draft, wait):
            refused = came_before(wait.node)
        else:
            refused = _take(draft, wait, signal) if wait.child is None else _hand_over(draft, wait, signal)
        draft.consume(signal, wait.node, refused)
        draft.visits += VISITS_A_SIGNAL
        if draft.ended:
            return


def _refusal(draft: Draft, event: SignalReceived, *, waited_for: bool) -> Reply | None:
    """Why a signal is not even recorded, so that it may be sent again."""
    limits = draft.limits
    for field, form, text in (("id", SIGNAL_IDENTITY, event.id), ("name", SIGNAL_NAME, event.name)):
        if problem := form.problem(text):
            return Reply("refused", INVALID_SIGNAL, f"{field}: {problem}")
    if draft.terminal:
        return Reply("refused", RUN_FINISHED, f"the run has ended: {draft.run.status.value}")
    if event.payload.size() > limits.output_bytes:
        return Reply("refused", PAYLOAD_TOO_LARGE, f"the payload has more than {limits.output_bytes} bytes")
    return None if waited_for else _full(draft, event)


def _full(draft: Draft, event: SignalReceived) -> Reply | None:
    """Why a signal that nobody waits for cannot be kept. Raises Lacking."""
    limits, kept = draft.limits, draft.signals()
    if len(kept) >= limits.signals_buffered:
        return Reply("refused", MAILBOX_FULL, f"{limits.signals_buffered} signals wait to be taken already")
    if kept and sum([signal.payload.size() for signal in kept]) + event.payload.size() > limits.signals_bytes:
        problem = f"signals of more than {limits.signals_bytes} bytes in all would wait to be taken"
        return Reply("refused", MAILBOX_FULL, problem)
    return None


def _oldest_wait(draft: Draft, name: str) -> WaitRow | None:
    return next((wait for wait in draft.waits() if wait.name == name), None)


def _take(draft: Draft, wait: WaitRow, signal: SignalRow) -> str:
    """Give a signal to a waiting node of this run; returns why it is refused, or ''. Raises Lacking."""
    plan = draft.plan.nodes[wait.node]
    row = draft.row(NodeKey(wait.node, wait.index))
    assert row is not None  # noqa: S101  # a wait has a row
    row = waiting_row(draft, plan, row)
    refused = broken(draft, _alternative(draft, plan, signal.name), signal)
    if not refused:
        accept(draft, plan, draft.image(plan, row), signal)
    return refused


def _alternative(draft: Draft, plan: NodePlan, name: str) -> EventAlternative:
    alternatives = event_of(plan).alternatives
    if len(alternatives) == 1:
        return alternatives[0]
    return names_again(draft, plan).get(name, alternatives[0])


def _hand_over(draft: Draft, wait: WaitRow, signal: SignalRow) -> str:
    """Give a signal to the child whose wait this is, and close it; returns why it is refused, or ''. Raises Lacking."""
    assert wait.child is not None  # noqa: S101  # asked by the caller
    key = ChildWait(wait.child, wait.node, wait.index)
    refused = offer(draft, wait, signal, names_of(waits_of(draft, key)))
    if not refused:
        draft.drop_child_waits(key)
    return refused


def offer(draft: Draft, wait: WaitRow, signal: SignalRow, names: tuple[str, ...]) -> str:
    """Send a signal to the child's node that waits for it; returns why it is refused instead, or ''."""
    alternative = _childs_alternative(draft, wait)
    refused = broken(draft, alternative, signal) if alternative is not None else ""
    if not refused and wait.child is not None:
        given = SignalGiven(
            node=wait.node,
            index=wait.index,
            signal=signal,
            alternative=wait.alternative,
            place=wait.seq,
            names=names,
        )
        draft.send(wait.child, given)
    return refused


def names_of(waits: list[WaitRow]) -> tuple[str, ...]:
    """The names that a node's waits were opened with, at the places of their alternatives. The places of names that
    came twice are filled with an earlier one, which changes nothing.
    """
    by_place = {wait.alternative: wait.name for wait in waits}
    names: list[str] = []
    for place in range(max(by_place) + 1):
        names.append(by_place.get(place) or names[0])
    return tuple(names)


def waits_of(draft: Draft, key: ChildWait) -> list[WaitRow]:
    """The waits that are kept for a child's node, one a name. Raises Lacking."""
    return [wait for wait in draft.waits() if (wait.child, wait.node, wait.index) == key]


def _ignores_earlier(draft: Draft, wait: WaitRow) -> bool:
    event = event_of(draft.plan.nodes[wait.node]) if wait.child is None else _childs_event(draft, wait)
    return event is not None and event.ignore_earlier


def _childs_event(draft: Draft, wait: WaitRow) -> EventSpec | None:
    """What the child's node waits for, if the definition (which holds every subflow) says so."""
    flow = draft.slice.definition.subflows.get(wait.subflow)
    node = flow.nodes.get(wait.node) if flow is not None else None
    return node.event if node is not None else None


def _childs_alternative(draft: Draft, wait: WaitRow) -> EventAlternative | None:
    """What the child's node accepts under this name."""
    event = _childs_event(draft, wait)
    return event.alternatives[wait.alternative] if event is not None else None
