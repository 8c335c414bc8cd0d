"""A batch's first reads in one statement: lock, load, end leases and read tasks, of a few reports.

Purpose: a lone report waits for round trips more than for work; four of its seven become one. Invariant: a statement
sees the moment before it locked, so what it saw of a run counts only if the version of the run's row that it locked,
which is the newest one, is the one that it saw. Why that is enough:

- Whoever changes records of a run holds its lock, and writes the run's row in the same transaction (``Writes.add``
  sees to it). Had such a transaction ended between the statement's moment and its lock, the row would have another
  place. A place cannot come back: a version that a running statement can see is not removed, so nothing else is stored
  where it stands. An update that was rolled back leaves the row where it was, and changed nothing.
- Who only looked, or only took a fence away, leaves the row as it is, and no record has changed. A fence that is gone
  is not ended twice: what another transaction deleted, a DELETE passes over. One that came in between is missed, and
  tried again by a statement of its own, as is every lease that was not found.
- The table of a month is exchanged under a lock that conflicts with this statement's own, which is taken before its
  moment: the moment comes after the exchange.
- Whatever else is decided upon is read by later statements, under the lock, as ever.

The clock is read after the statement's moment and therefore after the end of every transaction that it sees; nobody
waits in it, so that it is older than the locks by no more than the statement takes. Runs that were changed meanwhile,
and those that were not seen, are read again by the separate statements: nothing of them was touched.

Trade-off: it joins its parts without an index, so that it is for a few runs; large batches, and those that wait for a
lock, keep to a statement a purpose, whose round trips they share.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final
from uuid import UUID

from partita.domain.state.rows import TaskRow
from partita.store.database import Connection, Record
from partita.store.fences import EndedLease, EndedLeases, LeaseFence
from partita.store.slices import Loaded, TaskRequest, run_of, task_of
from partita.store.sql import Sql

_RUNS, _LEASES, _TASKS = 1, 2, 3
"""Parts of the answer, by the first column."""
_STATE: Final = slice(1, 6)
_RUN: Final = slice(1, 44)
"""As in ``load_runs``: the state's columns stand before the run's own."""
_RUN_ID: Final = 7
_UNMOVED: Final = 44
_LEASE: Final = slice(45, 52)
_TASK: Final = slice(52, 77)


@dataclass(slots=True)
class Asked:
    """What one statement is to lock, end and read."""

    runs: Sequence[UUID]
    """Runs to lock."""
    fences: Sequence[LeaseFence]
    """Leases that end by their worker's word."""
    tasks: Sequence[TaskRequest]


@dataclass(slots=True)
class Opened:
    """What it locked, ended and read. Of runs that were changed meanwhile it says nothing."""

    loaded: Loaded
    """With the runs that somebody else holds, which are to be left alone."""
    locked: set[UUID] = field(default_factory=set)
    leases: EndedLeases = field(default_factory=dict)
    tasks: list[tuple[UUID, TaskRow]] = field(default_factory=list)
    """Those of the rows that exist; rows of locked runs that are not here do not."""


async def open_reports(connection: Connection, sql: Sql, asked: Asked) -> Opened:
    """Lock, end and read what is asked for, as the transaction's first statement."""
    rows = await connection.fetch(
        sql("open_reports"),
        asked.runs,
        min(asked.runs),
        max(asked.runs),
        *_columns([fence[:5] for fence in asked.fences], 5),
        *_columns(asked.tasks, 4),
    )
    opened = Opened(Loaded(*rows[0][_STATE]))
    for row in rows:
        _sort(opened, row)
    return opened


def _columns(rows: Sequence[tuple[object, ...]], width: int) -> Sequence[Sequence[object]]:
    """The rows as columns; each is empty when there are no rows."""
    return list(zip(*rows, strict=True)) if rows else [()] * width


def _sort(opened: Opened, row: Record) -> None:
    """Put a row where it belongs; a part without rows is one row of nulls."""
    part = row[0]
    if part == _RUNS and row[_RUN_ID] is not None:
        if row[_UNMOVED]:
            opened.locked.add(row[_RUN_ID])
        if row[_UNMOVED] is not False:
            opened.loaded.runs[row[_RUN_ID]] = run_of(row[_RUN])
    elif part == _LEASES and row[_LEASE.start] is not None:
        run_id, node, index, lease_id, *lease = row[_LEASE]
        opened.leases[run_id, node, index, lease_id] = EndedLease(*lease)
    elif part == _TASKS and row[_TASK.start] is not None:
        opened.tasks.append((row[_TASK.start], task_of(row[_TASK])))
