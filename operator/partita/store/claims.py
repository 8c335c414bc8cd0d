"""Claims in SQL: from ready_tasks to task_leases in one statement, and the inputs of what was taken.

Invariant: a claim is one statement, so it is one transaction and one round trip, and it takes no lock but those of the
rows it moves. When the connection is lost under it, LostError says that its outcome is unknown, and ``look_up`` finds
it by its claim id.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple
from uuid import UUID

import orjson

from partita.domain.errors import PartitaError
from partita.store.database import Record
from partita.store.session import Session


class ReadyGroup(NamedTuple):
    """Ready tasks of one queue, lane and level of priority; claimers remember a position in each."""

    queue: str
    lane: int
    priority: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimQuery:
    """What a claimer asks for."""

    starts: Mapping[ReadyGroup, int]
    """Groups to look into, with the ``seq`` from which each is read."""
    limit: int
    window: int
    """Candidates read of each group; more than the limit where several claimers compete."""
    claim_id: UUID
    worker_id: str
    namespaces: Sequence[str] | None
    protocol: int
    deep: bool
    """Tell the first candidate of each group."""


@dataclass(frozen=True, slots=True)
class ClaimAnswer:
    """What a claim took and saw."""

    taken: Sequence[Record]
    candidates: int
    """Rows seen, taken or not."""
    firsts: Mapping[ReadyGroup, int]
    """The ``seq`` of the first row seen in each group, if that was asked for."""
    position: int
    """The database's clock as a ``seq``."""
    open: bool
    """False while the engine is paused: then nothing was looked at."""
    obeyed: bool
    """False when the schema demands a newer engine protocol than this process speaks."""


class ClaimStore:
    """Claims on a session that heartbeats may share."""

    def __init__(self, session: Session) -> None:
        self._session = session

    async def claim(self, query: ClaimQuery) -> ClaimAnswer:
        """Take ready tasks; raises LostError when it is unknown whether any were taken."""
        groups = tuple(query.starts)
        rows = await self._session.fetch(
            "claim_tasks",
            [group.queue for group in groups],
            [group.lane for group in groups],
            [group.priority for group in groups],
            list(query.starts.values()),
            query.limit,
            query.window,
            query.claim_id,
            query.worker_id,
            query.namespaces,
            query.protocol,
            query.deep,
        )
        taken = [row for row in rows if row["run_id"] is not None]
        head = rows[0]
        firsts = {ReadyGroup(*group): seq for *group, seq in orjson.loads(head["firsts"] or "[]")}
        return ClaimAnswer(taken, head["candidates"], firsts, head["position"], head["open"], head["obeyed"])

    async def look_up(self, claim_id: UUID) -> Sequence[Record]:
        """The tasks that a claim of unknown outcome took; empty when it was not committed."""
        return await self._session.read("find_claim", claim_id)

    async def inputs(self, tasks: Sequence[Record]) -> list[str]:
        """Input of each task as JSON text, in the same order."""
        runs = [task["run_id"] for task in tasks]
        nodes, indexes = [task["node"] for task in tasks], [task["index"] for task in tasks]
        rows = await self._inputs((runs, nodes, indexes, min(runs), max(runs)))
        return [row["input"] or "null" for row in rows]

    async def _inputs(self, values: tuple[Sequence[UUID], Sequence[str], Sequence[int], UUID, UUID]) -> list[Record]:
        """From the current month's table, if it has all of them and may be read."""
        months = self._session.months
        sql = months.sql(values[-2].int, values[-1].int)
        try:
            return await self._session.read("claimed_inputs", *values, sql=sql)
        except PartitaError as error:
            if error.__cause__ is None or not months.avoid(error.__cause__, sql):
                raise
        return await self._session.read("claimed_inputs", *values)
