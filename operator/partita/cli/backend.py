"""What a command can ask of wherever the runs are: the database, or the Kubernetes API.

Invariant: both backends answer the same questions with the same records, held to it by one conformance test. The
database backend sees every run and names it by its id; the cluster backend needs no database access and names a run
by its object's name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from partita.domain.errors import PartitaError
from partita.domain.payload import Json


@dataclass(frozen=True, slots=True, kw_only=True)
class RunLine:
    """One line of a list of runs."""

    id: str
    namespace: str
    name: str
    definition: str
    """With the subflow of it that the run executes, if it does: ``order/packLine``."""
    version: int | None
    phase: str
    stage: str
    """The part of an unfinished run that executes: ``main``, ``undo`` or ``finally``."""
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
class ChildLine:
    """A child run, below the node that started it."""

    id: str
    index: int | None
    """The item or iteration that started it; None for a node without a loop."""
    phase: str
    """Empty where only the database knows it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeLine:
    """One node of a run. A loop is one node, whatever the number of its items."""

    name: str
    stage: str
    """The part of the run that it belongs to: ``main``, ``undo`` or ``finally``."""
    state: str
    attempt: int
    message: str
    """Progress of a loop, the last error, what it waits for."""
    children: tuple[ChildLine, ...] = ()
    more_children: int = 0
    """How many are not among them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunDetail:
    """A run with its nodes and result."""

    run: RunLine
    nodes: tuple[NodeLine, ...]
    output: Json
    error: Json
    events: tuple[str, ...] = ()
    """Names of events that it waits for, its subflows too; only the database tells them all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptLine:
    """An attempt that has ended."""

    index: int
    attempt: int
    outcome: str
    """Completed, Failed, Lost or TimedOut."""
    worker: str
    started_at: datetime | None
    finished_at: datetime
    error: Json


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemLine:
    """An item or iteration of a loop, or a row that reverses one."""

    index: int
    state: str
    attempt: int
    message: str
    child: str
    """Id of its child run; empty without one."""
    key: str = ""
    """Its key, where the loop is over an object."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeQuery:
    """What to show of one node."""

    name: str
    item: str | None = None
    """Only this item or iteration, by its number or its key, with its own input, output and attempts."""
    after: int = -1
    """Items after this one."""
    limit: int = 50
    """Most items, and most attempts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeDetail:
    """Everything about one node, or about one item of it."""

    run: str
    """The run's id."""
    name: str
    index: int | None
    """The item that was asked for."""
    kind: str
    state: str
    attempt: int
    queue: str
    worker: str
    message: str
    input: Json
    output: Json
    """Of a loop that has not completed, what its items gave so far."""
    event: Json
    error: Json
    items: tuple[ItemLine, ...]
    attempts: tuple[AttemptLine, ...]
    """The newest first."""
    key: str = ""
    """Of the item that was asked for, where the loop is over an object."""
    progress: str = ""
    """How a loop gets on."""
    child: str = ""
    """Id of the child run of its latest attempt."""
    cursor: int | None = None
    """Where the next page of items begins: ``--after``; None at the end."""


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


class PartlySubmittedError(PartitaError):
    """A document failed after others had been applied."""

    reason = "PartlySubmitted"

    def __init__(self, done: tuple[Submitted, ...], error: PartitaError) -> None:
        super().__init__(error.message, hint=error.hint)
        self.done = done
        """What was applied."""
        self.error = error
        """Why the rest was not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunQuery:
    """Which runs a list shows, newest first."""

    namespace: str = ""
    """Empty takes the namespace of the kubeconfig's context; with a database every namespace."""
    all_namespaces: bool = False
    definition: str | None = None
    phases: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    attributes: Mapping[str, str] = field(default_factory=dict)
    """All of them, with these values."""
    started_by: str | None = None
    since: datetime | None = None
    before: datetime | None = None
    parent: str | None = None
    """Only children of this run, those of subflows too, which no other list has."""
    limit: int = 50
    cursor: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunList:
    """A page of a list; ``cursor`` asks for the next one and is empty at the end."""

    runs: tuple[RunLine, ...]
    cursor: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunTotal:
    """How many runs a list would have in all; at least so many where ``exact`` is false, as counting has a limit."""

    count: int
    exact: bool


class Backend(Protocol):
    """Where the runs are.

    ``run`` arguments are a run's id or its object's name; an empty ``namespace`` is the usual one of the place. What
    would change a finished run raises ConflictError, an unknown run NotFoundError.
    """

    async def submit(self, namespace: str, documents: Sequence[Mapping[str, Json]]) -> list[Submitted]:
        """Deploy the definitions, then start the runs; all are checked before the first is applied.

        Raises PartlySubmittedError when one fails nevertheless after others were applied.
        """

    async def get(self, namespace: str, run: str) -> RunDetail:
        """One run; raises NotFoundError."""

    async def node(self, namespace: str, run: str, query: NodeQuery) -> NodeDetail:
        """One node of a run; raises NotFoundError, and InvalidError where only the database can tell."""

    async def list(self, query: RunQuery) -> RunList:
        """A page of runs. It may be short, or empty, and still have a cursor, where few of many runs fit."""

    async def count(self, query: RunQuery) -> RunTotal:
        """How many runs fit, counted up to a limit; ``limit`` and ``cursor`` mean nothing here."""

    async def signal(self, namespace: str, run: str, name: str, payload: Json, signal_id: str, sender: str) -> str:
        """Send a signal: ``Accepted``, ``Consumed``, ``Already sent``, or ``Sent`` when nothing has answered yet.

        Raises ConflictError when it is refused.
        """

    async def suspend(self, namespace: str, run: str, *, suspended: bool) -> bool:
        """Suspend, or resume, a run; False when nothing has answered yet."""

    async def cancel(self, namespace: str, run: str, mode: str, reason: str) -> bool:
        """Cancel a run; mode is ``Graceful`` or ``Now``. False when nothing has answered yet."""

    async def cancel_nodes(self, namespace: str, run: str, nodes: Sequence[str], reason: str) -> bool:
        """Cancel the unsettled ones of these nodes; the run goes on. False when nothing has answered yet."""

    async def close(self) -> None:
        """Give back connections."""
