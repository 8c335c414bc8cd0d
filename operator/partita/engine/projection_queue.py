"""The queue of statuses to write: what is due, and what has been shown.

Purpose: the operator asks here what to write into which object's status, and says here what it wrote. Invariant: a
revision is forgotten only when the object shows it and no newer one came in the meantime, so the status converges to
the record whatever is killed in between. A projector of an earlier term sees that the epoch has moved on and ends.
Trade-off: a summary may be newer than the revision it carries; the next round then writes it once more.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from uuid import UUID

from partita.domain.errors import PartitaError
from partita.engine.projection import (
    NODES_SHOWN,
    SIGNALS_SHOWN,
    SUSPENSION_EVENTS,
    Refusal,
    RunSummary,
    refusal_of,
    summary_of,
)
from partita.settings import LimitSettings
from partita.store.projection import ProjectionStore, Row


class SupersededError(PartitaError):
    """Another operator has begun a later term; this one has to end."""

    reason = "Superseded"


class Projections:
    """The engine's side of status projection, for one term of one operator."""

    def __init__(self, store: ProjectionStore, limits: LimitSettings, engine_id: str, epoch: int) -> None:
        self._store = store
        self._limits = limits
        self._engine_id = engine_id
        self._epoch = epoch

    async def due(self, limit: int) -> list[tuple[UUID, int]]:
        """(run id, revision) of the statuses that are due, the longest due first. Raises SupersededError."""
        epoch, runs = await self._store.due(limit)
        if epoch != self._epoch:
            raise SupersededError(f"operator: term {self._epoch} is over; the database is at {epoch}")
        return runs

    async def summaries(self, ids: Sequence[UUID], listed: Mapping[UUID, Sequence[str]]) -> list[RunSummary]:
        """Summaries of these runs, without those that are gone or belong to no object of this engine.

        ``listed``: ids of signals that stand in the spec of the run's object, so that they are among the shown ones.
        """
        rows = await self._store.statuses(
            ids,
            listed,
            output_bytes=self._limits.status_output_bytes,
            nodes=NODES_SHOWN,
            signals=SIGNALS_SHOWN,
            suspension_events=SUSPENSION_EVENTS,
        )
        nodes, waiting, signals = _by_run(rows.nodes), _by_run(rows.waiting), _by_run(rows.signals)
        suspensions = {row["run_id"]: row["at"] for row in rows.suspensions}
        return [
            summary_of(row, nodes[row["id"]], waiting[row["id"]], signals[row["id"]], suspensions.get(row["id"]))
            for row in rows.runs
            if row["cr_uid"] and row["engine_id"] == self._engine_id
        ]

    async def shown(self, revisions: Sequence[tuple[UUID, int]]) -> None:
        """These revisions stand in the objects (or have none to stand in)."""
        await self._store.done(revisions, self._epoch)

    async def postpone(self, ids: Sequence[UUID], pause_ms: int) -> None:
        """Try these runs again later."""
        await self._store.postpone(ids, pause_ms)

    async def requeue(self, shown: Sequence[tuple[UUID, int]]) -> None:
        """Queue the runs whose record is newer than the revision that their object shows."""
        await self._store.requeue(shown)

    async def refusals(self, limit: int) -> list[Refusal]:
        """Refusals that their objects do not show yet."""
        return [refusal_of(row) for row in await self._store.refusals_due(self._engine_id, limit)]

    async def refusals_shown(self, refusals: Iterable[Refusal]) -> None:
        """These refusals stand in the objects."""
        shown = [(refusal.object.uid, refusal.object.generation, refusal.reason) for refusal in refusals]
        if shown:
            await self._store.refusals_shown(self._engine_id, shown)

    async def postpone_refusals(self, refusals: Iterable[Refusal], pause_ms: int) -> None:
        """Try these refusals again later."""
        await self._store.postpone_refusals(self._engine_id, [refusal.object.uid for refusal in refusals], pause_ms)


def _by_run(rows: Sequence[Row]) -> defaultdict[UUID, list[Row]]:
    grouped: defaultdict[UUID, list[Row]] = defaultdict(list)
    for row in rows:
        grouped[row["run_id"]].append(row)
    return grouped
