"""Statistics of the partitioned parents, which autovacuum looks after for months only.

Purpose: without them a query over several months is planned as if the tables were empty. Invariant: any number of
processes may call this at any time, since whether a parent is out of date is read from the catalog, and nothing waits
behind it: a lock that is not to be had leaves the table for the next time. Trade-off: what counts is how far the number
of rows has moved since, so a table whose rows are replaced one by one keeps its old statistics; records are not.
"""

from __future__ import annotations

from typing import Final

from partita.settings import Settings
from partita.store.database import Connection, Dedicated
from partita.store.errors import boundary, sqlstate
from partita.store.migrations import direct
from partita.store.partitions import take_turn
from partita.store.sql import Sql

_SHARE: Final = 0.1
"""Share of its rows by which a table has grown or shrunk since. One that grows to n rows is analysed at most
log(n)/log(1.1) times."""
_ONLY_SINCE: Final = 18
"""Server version from which a parent can be analysed without all of its months."""


async def refresh(settings: Settings) -> tuple[str, ...]:
    """Analyse the parents whose statistics are missing or a tenth out of date, and return their names.

    A transaction a table, on the direct connection, without a limit of time: behind a proxy a long statement would take
    one of its few connections, and one transaction for all would hold its snapshot for as long as all of them take.
    """
    dedicated = Dedicated(direct(settings.database), "partita/statistics", planner=False)
    sql = Sql(settings.database.schema)
    try:
        with boundary():
            async with dedicated.transaction() as connection:
                names = await _stale(connection, sql)
            return tuple([name for name in names if await _analyze(dedicated, sql, settings, name)])
    finally:
        await dedicated.close()


async def _stale(connection: Connection, sql: Sql) -> list[str]:
    return [row["name"] for row in await connection.fetch(sql("stale_statistics"), sql.schema, _SHARE)]


async def _analyze(dedicated: Dedicated, sql: Sql, settings: Settings, name: str) -> bool:
    """Analyse one parent in turn with whoever changes partitions; False when somebody else did, or is in the way."""
    try:
        async with dedicated.transaction() as connection:
            await take_turn(connection, settings)
            if name not in await _stale(connection, sql):
                return False
            block = "analyze_parent" if connection.get_server_version().major < _ONLY_SINCE else "analyze_only"
            await connection.execute(sql(block, table=name))
            return name not in await _stale(connection, sql)  # SKIP_LOCKED and a missing privilege are warnings only
    except Exception as error:
        if sqlstate(error) != "55P03":
            raise
        return False
