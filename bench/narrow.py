"""Updates of bare SQL: the columns that an ordinary step changes, found by key in the same statement.

The engine updates rows at the places where it has read them. Bare SQL reads nothing, so that it has to look them up;
everything else is as in the engine's ``advance_runs`` and ``settle_tasks``. Invariant: every column that the
benchmark's transitions change is written, which the test of equal rows shows.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final
from uuid import UUID

from partita.store import columns
from partita.store.columns import Row
from partita.store.database import Connection
from partita.store.sql import Sql
from partita.store.writes import Writes

_RUNS: Final = """
UPDATE :"schema".workflow_runs AS run
SET active = new.active, done = new.done, seq = new.seq, revision = new.revision, finished_at = new.finished_at,
    status = new.status, output_json = coalesce(new.output_json, run.output_json)
FROM (
    SELECT unnest($1::uuid[]) AS id, unnest($2::int[]) AS active, unnest($3::int[]) AS done, unnest($4::int[]) AS seq,
    unnest($5::bigint[]) AS revision, unnest($6::timestamptz[]) AS finished_at, unnest($7::text[]) AS status,
    unnest($8::json[]) AS output_json
) AS new
CROSS JOIN LATERAL (
    SELECT ctid AS place FROM :"schema".workflow_runs AS row WHERE row.id = new.id AND row.id BETWEEN $9 AND $10 LIMIT 1
) AS found
WHERE run.ctid = found.place AND run.id = new.id AND run.id BETWEEN $9 AND $10 AND new.id BETWEEN $9 AND $10
"""
_TASKS: Final = """
UPDATE :"schema".task_instances AS task
SET finished_at = new.finished_at, state = new.state, output = coalesce(new.output, task.output)
FROM (
    SELECT unnest($1::uuid[]) AS run_id, unnest($2::text[]) AS node, unnest($3::int[]) AS index,
    unnest($4::timestamptz[]) AS finished_at, unnest($5::text[]) AS state, unnest($6::json[]) AS output
) AS new
CROSS JOIN LATERAL (
    SELECT ctid AS place FROM :"schema".task_instances AS row
    WHERE row.run_id = new.run_id AND row.node = new.node AND row.index = new.index AND row.run_id BETWEEN $7 AND $8
    LIMIT 1
) AS found
WHERE task.ctid = found.place AND task.run_id = new.run_id AND task.run_id BETWEEN $7 AND $8
  AND new.run_id BETWEEN $7 AND $8
"""
_OF_RUN: Final = (0, 2, 3, 4, 5, 8, 14, 20)
"""Of a row for ``update_runs``: id, active, done, seq, revision, finished_at, status, output."""
_OF_TASK: Final = (0, 23, 1, 10, 13, 16)
"""Of a row for ``update_tasks``: run_id, node, index, finished_at, state, output."""


def narrowed(writes: Writes) -> tuple[list[Row], list[Row]]:
    """Take the updates of runs and of tasks out of what is written, as rows for ``send``."""
    runs = [tuple(row[place] for place in _OF_RUN) for row in writes.runs]
    tasks = [tuple(row[place] for place in _OF_TASK) for row in writes.tasks]
    writes.runs, writes.tasks = [], []
    return runs, tasks


@lru_cache
def _in(sql: Sql, text: str) -> str:
    return sql.written(text)


def parts(
    sql: Sql, runs: list[Row], tasks: list[Row], bounds: tuple[UUID, UUID]
) -> list[tuple[str, str, list[object]]]:
    """Both updates as name, text and parameters, where there are rows."""
    updates = (("runs", _RUNS, runs), ("tasks", _TASKS, tasks))
    return [(name, _in(sql, text), [*columns.arrays(rows), *bounds]) for name, text, rows in updates if rows]


async def send(connection: Connection, sql: Sql, runs: list[Row], tasks: list[Row], bounds: tuple[UUID, UUID]) -> None:
    """Both updates."""
    for _, text, values in parts(sql, runs, tasks, bounds):
        await connection.execute(text, *values)
