"""One transaction's view of what it settles: turns, and the runs they belong to.

Invariant: nothing here outlives the transaction. When it does not commit, the submissions are tried again with new
turns, so that no half-made decision can leak into the next attempt.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from uuid import UUID

from partita.domain.errors import ConflictError, EngineError, PartitaError
from partita.domain.state.effects import Effects
from partita.domain.state.events import Event, Reply
from partita.domain.state.mailbox import MAILBOX_FULL
from partita.domain.state.rows import NodeKey
from partita.domain.state.slices import Slice
from partita.engine.requests import ClaimedTask, Version
from partita.engine.submissions import Submission
from partita.store.writes import NewLease


@dataclass(slots=True, eq=False)
class Turn:
    """A submission's part in one transaction."""

    submission: Submission
    event: Event | None = None
    """What happened, once the fence allowed it."""
    decided: Effects | None = None
    """The effects of this event alone, from which its answer is made."""
    next: ClaimedTask | None = None
    answer: object = None
    settled: bool = False
    """It has its answer and takes no part in the decisions."""

    def settle(self, answer: object) -> None:
        """Give the answer, or the exception, that the commit will bring."""
        self.answer, self.settled = answer, True


@dataclass(slots=True, eq=False)
class Group:
    """The turns of one run, in the order in which they are decided."""

    run_id: UUID
    version: Version
    slice: Slice
    turns: list[Turn]
    effects: Effects | None = None
    """What all turns together change."""
    handed: dict[NodeKey, NewLease] = field(default_factory=dict)
    remembered: bool = False
    """Its slice is what this process remembers of the run: nothing is read before the first decision."""


class DeliveryRefusedError(ConflictError):
    """A run refuses a row of its inbox and keeps no record of it: the row stays, as a dead letter if it is final."""

    def __init__(self, run_id: UUID, reply: Reply) -> None:
        super().__init__(f"run {run_id}: inbox: refused: {reply.reason}: {reply.message}")
        self.final = reply.reason != MAILBOX_FULL


class EarlierFirstError(ConflictError):
    """A message is not applied before those that were sent to its run earlier: it stays for a moment."""

    def __init__(self, run_id: UUID) -> None:
        super().__init__(f"run {run_id}: inbox: an earlier message has not been applied yet")


class PoisonedError(Exception):
    """Some submissions cannot be decided; the others have to be tried without them."""

    def __init__(self, failures: dict[Submission, Exception]) -> None:
        super().__init__(f"{len(failures)} submissions cannot be decided")
        self.failures = failures


class OverspentError(Exception):
    """The decisions of a batch take too long for one transaction."""

    def __init__(self, size: int) -> None:
        super().__init__(f"expected batches of {size}")
        self.size = size
        """Submissions that one transaction may have instead; fewer than this one had."""


class CollidedError(Exception):
    """Another transaction started one of these runs, or took one of their keys, at the same moment."""


class MonthMissingError(Exception):
    """The month's own tables cannot be used; all months together can."""


def as_engine_error(submission: Submission, error: Exception) -> PartitaError:
    """The error that the sender of a poisoned submission is told."""
    if isinstance(error, PartitaError):
        return error
    text = f"run {submission.run_id}: {type(submission).__name__}: {type(error).__name__}: {error}"
    return EngineError(text, hint=f"partita history {submission.run_id}")
