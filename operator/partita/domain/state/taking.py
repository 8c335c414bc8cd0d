"""What a waiting node takes: a signal, of which one or several are enough, or that none came in time.

Invariant: a node that goes on waits for nothing any more: the same decision takes back its waits and its timeout.
Trade-off: events that were not enough stand in the row's output, which each further one writes anew.
"""

from __future__ import annotations

from datetime import UTC, datetime

from partita.domain.error_types import EXPRESSION, TIMEOUT
from partita.domain.errors import InvalidError
from partita.domain.expressions import ExpressionError, Template
from partita.domain.model import EventAlternative, EventSpec
from partita.domain.payload import Json, Payload
from partita.domain.schema import violations
from partita.domain.state.draft import Draft
from partita.domain.state.failing import fail, oversize, settle_failed
from partita.domain.state.plan import NodePlan
from partita.domain.state.reading import Lacking
from partita.domain.state.rows import ErrorInfo, SignalRow, TaskRow, TimerKind
from partita.domain.state.scope import holds, render


def event_of(plan: NodePlan) -> EventSpec:
    """What a waitForEvent waits for."""
    spec = plan.node.event
    assert spec is not None  # noqa: S101  # exactly the field of its kind is set
    return spec


def broken(draft: Draft, alternative: EventAlternative, signal: SignalRow) -> str:
    """Why a signal breaks the schema of the wait that it would go to, or ''."""
    if alternative.schema is None:
        return ""
    problems = violations(alternative.schema, signal.payload.value, "payload")
    return "; ".join(str(problem) for problem in problems)[: draft.limits.error_message]


def accept(draft: Draft, plan: NodePlan, row: TaskRow, signal: SignalRow) -> None:
    """Give a signal that fits its schema to a waiting node (``row``: its image). Raises Lacking."""
    spec = event_of(plan)
    envelope = {"name": signal.name, "id": signal.id, "sender": signal.sender, "time": _as_text(signal.created_at)}
    draft.visible()
    if spec.until is not None and not _collect(draft, plan, row, {**envelope, "payload": signal.payload.value}):
        return
    row.event = Payload.of(envelope)
    if spec.until is not None and row.output is not None:
        _resolve(draft, plan, row, row.output)
    elif spec.any_of:
        _resolve(draft, plan, row, Payload.of({"name": signal.name, "payload": signal.payload.value}))
    else:
        _resolve(draft, plan, row, signal.payload)


def _as_text(time: datetime) -> str:
    return time.astimezone(UTC).isoformat().replace("+00:00", "Z")


def _collect(draft: Draft, plan: NodePlan, row: TaskRow, event: Json) -> bool:
    """Add an event to those that were taken; whether they are enough."""
    until = event_of(plan).until
    assert until is not None  # noqa: S101  # asked by the caller
    collected = _with(row.output or Payload("[]", []), event)
    too_large = oversize(draft, collected, "list of events")
    if too_large is not None:
        _stop_waiting(draft, plan, row)
        fail(draft, plan, row, too_large)
        return False
    row.output = collected
    try:
        return holds(draft, plan, until, events=collected.value)
    except ExpressionError as error:
        _stop_waiting(draft, plan, row)
        fail(draft, plan, row, ErrorInfo(EXPRESSION, error.message))
        return False


def _with(events: Payload, event: Json) -> Payload:
    """One more event; the others, of which there may be thousands, are not encoded again."""
    text, one = events.text, Payload.of(event)
    return Payload(f"{text[:-1]},{one.text}]" if events.value else f"[{one.text}]", [*events.value, event])


def _resolve(draft: Draft, plan: NodePlan, row: TaskRow, output: Payload) -> None:
    _stop_waiting(draft, plan, row)
    draft.complete(plan, row, output)


def _stop_waiting(draft: Draft, plan: NodePlan, row: TaskRow) -> None:
    """Take back the node's waits and its timeout; a node that takes a buffered signal at once has neither. A wait in a
    shared mailbox has been closed by whoever answered.
    """
    draft.visible(urgent=True)
    if draft.run.mailbox_id is None:
        if not any(wait.child is None and (wait.node, wait.index) == row.key for wait in draft.waits()):
            return
        draft.drop_waits(row.key)
    if plan.node.timeout is not None:
        draft.drop_timers(row, (TimerKind.EVENT_TIMEOUT,))


def waiting_row(draft: Draft, plan: NodePlan, row: TaskRow) -> TaskRow:
    """The stored row of a waiting node, with the events that it has collected. Raises Lacking."""
    if event_of(plan).until is not None and not draft.payloads_loaded(row):
        draft.lacking().outputs.add(row.key)
        raise Lacking
    return row


def time_out(draft: Draft, plan: NodePlan, row: TaskRow) -> None:
    """No signal came in time for the node (``row``: its image): its route, or the error ``timeout``. Raises Lacking."""
    _stop_waiting(draft, plan, row)
    error = ErrorInfo(TIMEOUT, "no event came in time")
    route = event_of(plan).on_timeout
    if route is None:
        fail(draft, plan, row, error)
    elif route.output is None:
        settle_failed(draft, plan, row, error, route.next or ())
    else:
        _go_on(draft, plan, row, route.output)


def _go_on(draft: Draft, plan: NodePlan, row: TaskRow, output: Template) -> None:
    try:
        payload = Payload.of(render(draft, plan, output))
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
