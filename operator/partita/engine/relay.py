"""Starts and signals as rows of ``run_inbox``: the form in which they wait for their transaction.

Invariant: reading back what was written gives an equal request, so that a relayed start is the start that was asked
for. Rows may be read by a later version of the program: fields are only ever added.
"""

from __future__ import annotations

from dataclasses import asdict
from datetime import datetime
from typing import Any
from uuid import UUID

from partita.domain.payload import Json, Payload, encode
from partita.domain.state.events import SignalReceived
from partita.engine.requests import CrRef, StartRequest

_PLAIN = ("namespace", "definition", "version", "idempotency_key", "priority", "timeout_ms", "started_by")


def signal_body(signal: SignalReceived) -> Json:
    """A signal as JSON."""
    return {"id": signal.id, "name": signal.name, "payload": signal.payload.value, "sender": signal.sender}


def signal_event(body: Json) -> SignalReceived:
    """The signal that ``signal_body`` wrote."""
    return SignalReceived(
        id=body["id"], name=body["name"], payload=Payload.parse(encode(body["payload"])), sender=body["sender"]
    )


def start_body(request: StartRequest, run_id: UUID) -> Json:
    """A start request as JSON. Controls belong to objects of Kubernetes, which are never started this way."""
    body: dict[str, Any] = {name: getattr(request, name) for name in _PLAIN}
    body["name"] = request.name
    body["input"] = request.input
    body["run_id"], body["request_id"] = str(run_id), str(request.request_id)
    body["start_at"] = request.start_at.isoformat() if request.start_at else None
    body["tags"], body["attributes"] = list(request.tags), dict(request.attributes)
    body["cr"] = asdict(request.cr) if request.cr else None
    return body


def start_request(body: Json) -> StartRequest:
    """The request that ``start_body`` wrote."""
    return StartRequest(
        **{name: body[name] for name in _PLAIN},
        name=body.get("name", ""),
        input=body["input"],
        run_id=UUID(body["run_id"]),
        request_id=UUID(body["request_id"]),
        start_at=datetime.fromisoformat(body["start_at"]) if body["start_at"] else None,
        tags=tuple(body["tags"]),
        attributes=body["attributes"],
        cr=CrRef(**body["cr"]) if body["cr"] else None,
    )
