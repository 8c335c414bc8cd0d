"""What the operator's own duties read and write: due statuses, refused objects, its term, and open runs.

Invariant: every statement may be sent twice (upserts, deletes and guarded updates), so that a lost answer is repaired
by asking again. One connection serves all of it, one transaction at a time: these duties are one process's and small.
The trade-off is that a slow read of statuses delays the recording of a refusal by the same milliseconds.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, cast
from uuid import UUID

from partita.store.database import ONE_SNAPSHOT, Connection, Database
from partita.store.errors import boundary

Row = Mapping[str, Any]
"""One row of an answer by column name."""


@dataclass(frozen=True, slots=True)
class StatusRows:
    """Everything that the statuses of one batch of runs are made of."""

    runs: Sequence[Row]
    nodes: Sequence[Row]
    waiting: Sequence[Row]
    signals: Sequence[Row]
    suspensions: Sequence[Row]


@dataclass(frozen=True, slots=True, kw_only=True)
class RefusalRow:
    """``run_refusals``: an object that has no run."""

    cr_uid: str
    cr_generation: int
    cr_namespace: str
    cr_name: str
    definition: str
    waiting: bool
    reason: str
    message: str


class ProjectionStore:
    """The operator's statements on one dedicated connection. Errors are those of ``domain.errors``."""

    def __init__(self, database: Database, purpose: str = "operator") -> None:
        """``purpose``: the connection's name for whoever looks at the server."""
        self._sql = database.sql
        self._connection = database.dedicated(purpose)
        self._lock = asyncio.Lock()

    async def close(self) -> None:
        """Give the connection back."""
        await self._connection.close()

    async def due(self, limit: int) -> tuple[int, list[tuple[UUID, int]]]:
        """The present epoch, and (run id, revision) of the statuses that are due."""
        rows = await self._fetch("projection_due", limit)
        return rows[0]["epoch"], [(row["run_id"], row["revision"]) for row in rows if row["run_id"] is not None]

    async def statuses(
        self,
        ids: Sequence[UUID],
        listed: Mapping[UUID, Sequence[str]],
        *,
        output_bytes: int,
        nodes: int,
        signals: int,
        suspension_events: Sequence[str],
    ) -> StatusRows:
        """Rows for the statuses of these runs. ``listed`` names signals that must be among them, by run.

        All are of one moment: a status whose waits were newer than its nodes would show a step that runs while nothing
        is waited for, and may stand so until the next change.
        """
        low, high = min(ids), max(ids)
        pairs = [(run, signal) for run, names in listed.items() for signal in names]
        runs_listed, ids_listed = [run for run, _ in pairs], [signal for _, signal in pairs]
        with boundary():
            async with self._lock, self._connection.transaction(first=ONE_SNAPSHOT) as connection:
                runs = await self._select(connection, "projection_runs", ids, low, high, output_bytes)
                suspended = [row["id"] for row in runs if row["applied_suspend"] or row["cr_generation"] > 1]
                return StatusRows(
                    runs,
                    await self._select(connection, "projection_nodes", ids, low, high, nodes),
                    await self._select(connection, "projection_waiting", ids, low, high),
                    await self._select(
                        connection, "projection_signals", ids, low, high, signals, runs_listed, ids_listed
                    ),
                    await self._select(connection, "projection_suspensions", suspended, low, high, suspension_events)
                    if suspended
                    else (),
                )

    async def done(self, shown: Sequence[tuple[UUID, int]], epoch: int) -> None:
        """Forget these revisions; newer ones stay queued."""
        await self._fetch("projection_done", [run for run, _ in shown], [revision for _, revision in shown], epoch)

    async def postpone(self, ids: Sequence[UUID], pause_ms: int) -> None:
        """Let these statuses be due again later."""
        await self._fetch("projection_postpone", ids, pause_ms)

    async def requeue(self, shown: Sequence[tuple[UUID, int]]) -> None:
        """Queue those of these runs whose record is newer than the revision their object shows."""
        ids = [run for run, _ in shown]
        if ids:
            await self._fetch("projection_requeue", ids, [revision for _, revision in shown], min(ids), max(ids))

    async def object_of(self, run_id: UUID) -> Row | None:
        """cr_uid, namespace and name of the object that a run belongs to; None for a run without one."""
        rows = await self._fetch("run_object", run_id)
        return rows[0] if rows else None

    async def adopt(self, run_id: UUID, *, gone: str, cr_uid: str, name: str) -> bool:
        """Give the run of an object that is gone to another one; False when it is not that object's any more."""
        return bool(await self._fetch("run_adopt", run_id, gone, cr_uid, name))

    async def record_refusal(self, engine_id: str, refusal: RefusalRow) -> None:
        """Remember why an object has no run."""
        await self._fetch(
            "refusal_record",
            engine_id,
            refusal.cr_uid,
            refusal.cr_generation,
            refusal.waiting,
            refusal.cr_namespace,
            refusal.cr_name,
            refusal.definition,
            refusal.reason,
            refusal.message,
        )

    async def forget_refusals(self, engine_id: str, cr_uids: Sequence[str]) -> None:
        """These objects have a run now, or are gone."""
        await self._fetch("refusal_forget", engine_id, cr_uids)

    async def refusals_due(self, engine_id: str, limit: int) -> list[Row]:
        """Refusals that their objects do not show yet."""
        return await self._fetch("refusals_due", engine_id, limit)

    async def refusals_shown(self, engine_id: str, shown: Sequence[tuple[str, int, str]]) -> None:
        """These (cr uid, generation, reason) stand in the objects' statuses now."""
        columns = [list(column) for column in zip(*shown, strict=True)]
        await self._fetch("refusal_shown", engine_id, *columns)

    async def postpone_refusals(self, engine_id: str, cr_uids: Sequence[str], pause_ms: int) -> None:
        """Let these refusals be due again later."""
        await self._fetch("refusal_postpone", engine_id, cr_uids, pause_ms)

    async def refusals_waiting(self, engine_id: str, namespace: str, definition: str) -> list[Row]:
        """Objects that wait for this definition."""
        return await self._fetch("refusals_waiting", engine_id, namespace, definition)

    async def refusals_recorded(self, engine_id: str) -> list[Row]:
        """All refused objects."""
        return await self._fetch("refusals_recorded", engine_id)

    async def engine_state(self, patience_ms: int | None = None) -> Row:
        """engine_id, epoch and paused; ``patience_ms`` bounds the wait for a lost database."""
        return cast("Row", (await self._fetch("engine_read", patience_ms=patience_ms))[0])

    async def claim_engine(self, engine_id: str) -> int | None:
        """Begin a new term; its epoch, or None when the schema belongs to another engine."""
        rows = await self._fetch("engine_claim", engine_id)
        return cast("int", rows[0]["epoch"]) if rows else None

    async def pause(self, paused: bool, epoch: int) -> None:
        """Stop or resume the engine everywhere, if this epoch is still the present one."""
        await self._fetch("engine_pause", paused, epoch)

    async def open_runs(self, cluster_uid: str, engine_id: str) -> list[Row]:
        """Unfinished runs that objects of this cluster ordered: run_id, cr_uid, namespace, name."""
        return await self._fetch("resync_open_runs", cluster_uid, engine_id)

    async def deployed_definitions(self, created_by: str) -> list[Row]:
        """(namespace, name) of deployed definitions whose ``created_by`` begins with this."""
        return await self._fetch("resync_definitions", created_by)

    async def now(self) -> datetime:
        """The database's clock."""
        return cast("datetime", (await self._fetch("database_now"))[0][0])

    async def _fetch(self, name: str, *values: object, patience_ms: int | None = None) -> list[Any]:
        with boundary():
            async with self._lock, self._connection.transaction(patience_ms) as connection:
                return await self._select(connection, name, *values)

    async def _select(self, connection: Connection, name: str, *values: object) -> list[Any]:
        return await connection.fetch(self._sql(name), *values)
