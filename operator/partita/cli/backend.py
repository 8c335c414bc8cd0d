"""What a command can ask of wherever the runs are: the database, or the Kubernetes API.

Invariant: both backends answer the same questions with the same records, held to it by one conformance test. The
database backend sees every run and names it by its id; the cluster backend needs no database access and names a run
by its object's name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from partita.domain.payload import Json


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSummary:
    """One line of a list of runs."""

    id: str
    namespace: str
    name: str
    definition: str
    version: int | None
    phase: str
    progress: str
    """Settled of all nodes, such as ``2/5``."""
    waiting: str
    """What the run waits for, such as ``event approval``; empty when it does not wait."""
    message: str
    created_at: datetime | None
    finished_at: datetime | None

    @property
    def finished(self) -> bool:
        """Whether the run has come to its end."""
        return self.phase in {"Succeeded", "Failed", "Cancelled"}

    @property
    def succeeded(self) -> bool:
        """Whether the run has ended well."""
        return self.phase == "Succeeded"


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeSummary:
    """One node of a run."""

    name: str
    state: str
    attempt: int
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RunDetail:
    """A run with its nodes and result."""

    run: RunSummary
    nodes: tuple[NodeSummary, ...]
    output: Json
    error: Json


@dataclass(frozen=True, slots=True, kw_only=True)
class Submitted:
    """What became of one document of a manifest."""

    kind: str
    namespace: str
    name: str
    id: str
    """The run's id; empty for a definition and where it is not known yet."""
    result: str
    """``created``, ``changed``, ``unchanged`` or ``version 3 deployed``."""

    @property
    def reference(self) -> str:
        """What other commands call this run."""
        return self.id or self.name


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFilter:
    """Which runs a list shows, newest first."""

    namespace: str = ""
    """Empty takes the namespace of the kubeconfig's context; with a database every namespace."""
    all_namespaces: bool = False
    definition: str | None = None
    phases: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    limit: int = 50
    cursor: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunPage:
    """A page of a list; ``cursor`` asks for the next one and is empty at the end."""

    runs: tuple[RunSummary, ...]
    cursor: str = ""


class Backend(Protocol):
    """Where the runs are.

    ``run`` arguments are a run's id or its object's name; an empty ``namespace`` is the usual one of the place. What
    would change a finished run raises ConflictError, an unknown run NotFoundError.
    """

    async def submit(self, namespace: str, documents: Sequence[Mapping[str, Json]]) -> list[Submitted]:
        """Deploy definitions and start runs, in the order written; all are checked before the first is applied."""

    async def get(self, namespace: str, run: str) -> RunDetail:
        """One run; raises NotFoundError."""

    async def list(self, query: RunFilter) -> RunPage:
        """A page of runs."""

    async def signal(self, namespace: str, run: str, name: str, payload: Json, signal_id: str, sender: str) -> str:
        """Send a signal: ``Accepted``, ``Consumed``, ``Already sent``, or ``Sent`` when nothing has answered yet.

        Raises ConflictError when it is refused.
        """

    async def suspend(self, namespace: str, run: str, *, suspended: bool) -> bool:
        """Suspend, or resume, a run; False when nothing has answered yet."""

    async def cancel(self, namespace: str, run: str, mode: str, reason: str) -> bool:
        """Cancel a run; mode is ``Graceful`` or ``Now``. False when nothing has answered yet."""

    async def close(self) -> None:
        """Give back connections."""
