"""Summaries of runs for the tests of statuses."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from partita.domain.state.rows import RunStatus
from partita.engine.projection import NodeSummary, ObjectRef, RunSummary

T0 = datetime(2026, 11, 29, 12, 0, 0, tzinfo=UTC)
RUN_ID = UUID("019ad000-0000-7000-8000-000000000001")


def at(seconds: float) -> datetime:
    """So many seconds after the run was created."""
    return T0 + timedelta(seconds=seconds)


def summary(**changes: Any) -> RunSummary:
    """A running run, changed."""
    fields: dict[str, Any] = {
        "run_id": RUN_ID,
        "revision": 3,
        "object": ObjectRef(uid="u-1", namespace="shop", name="order-1", generation=1),
        "definition": "order",
        "version": 2,
        "status": RunStatus.RUNNING,
        "stage": "main",
        "reason": "",
        "done": 2,
        "total": 5,
        "created_at": T0,
        "started_at": at(0.5),
        "finished_at": None,
        "suspension_at": None,
        "error": None,
        "output": None,
        "nodes": (),
        "waits": (),
        "signals": (),
        "now": at(9),
    }
    return RunSummary(**{**fields, **changes})


def node(name: str, state: str, *, attempt: int = 1, message: str = "", **more: Any) -> NodeSummary:
    """One node."""
    return NodeSummary(name=name, state=state, attempt=attempt, message=message, **more)
