"""Bare SQL is a fair denominator only while it leaves the same rows behind as the engine."""

from __future__ import annotations

import asyncpg

from bench import bare
from bench.load import loaded
from bench.options import Options
from bench.workload import NAMESPACE
from partita.settings import Settings
from partita.store.database import Dedicated
from partita.store.sql import Sql

RUNS = 7
OPTIONS = Options(runs=RUNS, repeats=1, workers=0, slots=10, submitters=10)
ROWS = """
SELECT (SELECT count(*) FROM partita.task_instances WHERE run_id = run.id) AS tasks,
       (SELECT count(*) FROM partita.task_instances WHERE run_id = run.id AND state = 'Completed'
          AND finished_at IS NOT NULL AND output IS NOT NULL) AS completed,
       (SELECT array_agg(event ORDER BY seq) FROM partita.run_history WHERE run_id = run.id) AS history,
       (SELECT count(*) FROM partita.run_endings WHERE run_id = run.id) AS endings,
       run.status, run.seq, run.revision, run.done, run.active,
       run.finished_at IS NULL AS unfinished
FROM partita.workflow_runs AS run WHERE namespace = $1
"""
LEFT = """
SELECT (SELECT count(*) FROM partita.ready_tasks) + (SELECT count(*) FROM partita.task_leases)
     + (SELECT count(*) FROM partita.open_runs)
"""


async def test_bare_sql_leaves_the_rows_that_the_engine_leaves(settings: Settings) -> None:
    async with loaded(settings, OPTIONS) as load:
        await load.round(RUNS)
        session = Dedicated(settings.database, "test", planner=True)
        sql, parsed = Sql(settings.database.schema), bare.definition()
        await bare.play(bare.decided(RUNS - 1, parsed), session, sql)
        await bare.play_at_once(bare.decided_at_once(parsed), session, sql)
        await session.close()
        ours = await load.observer.fetch(ROWS, NAMESPACE)
        theirs = await load.observer.fetch(ROWS, bare.NAMESPACE)
        left = await load.observer.fetchval(LEFT)
    assert _as_set(ours) == _as_set(theirs)
    assert len(ours) == len(theirs) == RUNS
    assert left == 0


def _as_set(rows: list[asyncpg.Record]) -> set[str]:
    return {repr(tuple(row)) for row in rows}
