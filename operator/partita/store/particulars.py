"""Reads about one node: its attempts, and how far undo has come.

Invariant: bounded by what is asked for; attempts are read from the history, which keeps every one of them. Trade-off:
no index leads to a node's part of a history, so that asking costs a look at the history of its run.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from partita.domain.state.rows import ACTIVE, UNDO, ErrorInfo, Loop, NodeState
from partita.store.database import Database
from partita.store.reads import error_of


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptView:
    """An attempt that has ended."""

    index: int
    attempt: int
    outcome: str
    """Completed, Failed, Lost or TimedOut."""
    worker: str
    started_at: datetime | None
    finished_at: datetime
    error: ErrorInfo | None


@dataclass(frozen=True, slots=True)
class UndoneView:
    """What reverses a node: as many rows as the node had that completed."""

    state: NodeState
    """Queued while any is under way, else Failed if any failed, else Completed."""
    progress: Loop


async def attempts(
    database: Database, run_id: UUID, node: str, *, index: int | None = None, limit: int = 50
) -> tuple[AttemptView, ...]:
    """The newest attempts of a node, or of one item of it."""
    rows = await database.fetch("node_attempts", run_id, node, index, limit)
    return tuple(
        AttemptView(
            **{name: row[name] for name in ("index", "attempt", "outcome", "started_at", "finished_at")},
            worker=row["worker_id"] or "",
            error=error_of(row["error"]),
        )
        for row in rows
    )


async def undone(database: Database, run_id: UUID) -> Mapping[str, UndoneView]:
    """By name (``<name>~undo``): what reverses the nodes of a run."""
    counts: dict[str, dict[NodeState, int]] = {}
    for row in await database.fetch("run_undone", run_id, UNDO):
        counts.setdefault(row["node"], {})[NodeState(row["state"])] = row["rows"]
    return {name: _undone(states) for name, states in counts.items()}


def _undone(states: Mapping[NodeState, int]) -> UndoneView:
    active = any(states.get(state) for state in ACTIVE)
    failed = states.get(NodeState.FAILED, 0)
    state = NodeState.QUEUED if active else NodeState.FAILED if failed else NodeState.COMPLETED
    done = states.get(NodeState.COMPLETED, 0)
    return UndoneView(state, Loop(sum(states.values()), completed=done, failed=failed))
