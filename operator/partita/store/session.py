"""Single statements on a connection of their own, each its own transaction.

Invariant: one statement is one round trip and commits by itself; statements of one session never overlap. A connection
lost under a statement is told apart from one that could not be had: then the outcome is unknown. The trade-off against
the pool is one more connection, which is never given back and therefore keeps its prepared statements.
"""

from __future__ import annotations

import asyncio

from partita.domain.errors import UnavailableError
from partita.store.database import Database, Record
from partita.store.errors import is_disconnect, is_store_error, translate
from partita.store.sql import Sql


class LostError(UnavailableError):
    """The connection was lost while a statement was under way, which may or may not have been committed."""

    reason = "OutcomeUnknown"


class Session:
    """One connection for single statements by name."""

    def __init__(self, database: Database, purpose: str, *, ending: asyncio.Event | None = None) -> None:
        """``ending``: what ends its patience with a server that is away, instead of the end of the process."""
        self.months = database.months
        """Which statements name a month: here only some that read, as a write takes a transaction that is guarded."""
        self._sql = database.sql
        self._pooled = database.settings.pooled
        self._dedicated = database.dedicated(purpose, ending=ending)
        self._turn = asyncio.Lock()

    async def close(self) -> None:
        """Give the connection back."""
        await self._dedicated.close()

    async def fetch(
        self, name: str, *values: object, sql: Sql | None = None, patience_ms: int | None = None
    ) -> list[Record]:
        """Rows of one statement; raises LostError when its outcome is unknown."""
        text = (sql or self._sql)(name)
        async with self._turn:
            connection = await self._dedicated.connection(patience_ms)
            try:
                if not self._pooled:
                    return await connection.fetch(text, *values)
                async with self._dedicated.transaction() as connection:
                    return await connection.fetch(text, *values)
            except Exception as error:
                if not is_store_error(error):
                    raise
                if not is_disconnect(error):
                    raise translate(error) from error
                await self._dedicated.discard()
                raise LostError(f"database: the connection was lost ({error})", hint="the same again") from error

    async def read(self, name: str, *values: object, sql: Sql | None = None) -> list[Record]:
        """Rows of a statement that only reads: sent again on a new connection when the first was lost."""
        try:
            return await self.fetch(name, *values, sql=sql)
        except LostError:
            return await self.fetch(name, *values, sql=sql)
