"""What waits in a lane for a transaction: one thing that is to happen to one run.

Invariant: a submission is answered exactly once, after the transaction that settled it; until then it may be part of
any number of transactions that did not commit, and nothing of those is kept in it. Kinds differ in their fence: the
row whose deletion says that the event may happen.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from partita.domain.payload import Payload
from partita.domain.state.effects import TimerKey
from partita.domain.state.events import Event, RunStarted, SignalReceived
from partita.domain.state.rows import NodeKey, ReadyKey
from partita.engine.requests import Offer, Report, StartRequest, Version
from partita.store.fences import Demand
from partita.store.starts import RunKey


@dataclass(slots=True, eq=False)
class Submission:
    """Base of all kinds."""

    run_id: UUID
    future: asyncio.Future[Any]
    expires: float
    """Loop time after which it is answered with Unavailable instead of being tried again."""
    skips: int = field(default=0, init=False)
    """How often its run was skipped because another process held it."""
    rank: int = field(default=1, init=False)
    """Order among the submissions of one run in one batch: signals (which beat a deadline that passed at the same
    time), then what has a fence, then controls, then messages in the order in which they were sent."""

    def answer(self, result: object) -> None:
        """Tell the caller, if it still listens."""
        if not self.future.done():
            self.future.set_result(result)

    def fail(self, error: Exception) -> None:
        """Tell the caller that nothing happened, or that nobody knows."""
        if not self.future.done():
            self.future.set_exception(error)


@dataclass(slots=True, eq=False)
class Start(Submission):
    """Start a run; answered with StartReply, or None when its version is no longer the one to start."""

    request: StartRequest
    version: Version
    input: Payload
    input_hash: str
    event: RunStarted
    keys: tuple[RunKey, ...]
    inbox_id: int | None = None
    decided: bool = False
    """A run decided on exactly this version, so that it starts even if it was withdrawn since."""
    tried: bool = False
    """It was sent, and the answer was lost: if the run exists, made by the same request, this is what has made it."""


@dataclass(slots=True, eq=False)
class Happening(Submission):
    """An event that nothing fences; answered with Reply. With ``inbox_id``, the inbox row is its fence."""

    event: Event
    inbox_id: int | None = None

    def __post_init__(self) -> None:
        self.rank = 0 if isinstance(self.event, SignalReceived) else 2 + (self.inbox_id or 0)

    @property
    def is_message(self) -> bool:
        """Whether another run, or this one, sent it: such are applied in their order."""
        return self.inbox_id is not None and not isinstance(self.event, SignalReceived)


@dataclass(slots=True, eq=False)
class Reported(Submission):
    """A worker's report; answered with ReportReply."""

    report: Report
    offer: Offer | None


@dataclass(slots=True, eq=False)
class LeaseEnded(Submission):
    """The sweeper takes an attempt away; answered with Reply."""

    demand: Demand
    key: NodeKey
    attempt: int
    lease_id: UUID


@dataclass(slots=True, eq=False)
class TimerFell(Submission):
    """A timer seems due; answered with Reply."""

    timer: TimerKey


@dataclass(slots=True, eq=False)
class ReadyExpired(Submission):
    """Nobody seems to have claimed an attempt in time; answered with Reply."""

    key: NodeKey
    attempt: int
    ready: ReadyKey
