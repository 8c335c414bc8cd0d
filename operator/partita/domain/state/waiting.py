"""A node that waits for a signal: how its wait begins, what came before it, and when its time is over.

Invariant: while such a node is Waiting, its wait stands in one mailbox, its own run's or that of the ancestor whose
mailbox it shares, or a message about it is on its way; a signal reaches it only through that mailbox.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from partita.domain.expressions import ExpressionError
from partita.domain.expressions.values import a_kind
from partita.domain.model import EventAlternative, EventSpec
from partita.domain.names import SIGNAL_NAME
from partita.domain.payload import Payload
from partita.domain.state.draft import Draft
from partita.domain.state.effects import TimerKey
from partita.domain.state.events import WaitExpired, WaitOpened
from partita.domain.state.plan import NodePlan
from partita.domain.state.rows import NodeState, SignalRow, TaskRow, TimerKind, TimerRow, WaitRow
from partita.domain.state.scope import millis, render
from partita.domain.state.taking import accept, broken, event_of, time_out

VISITS_A_SIGNAL: Final = 400
"""What giving a signal to a node counts as, besides the visits of its expressions: about its time in those."""


def begin_wait(draft: Draft, plan: NodePlan, row: TaskRow | None) -> None:
    """A waitForEvent starts. Raises Lacking, ExpressionError."""
    spec = event_of(plan)
    names = _names(draft, plan, spec)
    fire_at = _timeout_at(draft, plan)
    image = draft.image(plan, row)
    if spec.until is not None:
        image.output = Payload("[]", [])
    draft.activate(image, NodeState.WAITING)
    draft.visible(urgent=True)
    if draft.run.mailbox_id is None:
        _open_own(draft, plan, image, _by_name(names, spec))
    else:
        open_shared(draft, image, names, ignore_earlier=spec.ignore_earlier)
    if fire_at is not None and image.state is NodeState.WAITING and not draft.ended:
        key = TimerKey(TimerKind.EVENT_TIMEOUT, plan.name, image.index)
        draft.effects.timers[key] = TimerRow(key.kind, key.node, key.index, fire_at)


def _open_own(draft: Draft, plan: NodePlan, row: TaskRow, names: dict[str, EventAlternative]) -> None:
    buffered = [signal for signal in draft.signals() if signal.name in names]
    if event_of(plan).ignore_earlier:
        refuse_earlier(draft, plan.name, buffered)
    elif not others_first(draft, buffered):
        _take_buffered(draft, plan, row, names, buffered)
    if row.state is NodeState.WAITING and not draft.ended:
        draft.add_waits([WaitRow(name, draft.next_seq(), row.node, row.index, draft.now) for name in names])


def others_first(draft: Draft, buffered: list[SignalRow]) -> bool:
    """Whether an earlier wait is still being given such signals, so that a new one has to stand behind it."""
    names = {signal.name for signal in buffered}
    return bool(names) and any(wait.name in names for wait in draft.waits())


def came_before(node: str) -> str:
    """Why a node that ignores earlier signals does not take one."""
    return f"came before {node} waited, which ignores earlier signals"


def open_shared(
    draft: Draft, row: TaskRow, names: tuple[str, ...], *, place: int = 0, ignore_earlier: bool = False
) -> None:
    """Ask the owner of the shared mailbox for a signal; with the ``place`` of a wait that goes on."""
    run = draft.run
    owner = run.mailbox_id
    assert owner is not None  # noqa: S101  # asked by the caller
    draft.send(
        owner,
        WaitOpened(
            child=run.id,
            subflow=run.subflow,
            node=row.node,
            index=row.index,
            names=names,
            place=place,
            ignore_earlier=ignore_earlier,
        ),
    )


def refuse_earlier(draft: Draft, node: str, buffered: list[SignalRow]) -> None:
    """Signals that came before a wait that ignores them are refused for good, unless another stands for them."""
    others = {wait.name for wait in draft.waits()}
    for signal in buffered:
        if signal.name not in others:
            draft.consume(signal, node, refused=came_before(node))


def _timeout_at(draft: Draft, plan: NodePlan) -> datetime | None:
    template = plan.node.timeout
    if template is None:
        return None
    wait_ms = plan.timeout_ms
    if wait_ms is None:
        wait_ms = millis(draft, plan, template)
    return draft.now + timedelta(milliseconds=wait_ms)


def _names(draft: Draft, plan: NodePlan, spec: EventSpec) -> tuple[str, ...]:
    """The rendered name of each alternative."""
    names: list[str] = []
    for alternative in spec.alternatives:
        template = alternative.name
        name = render(draft, plan, template)
        problem = SIGNAL_NAME.problem(name) if isinstance(name, str) else f"is {a_kind(name)}; expected a name"
        if problem:
            raise ExpressionError(f"waitForEvent.name: {problem}")
        names.append(name)
    return tuple(names)


def _by_name(names: tuple[str, ...], spec: EventSpec) -> dict[str, EventAlternative]:
    found: dict[str, EventAlternative] = {}
    for name, alternative in zip(names, spec.alternatives, strict=True):
        found.setdefault(name, alternative)
    return found


def names_again(draft: Draft, plan: NodePlan) -> dict[str, EventAlternative]:
    """The names of a wait that has begun. Raises Lacking."""
    spec = event_of(plan)
    try:
        return _by_name(_names(draft, plan, spec), spec)
    except ExpressionError:  # it could be evaluated when the wait began; the waits themselves keep the names
        return {}


def _take_buffered(
    draft: Draft, plan: NodePlan, row: TaskRow, names: dict[str, EventAlternative], buffered: list[SignalRow]
) -> bool:
    """Give a node (``row``: its image) signals that came earlier, until it has enough or the decision has spent
    enough. False for the latter: the run has left itself a message to hand out the rest. Raises Lacking.
    """
    for signal in buffered:
        if draft.visits >= draft.limits.visits:
            draft.hand_out_later()
            return False
        refused = broken(draft, names[signal.name], signal)
        if not refused:
            accept(draft, plan, row, signal)
        draft.consume(signal, plan.name, refused)
        draft.visits += VISITS_A_SIGNAL
        if row.state is not NodeState.WAITING:
            break
    return True


def event_timeout(draft: Draft, plan: NodePlan, row: TaskRow) -> None:
    """The node (``row``: stored) has waited long enough; a signal that was delivered wins. Raises Lacking."""
    run = draft.run
    if run.mailbox_id is not None:
        draft.send(run.mailbox_id, WaitExpired(child=run.id, node=row.node, index=row.index))
        return
    names = names_again(draft, plan)
    delivered = [signal for signal in draft.signals() if signal.name in names]
    image = draft.image(plan, row)
    if not _take_buffered(draft, plan, image, names, delivered):
        draft.set_timer(TimerKind.EVENT_TIMEOUT, plan.name, 0, row.index)  # the time is over once all are looked at
    elif image.state is NodeState.WAITING:
        time_out(draft, plan, image)
