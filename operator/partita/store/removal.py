"""Removing tables that are attached to nothing, the large ones side by side.

Purpose: a month's files are given back to the file system in the time that its largest table takes, not all of them.
Invariant: either every session has locked and dropped its tables before any of them commits, or nothing is dropped. The
session with the last table, the runs' own, commits once the tables of the others are gone for everybody. Trade-off: up
to ``SESSIONS`` connections more for that moment; where there are none to be had, fewer sessions do the same. A process
that is killed between two commits leaves tables that belong to no month, as one killed during the detach does; the next
drop removes them.

Locks end before files are removed, which the server does at the end of a commit: that is what overlaps here.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import TYPE_CHECKING, Final

from partita.domain.errors import PartitaError
from partita.store.database import Connection, Dedicated
from partita.store.migrations import direct

if TYPE_CHECKING:
    from partita.store.changes import Changes

SESSIONS: Final = 3
"""Sessions besides the caller's. A month's bytes lie in three or four tables."""
LARGE: Final = 64 << 20
"""Bytes from which a table is worth another session, which takes some milliseconds to open."""
_POLL: Final = 0.002


async def remove(changes: Changes, names: Sequence[str]) -> None:
    """Drop these tables, of which the last one goes last; those that are not there count as dropped."""
    rows = await changes.connection.fetch(changes.sql("table_sizes"), changes.sql.schema, names)
    sizes = {row["name"]: row["bytes"] for row in rows}
    mine, others = shares([name for name in names if name in sizes], sizes)
    async with _sessions(changes, len(others)) as sessions:
        unserved = [name for share in others[len(sessions) :] for name in share]
        await _together(changes, [*unserved, *mine], list(zip(sessions, others, strict=False)))


def shares(names: Sequence[str], sizes: Mapping[str, int]) -> tuple[list[str], list[list[str]]]:
    """The caller's tables, in their order, with the last of all and the small ones; and those of further sessions."""
    large = sorted((name for name in names[:-1] if sizes[name] >= LARGE), key=lambda name: -sizes[name])
    others: list[list[str]] = [[] for _ in large[:SESSIONS]]
    for name in large:
        min(others, key=lambda share: sum(sizes[each] for each in share)).append(name)
    return [name for name in names if name not in large], others


@asynccontextmanager
async def _sessions(changes: Changes, number: int) -> AsyncIterator[list[Connection]]:
    """As many further sessions as can be had at once, with the caller's patience for locks."""
    async with AsyncExitStack() as stack:
        found: list[Connection] = []
        with suppress(PartitaError):  # no connection is free: the caller's own is enough
            for _ in range(number):
                dedicated = Dedicated(direct(changes.settings.database), "partita/removal", planner=False)
                stack.push_async_callback(dedicated.close)
                connection = await dedicated.connection(patience_ms=0)
                await connection.fetch(changes.sql("outwait_autovacuum"), changes.lock_timeout_ms)
                found.append(connection)
        yield found


async def _together(changes: Changes, mine: Sequence[str], given: Sequence[tuple[Connection, Sequence[str]]]) -> None:
    """Drop them in one transaction a session; raises what failed first."""
    ready = asyncio.Barrier(len(given) + 1)
    theirs = [name for _, share in given for name in share]
    try:
        async with asyncio.TaskGroup() as group:
            for connection, share in given:
                group.create_task(_drop(changes, connection, share, ready))
            await _drop(changes, changes.connection, mine, ready, after=theirs)
    except BaseExceptionGroup as errors:
        raise errors.exceptions[0] from None


async def _drop(
    changes: Changes, connection: Connection, names: Sequence[str], ready: asyncio.Barrier, *, after: Sequence[str] = ()
) -> None:
    """Drop tables, and commit when every session has dropped its own and the tables ``after`` are gone."""
    async with connection.transaction():
        for name in names:
            await connection.execute(changes.sql("partition_drop", partition=name))
        await ready.wait()
        while await connection.fetchval(changes.sql("tables_left"), changes.sql.schema, after):  # noqa: ASYNC110  # the server tells nobody
            await asyncio.sleep(_POLL)
