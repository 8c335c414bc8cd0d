"""What PostgreSQL counted: write-ahead log, commits, and updates that stayed on their page.

Invariant: counters are read after every session of the engine has ended, because a session hands in its counts at most
once a second, and at its end. Trade-off: what autovacuum did meanwhile is in them, as it would be anywhere.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import asyncpg

from partita.settings import Settings

_QUESTION: Final = """
SELECT (pg_current_wal_lsn() - '0/0'::pg_lsn)::bigint AS wal_bytes,
       (SELECT xact_commit FROM pg_stat_database WHERE datname = current_database()) AS commits
"""
_UPDATES: Final = """
SELECT coalesce(sum(n_tup_upd), 0)::bigint AS updates, coalesce(sum(n_tup_hot_upd), 0)::bigint AS hot
FROM pg_stat_all_tables WHERE schemaname = $1 AND relname ~ $2
"""


@dataclass(frozen=True, slots=True)
class Counters:
    """Counts since the database was made."""

    wal_bytes: int
    commits: int
    updates: dict[str, int]
    """By record table, over its partitions."""
    hot: dict[str, int]

    def __sub__(self, other: Counters) -> Counters:
        return Counters(
            self.wal_bytes - other.wal_bytes,
            self.commits - other.commits,
            {table: count - other.updates[table] for table, count in self.updates.items()},
            {table: count - other.hot[table] for table, count in self.hot.items()},
        )


async def read(settings: Settings) -> Counters:
    """The counters now."""
    connection = await asyncpg.connect(settings.database.url)
    try:
        row = await connection.fetchrow(_QUESTION)
        updates, hot = {}, {}
        for table in ("workflow_runs", "task_instances"):
            found = await connection.fetchrow(_UPDATES, settings.database.schema, f"^{table}_")
            updates[table], hot[table] = (found["updates"], found["hot"]) if found else (0, 0)
    finally:
        await connection.close()
    return Counters(row["wal_bytes"], row["commits"], updates, hot) if row else Counters(0, 0, updates, hot)


async def statement_log(settings: Settings, *, on: bool) -> None:
    """Let the server log every statement of sessions that begin from now on, or not."""
    value = "0" if on else "-1"
    connection = await asyncpg.connect(settings.database.url)
    try:
        name = await connection.fetchval("SELECT quote_ident(current_database())")
        await connection.execute(f"ALTER DATABASE {name} SET log_min_duration_statement = {value}")
        await connection.execute(f"ALTER DATABASE {name} SET log_parameter_max_length = 0")
    finally:
        await connection.close()


def count_statements(text: str, application: str) -> tuple[int, int]:
    """Statements and commits that sessions of an application (a part of its name) logged."""
    statements = commits = 0
    for line in text.splitlines():
        if application not in line or " duration: " not in line:
            continue
        _, found, statement = line.partition("statement: ")
        if found or "  execute " in line:
            statements += 1
        if statement.strip().rstrip(";").upper() == "COMMIT":
            commits += 1
    return statements, commits
