"""Filling in what lists look for, for rows from before schema version 3 or 4 (and of processes that still write such).

Invariant: lists are right before, during and after: rows that are not filled in yet are looked at one by one, and each
step fills a bounded number in, in one statement. Trade-off: rows of finished runs are changed once for it, so that the
months that exist at the time grow; new ones do not.
"""

from __future__ import annotations

from uuid import UUID

from partita.domain.ids import Month
from partita.settings import DatabaseSettings
from partita.store.advisory import advisory_key
from partita.store.database import Connection, Dedicated
from partita.store.errors import boundary
from partita.store.sql import Sql

_FIRST = UUID(int=0)
_LAST = UUID(int=(1 << 128) - 1)


async def fill(settings: DatabaseSettings, *, steps: int | None = None, most: int = 1_000) -> int:
    """Fill in the newest rows that need it; how many there were.

    ``steps``: how many transactions at most (None: until nothing is left), of at most ``most`` runs each. Raises
    UnavailableError.
    """
    sql, done = Sql(settings.schema), 0
    dedicated = Dedicated(settings, "partita/lists", planner=False)
    try:
        with boundary():
            while steps is None or steps > 0:
                async with dedicated.transaction() as connection:
                    filled = await _step(connection, sql, most)
                if not filled:
                    break
                done, steps = done + filled, None if steps is None else steps - 1
    finally:
        await dedicated.close()
    return done


async def _step(connection: Connection, sql: Sql, most: int) -> int:
    # Processes take turns: two that fill in the same rows would wait for each other.
    await connection.execute("SELECT pg_advisory_xact_lock($1)", advisory_key(sql.schema, "lists"))
    done = len(await connection.fetch(sql("list_fill_open"), most))
    newest = await connection.fetchval(sql("list_unlisted"), _FIRST, _LAST, 1)
    if newest and done < most:
        month = Month.of(UUID(bytes=newest))
        done += len(await connection.fetch(sql("list_fill"), month.lower, month.upper, most - done))
    unknown = None if done else await connection.fetchval(sql("list_unknown"))
    if unknown is not None:
        month = Month.of(unknown)
        done += len(await connection.fetch(sql("list_fill_labels"), month.lower, month.upper, most))
    return done
