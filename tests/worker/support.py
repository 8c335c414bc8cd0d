"""Shapes that worker tests share."""

# ruff: noqa: A002 - input and type are the words of the SDK

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from uuid import UUID, uuid4

from uuid6 import uuid7

from partita.domain.payload import Json, Payload
from partita.engine.requests import ClaimedTask


def claimed(
    *,
    input: Json = None,
    type: str = "charge-card",
    attempt: int = 1,
    timeout_ms: int = 300_000,
    run_id: UUID | None = None,
) -> ClaimedTask:
    """A task as a claim returns it."""
    return ClaimedTask(
        run_id=run_id or uuid7(),
        generation=0,
        node="charge",
        index=0,
        attempt=attempt,
        lease_id=uuid4(),
        type=type,
        queue="default",
        namespace="shop",
        input=Payload.of(input),
        deadline=datetime.now(UTC) + timedelta(milliseconds=timeout_ms),
        timeout_ms=timeout_ms,
    )
