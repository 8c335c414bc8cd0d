"""Signals and the nodes that wait for them.

Invariant: a signal is taken at most once, the oldest first; a signal that came before its waiter is kept. A signal
that breaks the schema of the wait it would go to is refused for good, with the path, and the wait goes on.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from partita.domain.errors import InvalidError
from partita.domain.expressions import ExpressionError, Template
from partita.domain.model import EventAlternative, EventSpec
from partita.domain.payload import Json, Payload
from partita.domain.schema import violations
from partita.domain.state.draft import Draft, Lacking
from partita.domain.state.effects import RecordedSignal, TimerKey
from partita.domain.state.error_types import EXPRESSION, TIMEOUT
from partita.domain.state.events import Reply, SignalReceived
from partita.domain.state.failing import fail, oversize, settle_failed
from partita.domain.state.plan import NodePlan
from partita.domain.state.rows import (
    ErrorInfo,
    NodeState,
    SignalRow,
    TaskRow,
    TimerKind,
    TimerRow,
    WaitRow,
)
from partita.domain.state.scope import scope_of

RUN_FINISHED = "RunFinished"
SCHEMA_MISMATCH = "SchemaMismatch"
MAILBOX_FULL = "MailboxFull"
PAYLOAD_TOO_LARGE = "PayloadTooLarge"
ACCEPTED = "Accepted"
CONSUMED = "Consumed"


def begin_wait(draft: Draft, plan: NodePlan, row: TaskRow | None) -> None:
    """A waitForEvent starts. Raises Lacking, ExpressionError."""
    spec = _spec(plan)
    names = _names(draft, plan, spec)
    fire_at = _timeout_at(draft, plan)
    buffered = [signal for signal in draft.signals() if signal.name in names]
    image = draft.image(plan, row)
    if spec.until is not None:
        image.output = Payload("[]", [])
    draft.activate(image, NodeState.WAITING)
    draft.visible(urgent=True)
    if spec.ignore_earlier:
        for signal in buffered:
            draft.consume(signal, plan.name, refused=f"came before {plan.name} waited, which ignores earlier signals")
        buffered = []
    _take_buffered(draft, plan, image, names, buffered)
    if image.state is not NodeState.WAITING or draft.ended:
        return
    for name in names:
        wait = WaitRow(name, draft.next_seq(), plan.name, 0, draft.now)
        draft.effects.waits.append(wait)
        draft.waits().append(wait)
    if fire_at is not None:
        key = TimerKey(TimerKind.EVENT_TIMEOUT, plan.name, 0)
        draft.effects.timers[key] = TimerRow(TimerKind.EVENT_TIMEOUT, plan.name, 0, fire_at)


def _spec(plan: NodePlan) -> EventSpec:
    spec = plan.node.event
    assert spec is not None  # noqa: S101  # exactly the field of its kind is set
    return spec


def _timeout_at(draft: Draft, plan: NodePlan) -> datetime | None:
    template = plan.node.timeout
    if template is None:
        return None
    millis = plan.timeout_ms
    if millis is None:
        millis = template.millis(scope_of(draft, plan, template.refs))
    return draft.now + timedelta(milliseconds=millis)


def _names(draft: Draft, plan: NodePlan, spec: EventSpec) -> dict[str, EventAlternative]:
    names: dict[str, EventAlternative] = {}
    for alternative in spec.alternatives:
        template = alternative.name
        name = template.render(scope_of(draft, plan, template.refs))
        if not isinstance(name, str) or not name:
            raise ExpressionError(f"waitForEvent.name: expected a name, got {name!r}")
        names.setdefault(name, alternative)
    return names


def _take_buffered(
    draft: Draft, plan: NodePlan, row: TaskRow, names: dict[str, EventAlternative], buffered: list[SignalRow]
) -> None:
    for signal in buffered:
        refused = _take(draft, plan, row, names[signal.name], signal)
        draft.consume(signal, plan.name, refused)
        if row.state is not NodeState.WAITING:
            return


def _take(draft: Draft, plan: NodePlan, row: TaskRow, alternative: EventAlternative, signal: SignalRow) -> str:
    """Give a signal to a waiting node (``row``: its image); returns why it is refused, or ''."""
    if alternative.schema is not None:
        problems = violations(alternative.schema, signal.payload.value, "payload")
        if problems:
            return "; ".join(str(problem) for problem in problems)[: draft.limits.history_message]
    spec = _spec(plan)
    envelope = {"name": signal.name, "id": signal.id, "sender": signal.sender, "time": _as_text(signal.created_at)}
    draft.visible()
    if spec.until is not None and not _collect(draft, plan, row, {**envelope, "payload": signal.payload.value}):
        return ""
    row.event = Payload.of(envelope)
    if spec.until is not None and row.output is not None:
        _resolve(draft, plan, row, row.output)
    elif spec.any_of:
        _resolve(draft, plan, row, Payload.of({"name": signal.name, "payload": signal.payload.value}))
    else:
        _resolve(draft, plan, row, signal.payload)
    return ""


def _as_text(time: datetime) -> str:
    return time.astimezone(UTC).isoformat().replace("+00:00", "Z")


def _collect(draft: Draft, plan: NodePlan, row: TaskRow, event: Json) -> bool:
    """Add an event to those that were taken; whether they are enough."""
    until = _spec(plan).until
    assert until is not None  # noqa: S101  # asked by the caller
    events = [*(row.output.value if row.output is not None else ()), event]
    collected = Payload.of(events)
    too_large = oversize(draft, collected, "list of events")
    if too_large is not None:
        _stop_waiting(draft, plan)
        fail(draft, plan, row, too_large)
        return False
    row.output = collected
    try:
        return until.test(scope_of(draft, plan, until.refs, events=events))
    except ExpressionError as error:
        _stop_waiting(draft, plan)
        fail(draft, plan, row, ErrorInfo(EXPRESSION, error.message))
        return False


def _resolve(draft: Draft, plan: NodePlan, row: TaskRow, output: Payload) -> None:
    _stop_waiting(draft, plan)
    draft.complete(plan, row, output)


def _stop_waiting(draft: Draft, plan: NodePlan) -> None:
    """Take back the node's waits and its timeout; a node that takes a buffered signal at once has neither."""
    if any(wait.node == plan.name for wait in draft.waits()):
        draft.drop_waits(plan.key)
        if plan.node.timeout is not None:
            key = TimerKey(TimerKind.EVENT_TIMEOUT, plan.name, 0)
            draft.effects.timers.pop(key, None)
            draft.effects.drop_timers.add(key)
    draft.visible(urgent=True)


def receive(draft: Draft, event: SignalReceived) -> Reply:
    """A signal arrives: it is refused, buffered, or taken by the node that has waited longest. Raises Lacking."""
    if draft.seen(event.id):
        return Reply("already_applied")
    plan = None if draft.terminal else _oldest_waiter(draft, event.name)
    refusal = _refusal(draft, event, waited_for=plan is not None)
    if refusal is not None:
        return refusal
    row = _waiting_row(draft, plan) if plan is not None else None
    draft.begin()
    draft.visible()
    details: dict[str, object] = {"id": event.id, "name": event.name}
    seq = draft.note("SignalReceived", key=plan.key if plan is not None else None, who=event.sender, details=details)
    signal = SignalRow(event.id, event.name, seq, event.payload, event.sender, draft.now)
    if plan is None or row is None:
        draft.signals().append(signal)
        draft.effects.record_signals.append(RecordedSignal(signal))
        return Reply("applied", ACCEPTED)
    refused = _take(draft, plan, draft.image(plan, row), _alternative(draft, plan, event.name), signal)
    draft.effects.record_signals.append(RecordedSignal(signal, "" if refused else plan.name, refused))
    if refused:
        details["refused"] = refused
        return Reply("refused", SCHEMA_MISMATCH, refused)
    return Reply("applied", CONSUMED)


def _refusal(draft: Draft, event: SignalReceived, *, waited_for: bool) -> Reply | None:
    """Why a signal is not even recorded, so that it may be sent again."""
    limits = draft.limits
    if draft.terminal:
        return Reply("refused", RUN_FINISHED, f"the run has ended: {draft.run.status.value}")
    if event.payload.size() > limits.output_bytes:
        return Reply("refused", PAYLOAD_TOO_LARGE, f"the payload has more than {limits.output_bytes} bytes")
    if not waited_for and len(draft.signals()) >= limits.signals_buffered:
        return Reply("refused", MAILBOX_FULL, f"{limits.signals_buffered} signals wait to be taken already")
    return None


def _oldest_waiter(draft: Draft, name: str) -> NodePlan | None:
    for wait in draft.waits():
        if wait.name == name:
            return draft.plan.nodes.get(wait.node)
    return None


def _waiting_row(draft: Draft, plan: NodePlan) -> TaskRow:
    row = draft.row(plan.key)
    assert row is not None  # noqa: S101  # a wait has a row
    if _spec(plan).until is not None and not draft.payloads_loaded(row):
        draft.lacking().outputs.add(plan.key)
        raise Lacking
    return row


def _alternative(draft: Draft, plan: NodePlan, name: str) -> EventAlternative:
    alternatives = _spec(plan).alternatives
    if len(alternatives) == 1:
        return alternatives[0]
    return _names_again(draft, plan).get(name, alternatives[0])


def _names_again(draft: Draft, plan: NodePlan) -> dict[str, EventAlternative]:
    try:
        return _names(draft, plan, _spec(plan))
    except ExpressionError:  # it could be evaluated when the wait began; the waits themselves keep the names
        return {}


def event_timeout(draft: Draft, plan: NodePlan, row: TaskRow) -> None:
    """The node (``row``: stored) has waited long enough; a signal that was delivered wins. Raises Lacking."""
    names = _names_again(draft, plan)
    delivered = [signal for signal in draft.signals() if signal.name in names]
    image = draft.image(plan, row)
    _take_buffered(draft, plan, image, names, delivered)
    if image.state is not NodeState.WAITING:
        return
    _stop_waiting(draft, plan)
    error = ErrorInfo(TIMEOUT, "no event came in time")
    route = _spec(plan).on_timeout
    if route is None:
        fail(draft, plan, image, error)
    elif route.output is None:
        settle_failed(draft, plan, image, error, route.next or ())
    else:
        _go_on(draft, plan, image, route.output)


def _go_on(draft: Draft, plan: NodePlan, row: TaskRow, output: Template) -> None:
    try:
        payload = Payload.of(output.render(scope_of(draft, plan, output.refs)))
        too_large = oversize(draft, payload, "output")
    except ExpressionError as error:
        fail(draft, plan, row, ErrorInfo(EXPRESSION, error.message))
    except InvalidError as error:
        fail(draft, plan, row, ErrorInfo(EXPRESSION, str(error)))
    else:
        if too_large is None:
            draft.complete(plan, row, payload)
        else:
            fail(draft, plan, row, too_large)
