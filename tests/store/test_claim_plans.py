"""Claims on a long queue: whatever is known of its size, they read what they may take and no more.

The table of ready tasks grows from nothing to 100,000 rows faster than statistics are refreshed, so that the planner
takes it for an empty one. What is asserted is counted by PostgreSQL while it executes the statement.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import asyncpg
import orjson
import pytest

from partita.store.database import PLANNER, Connection
from partita.store.sql import Sql
from tests.store.bounds import nodes
from tests.store.plans import prepare

QUEUED, LANES, LEVELS = 100_000, 16, 5
LIMIT = 200
FILL = """
ALTER TABLE partita.ready_tasks SET (autovacuum_enabled = false);
INSERT INTO partita.ready_tasks
    (run_id, seq, enqueued_at, timeout_ms, index, attempt, generation, lane, priority, queue, namespace, node, type)
SELECT gen_random_uuid(), n, clock_timestamp(), 300000, 0, 1, 0, n % 16, n / 16 % 5 - 2, 'default', 'shop', 'a', 'work'
FROM generate_series(1, 100000) AS n
"""
CLAIM = """
EXPLAIN (ANALYZE, FORMAT JSON, COSTS OFF, TIMING OFF, SUMMARY OFF) EXECUTE claim(
    '{queues}', '{lanes}', '{levels}', '{positions}', {limit}, {limit}, gen_random_uuid(), 'w', NULL, 99, true)
"""
MODES = ["force_generic_plan", "force_custom_plan"]


@pytest.fixture(params=["taken for empty", "known"])
async def queue(request: pytest.FixtureRequest, database_url: str) -> AsyncIterator[Connection]:
    """A coordinator's session on a database with a long queue."""
    connection = await asyncpg.connect(database_url)
    await connection.execute(FILL)
    if request.param == "known":
        await connection.execute("ANALYZE partita.ready_tasks")
    for name, value in PLANNER:
        await connection.execute(f"SET {name} = '{value}'")
    yield connection
    await connection.close()


def claim(limit: int) -> str:
    """A claim that begins at the beginning of every lane and level."""
    groups = [(lane, level) for lane in range(LANES) for level in range(-2, LEVELS - 2)]
    lists: dict[str, list[object]] = {
        "queues": ["default" for _ in groups],
        "lanes": [lane for lane, _ in groups],
        "levels": [level for _, level in groups],
        "positions": [0 for _ in groups],
    }
    return CLAIM.format(limit=limit, **{name: f"{{{','.join(map(str, each))}}}" for name, each in lists.items()})


def rows_read(root: dict[str, Any], table: str) -> dict[str, float]:
    """Rows that the scans of a table returned or threw away, by how they reached it."""
    found: dict[str, float] = {}
    for node in nodes(root):
        if node.get("Relation Name") == table and node["Node Type"] != "ModifyTable":
            kind = str(node.get("Index Name", node["Node Type"]))
            each = node["Actual Rows"] + node.get("Rows Removed by Filter", 0)
            found[kind] = found.get(kind, 0) + each * node["Actual Loops"]
    return found


@pytest.mark.parametrize("mode", MODES)
async def test_a_claim_reads_what_it_may_take(queue: Connection, mode: str) -> None:
    await queue.execute(f"SET plan_cache_mode = {mode}")
    await prepare(queue, "claim", Sql("partita")("claim_tasks"))
    text = await queue.fetchval(claim(LIMIT))
    read = rows_read(orjson.loads(text)[0]["Plan"], "ready_tasks")
    assert set(read) == {"ready_tasks_claim", "Tid Scan"}, text
    assert read["ready_tasks_claim"] <= LANES * LEVELS * LIMIT
    assert read["Tid Scan"] <= 2 * LIMIT + 1
    assert await queue.fetchval("SELECT count(*) FROM partita.task_leases") == LIMIT


@pytest.mark.parametrize("mode", MODES)
async def test_what_is_counted_tells_a_claim_that_reads_all(queue: Connection, mode: str) -> None:
    """The same without the index that claims go by."""
    await queue.execute(f"SET plan_cache_mode = {mode}; DROP INDEX partita.ready_tasks_claim")
    await prepare(queue, "claim", Sql("partita")("claim_tasks"))
    read = rows_read(orjson.loads(await queue.fetchval(claim(1)))[0]["Plan"], "ready_tasks")
    assert max(read.values()) >= QUEUED, read
