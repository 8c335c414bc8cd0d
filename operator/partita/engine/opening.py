"""The beginning of a transaction: runs are locked and read, by a statement each or all by one.

Invariant: nothing that was read before its run was locked is decided upon, unless the lock proved it unchanged
(``store.opening``). No other statement of the transaction locks a run that existed before. Trade-off: the one statement
suits a few reports and their tasks, which is what a lone run sends; all else takes the usual two, and what they leave
to fences and decisions.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final
from uuid import UUID

from partita.domain.model import Definition
from partita.domain.state import foreseen
from partita.domain.state.rows import TaskRow
from partita.domain.state.slices import Need
from partita.engine import rounds
from partita.engine.admission import versions_of
from partita.engine.fencing import fence_of, supposed
from partita.engine.known_runs import KnownRuns
from partita.engine.memory import Remembered
from partita.engine.requests import Report
from partita.engine.submissions import Reported, Start, Submission
from partita.engine.turns import Group
from partita.store import slices
from partita.store.database import Connection
from partita.store.fences import EndedLeases
from partita.store.opening import Asked, open_reports
from partita.store.slices import Loaded, TaskRequest
from partita.store.sql import Sql

FEW: Final = 16
"""Submissions up to which a batch is opened by one statement."""


@dataclass(slots=True)
class Opening:
    """What a transaction has locked and read so far."""

    loaded: Loaded
    locked: set[UUID]
    ended: EndedLeases = field(default_factory=dict)
    """Leases that were ended for their reports."""
    asked: dict[UUID, list[TaskRequest]] = field(default_factory=dict)
    """Task rows that were looked up, by run."""
    tasks: dict[UUID, list[TaskRow]] = field(default_factory=dict)
    """Those of them that exist."""
    remembered: Remembered | None = None
    """The only run of the transaction, if nothing was read of it."""

    def give(self, group: Group) -> None:
        """Put what was read of a run into its slice."""
        asked = self.asked.get(group.run_id)
        if asked:
            rounds.give(group.slice, asked, self.tasks.get(group.run_id, ()))


async def begin(
    connection: Connection, sql: Sql, submissions: Sequence[Submission], known: KnownRuns, *, wait: bool
) -> Opening:
    """Lock the runs that exist, skipping those that others hold unless ``wait``, and read them."""
    reports = [one.report for one in submissions if isinstance(one, Reported)]
    if len(reports) == len(submissions) <= FEW and not wait:
        return await _at_once(connection, sql, reports, known)
    starts = [one for one in submissions if isinstance(one, Start)]
    existing = sorted({one.run_id for one in submissions if not isinstance(one, Start)})
    locked = await slices.lock_runs(connection, sql, existing, wait=wait) if existing else set()
    ids = [one.run_id for one in submissions]
    return Opening(await slices.load_runs(connection, sql, ids, versions_of(starts)), locked)


async def _at_once(connection: Connection, sql: Sql, reports: Sequence[Report], known: KnownRuns) -> Opening:
    """By one statement; runs that were changed under it, or that it did not see, are locked and read again."""
    by_run: dict[UUID, list[Report]] = {}
    for report in reports:
        by_run.setdefault(report.run_id, []).append(report)
    wanted = {
        run_id: _ahead(run_id, of_run, known.definition(run_id), lone=len(by_run) == 1)
        for run_id, of_run in by_run.items()
    }
    tasks = [one for of_run in wanted.values() for one in of_run]
    fences = [fence_of(report) for report in reports]
    opened = await open_reports(connection, sql, Asked(sorted(by_run), fences, tasks))
    opening = Opening(opened.loaded, opened.locked, opened.leases)
    opening.asked = {run_id: wanted[run_id] for run_id in opened.locked}
    for run_id, task in opened.tasks:
        opening.tasks.setdefault(run_id, []).append(task)
    doubtful = sorted(by_run.keys() - opened.loaded.runs.keys())
    if doubtful:
        await _again(connection, sql, opening, doubtful)
    return opening


def _ahead(run_id: UUID, reports: Iterable[Report], definition: Definition | None, *, lone: bool) -> list[TaskRequest]:
    """The task rows that the reports of one run will read; none when it is not known what the run executes."""
    if definition is None:
        return []
    need = Need()
    for report in reports:
        need.merge(foreseen(definition, supposed(report)))
    if lone:
        need = rounds.further(need, definition)
    wanted = [TaskRequest(run_id, *key, payload=True) for key in need.outputs]
    if not need.whole:
        wanted += [TaskRequest(run_id, *key, payload=False) for key in need.rows - need.outputs]
    return wanted


async def _again(connection: Connection, sql: Sql, opening: Opening, ids: Sequence[UUID]) -> None:
    """Lock and read these by a statement each, as if they had not been seen. The later clock counts."""
    opening.locked |= await slices.lock_runs(connection, sql, ids)
    first, opening.loaded = opening.loaded, await slices.load_runs(connection, sql, ids)
    opening.loaded.runs |= first.runs
