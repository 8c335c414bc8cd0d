"""WorkflowRun objects as the records that the command line shows.

Invariant: pure; whatever a status lacks is empty, since a new object has none.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from partita.cli.backend import NodeSummary, RunDetail, RunSummary
from partita.domain.payload import Json

_TYPED = re.compile(r"(?P<type>[a-z][a-z0-9_]*): (?P<message>.*)", re.DOTALL)
"""The message of a failed run as the operator writes it."""


def status_of(item: Mapping[str, Any]) -> Mapping[str, Any]:
    """The status of an object; empty when it has none yet."""
    return item.get("status") or {}


def newest_first(run: RunSummary) -> tuple[str, str]:
    """Key that sorts runs by their age."""
    return (run.created_at.isoformat() if run.created_at else "", run.name)


def summary_of(item: Mapping[str, Any]) -> RunSummary:
    """One line of a list."""
    status = status_of(item)
    metadata = item["metadata"]
    return RunSummary(
        id=status.get("runId") or "",
        namespace=metadata["namespace"],
        name=metadata["name"],
        definition=item["spec"]["definitionRef"]["name"],
        version=status.get("version"),
        phase=status.get("phase") or "Pending",
        progress=status.get("progress") or "",
        waiting=status.get("waitingFor") or "",
        message=status.get("message") or "",
        created_at=_time(metadata.get("creationTimestamp")),
        finished_at=_time(status.get("finishedAt")),
    )


def detail_of(item: Mapping[str, Any]) -> RunDetail:
    """The run with its nodes and result."""
    status = status_of(item)
    nodes = tuple(
        NodeSummary(
            name=node["name"], state=node["state"], attempt=node.get("attempt", 0), message=node.get("message", "")
        )
        for node in status.get("nodes") or []
    )
    return RunDetail(run=summary_of(item), nodes=nodes, output=status.get("output"), error=_error(status))


def _error(status: Mapping[str, Any]) -> Json:
    """Why the run ended badly, in the parts that the status names; details are in the database only."""
    if status.get("phase") not in ("Failed", "Cancelled"):
        return None
    message = status.get("message") or ""
    typed = _TYPED.fullmatch(message)
    if typed is not None:
        return {"type": typed["type"], "message": typed["message"], "details": None}
    conditions = {each["type"]: each for each in status.get("conditions") or ()}
    return {"type": conditions.get("Succeeded", {}).get("reason", "Failed"), "message": message, "details": None}


def _time(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text) if text else None
