"""WorkflowRun objects as the records that the command line shows.

Invariant: pure; whatever a status lacks is empty, since a new object has none.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from partita.cli.backend import ChildLine, NodeLine, RunDetail, RunLine
from partita.domain.errors import DefinitionNotFoundError
from partita.domain.manifest import parse_definition
from partita.domain.model import Definition
from partita.domain.payload import Json
from partita.domain.state.rows import Stage, is_undo
from partita.kube.words import describe, not_accepted


def readable(item: Mapping[str, Any], version: int | None) -> Definition | None:
    """What a WorkflowDefinition object says, if it is what runs of this version take.

    Raises DefinitionNotFoundError where no version of it was ever accepted.
    """
    status = status_of(item)
    definition, problems = parse_definition(item)
    if definition is not None:
        return definition if version is None or version == status.get("version") else None
    if not status.get("version"):
        place = f"{item['metadata']['namespace']}/{item['metadata']['name']}"
        raise DefinitionNotFoundError(not_accepted(place, problems[0]), hint=describe(item["metadata"]))
    return None


def status_of(item: Mapping[str, Any]) -> Mapping[str, Any]:
    """The status of an object; empty when it has none yet."""
    return item.get("status") or {}


def newest_first(run: RunLine) -> tuple[str, str]:
    """Key that sorts runs by their age."""
    return (run.created_at.isoformat() if run.created_at else "", run.name)


def run_line(item: Mapping[str, Any]) -> RunLine:
    """One line of a list."""
    status = status_of(item)
    metadata = item["metadata"]
    return RunLine(
        id=status.get("runId") or "",
        namespace=metadata["namespace"],
        name=metadata["name"],
        definition=item["spec"]["definitionRef"]["name"],
        version=status.get("version"),
        phase=status.get("phase") or "Pending",
        stage=status.get("stage") or Stage.MAIN.value,
        progress=status.get("progress") or "",
        waiting=status.get("waitingFor") or "",
        message=status.get("message") or "",
        created_at=_time(metadata.get("creationTimestamp")),
        finished_at=_time(status.get("finishedAt")),
    )


def detail_of(item: Mapping[str, Any]) -> RunDetail:
    """The run with its nodes and result."""
    status = status_of(item)
    nodes = tuple(_node(node) for node in status.get("nodes") or [])
    return RunDetail(run=run_line(item), nodes=nodes, output=status.get("output"), error=_error(status))


def _node(node: Mapping[str, Any]) -> NodeLine:
    child = node.get("runId")
    return NodeLine(
        name=node["name"],
        stage=node.get("stage") or (Stage.UNDO if is_undo(node["name"]) else Stage.MAIN).value,
        state=node["state"],
        attempt=node.get("attempt", 0),
        message=node.get("message", ""),
        children=(ChildLine(id=child, index=None, phase=""),) if child else (),
    )


def _error(status: Mapping[str, Any]) -> Json:
    """Why the run ended badly, as the status says it; details are in the database only."""
    error = status.get("error")
    return {**error, "details": None} if error else None


def _time(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text) if text else None
