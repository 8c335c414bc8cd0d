"""Filling in what lists look for, for rows from before schema version 3 (and of processes that still write such rows).

Invariant: lists are right before, during and after: rows that are not filled in yet are looked at one by one, and each
step fills a bounded number in, in one statement. Trade-off: rows of finished runs are changed once for it, so that the
months that exist at the time grow; new ones do not.
"""

from __future__ import annotations

from uuid import UUID

from partita.domain.ids import Month
from partita.store.database import Connection, Database


async def fill(database: Database, *, most: int = 1_000) -> int:
    """Fill in the newest rows that need it, at most so many finished and unfinished runs; how many there were."""
    sql = database.sql

    async def step(connection: Connection) -> int:
        done = len(await connection.fetch(sql("list_fill_open"), most))
        newest = await connection.fetch(sql("list_unlisted"), UUID(int=0), UUID(int=(1 << 128) - 1), 1)
        if newest and done < most:
            month = Month.of(UUID(bytes=newest[0][0]))
            done += len(await connection.fetch(sql("list_fill"), month.lower, month.upper, most - done))
        return done

    return await database.read(step)
