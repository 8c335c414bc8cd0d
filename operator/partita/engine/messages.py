"""Messages between runs as rows of ``run_inbox``: the form in which they wait for the transaction that applies them.

Invariant: reading back what was written gives an equal message. Rows may be read by a later version of the program:
fields are only ever added. A kind that this version does not know is left alone, for a process that does. Trade-off:
every field is written out, so that the form on disk does not change when a class does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, Final, TypeAlias
from uuid import UUID

import orjson

from partita.domain.payload import Json, Payload, encode
from partita.domain.record import record
from partita.domain.state.effects import ChildStart, Message
from partita.domain.state.events import (
    CancelRequested,
    ChildFinished,
    Event,
    LoopContinued,
    MailboxContinued,
    ParkedReleased,
    ResumeRequested,
    SignalGiven,
    SuspendRequested,
    UndoContinued,
    WaitClosed,
    WaitExpired,
    WaitOpened,
    WaitTimedOut,
)
from partita.domain.state.rows import ErrorInfo, Parent, RunStatus, SignalRow

Fields: TypeAlias = dict[str, Any]


@record
class Delivery:
    """A message that stands in the inbox."""

    inbox_id: int
    run_id: UUID
    namespace: str
    """Of the runs at both ends."""
    event: Event | ChildStart


def kind_of(message: Message) -> str:
    """The kind of a message's row; raises TypeError for an event that no run sends to another."""
    kind = type(message.event).__name__
    if kind not in _WRITE:
        raise TypeError(f"a {kind} cannot be sent to a run; expected one of {', '.join(KINDS)}")
    return kind


def row_of(message: Message, namespace: str) -> tuple[UUID, str, str]:
    """A message of a run in this namespace as run, kind and body of its row."""
    kind = kind_of(message)
    fields = _WRITE[kind](message.event)
    return message.run_id, kind, encode({"namespace": namespace, **fields}, f"message to run {message.run_id}")


def delivery_of(inbox_id: int, run_id: UUID, kind: str, body: Json) -> Delivery:
    """The message that ``row_of`` wrote."""
    return Delivery(inbox_id, run_id, body["namespace"], _READ[kind](body))


def _json(payload: Payload | None) -> Any:
    """A payload goes into the body as the text that it is."""
    return None if payload is None else orjson.Fragment(payload.text)


def _payload(body: Mapping[str, Json], name: str) -> Payload | None:
    """A payload that may be left out; ``null`` is one."""
    return Payload.of(body[name]) if name in body else None


def _place(event: Any) -> Fields:  # Any: several kinds of events have these two
    return {"node": event.node, "index": event.index}


def _child_start(event: ChildStart) -> Fields:
    parent = event.parent
    return {
        "definition": event.definition,
        "version": event.version,
        "subflow": event.subflow,
        "input": _json(event.input),
        "parent": None if parent is None else [str(parent.run_id), parent.node, parent.index, parent.attempt],
        "mailbox": None if event.mailbox_id is None else str(event.mailbox_id),
        "depth": event.depth,
        "timeout_ms": event.timeout_ms,
        "priority": event.priority,
        "started_by": event.started_by,
    }


def _read_child_start(body: Json) -> ChildStart:
    parent, mailbox = body["parent"], body["mailbox"]
    return ChildStart(
        definition=body["definition"],
        version=body["version"],
        subflow=body["subflow"],
        input=Payload.of(body["input"]),
        parent=None if parent is None else Parent(UUID(parent[0]), *parent[1:]),
        mailbox_id=None if mailbox is None else UUID(mailbox),
        depth=body["depth"],
        timeout_ms=body["timeout_ms"],
        priority=body["priority"],
        started_by=body["started_by"],
    )


def _child_finished(event: ChildFinished) -> Fields:
    fields = {**_place(event), "attempt": event.attempt, "child": str(event.child), "status": event.status.value}
    if event.output is not None:
        fields["output"] = _json(event.output)
    if event.error is not None:
        error = event.error
        fields["error"] = {"type": error.type, "message": error.message}
        if error.details is not None:
            fields["error"]["details"] = _json(error.details)
    return fields


def _read_child_finished(body: Json) -> ChildFinished:
    error = body.get("error")
    return ChildFinished(
        node=body["node"],
        index=body["index"],
        attempt=body["attempt"],
        child=UUID(body["child"]),
        status=RunStatus(body["status"]),
        output=_payload(body, "output"),
        error=None if error is None else ErrorInfo(error["type"], error["message"], _payload(error, "details")),
    )


def _cancel(event: CancelRequested) -> Fields:
    return {"mode": event.mode, "nodes": list(event.nodes), "reason": event.reason, "by": event.by}


def _read_cancel(body: Json) -> CancelRequested:
    return CancelRequested(mode=body["mode"], nodes=tuple(body.get("nodes", ())), reason=body["reason"], by=body["by"])


def _wait_opened(event: WaitOpened) -> Fields:
    return {
        **_place(event),
        "child": str(event.child),
        "subflow": event.subflow,
        "names": list(event.names),
        "place": event.place,
        "ignore_earlier": event.ignore_earlier,
    }


def _read_wait_opened(body: Json) -> WaitOpened:
    return WaitOpened(
        child=UUID(body["child"]),
        subflow=body["subflow"],
        node=body["node"],
        index=body["index"],
        names=tuple(body["names"]),
        place=body["place"],
        ignore_earlier=body["ignore_earlier"],
    )


def _signal_given(event: SignalGiven) -> Fields:
    signal = event.signal
    return {
        **_place(event),
        "alternative": event.alternative,
        "place": event.place,
        "names": list(event.names),
        "id": signal.id,
        "name": signal.name,
        "seq": signal.seq,
        "payload": _json(signal.payload),
        "sender": signal.sender,
        "time": signal.created_at.isoformat(),
    }


def _read_signal_given(body: Json) -> SignalGiven:
    time = datetime.fromisoformat(body["time"])
    payload = Payload.of(body["payload"])
    signal = SignalRow(body["id"], body["name"], body["seq"], payload, body["sender"], time)
    return SignalGiven(
        node=body["node"],
        index=body["index"],
        signal=signal,
        alternative=body["alternative"],
        place=body["place"],
        names=tuple(body["names"]),
    )


def _of_child(event: WaitClosed | WaitExpired) -> Fields:
    return {**_place(event), "child": str(event.child)}


_WRITE: Final[Mapping[str, Callable[[Any], Fields]]] = {  # Any: each takes the class that its key names
    "ChildStart": _child_start,
    "ChildFinished": _child_finished,
    "CancelRequested": _cancel,
    "SuspendRequested": lambda event: {"by": event.by},
    "ResumeRequested": lambda event: {"by": event.by},
    "LoopContinued": lambda event: {"node": event.node},
    "ParkedReleased": lambda event: {"nodes": list(event.nodes)},
    "UndoContinued": _place,
    "MailboxContinued": lambda _: {},
    "WaitOpened": _wait_opened,
    "WaitClosed": _of_child,
    "WaitExpired": _of_child,
    "SignalGiven": _signal_given,
    "WaitTimedOut": _place,
}
_READ: Final[Mapping[str, Callable[[Json], Event | ChildStart]]] = {
    "ChildStart": _read_child_start,
    "ChildFinished": _read_child_finished,
    "CancelRequested": _read_cancel,
    "SuspendRequested": lambda body: SuspendRequested(by=body["by"]),
    "ResumeRequested": lambda body: ResumeRequested(by=body["by"]),
    "LoopContinued": lambda body: LoopContinued(node=body["node"]),
    "ParkedReleased": lambda body: ParkedReleased(nodes=tuple(body["nodes"])),
    "UndoContinued": lambda body: UndoContinued(node=body["node"], index=body["index"]),
    "MailboxContinued": lambda _: MailboxContinued(),
    "WaitOpened": _read_wait_opened,
    "WaitClosed": lambda body: WaitClosed(child=UUID(body["child"]), node=body["node"], index=body["index"]),
    "WaitExpired": lambda body: WaitExpired(child=UUID(body["child"]), node=body["node"], index=body["index"]),
    "SignalGiven": _read_signal_given,
    "WaitTimedOut": lambda body: WaitTimedOut(node=body["node"], index=body["index"]),
}
KINDS: Final = tuple(_WRITE)
"""Kinds of messages between runs, as in the column ``kind``."""
