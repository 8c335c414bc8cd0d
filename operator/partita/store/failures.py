"""What drives itself (timers, inbox rows) and failed: tried again later, and given up after too many failures.

Invariant: the account of failures stands on the row itself, so that every process sees the same one; a row that was
given up stays until someone drives it again.
"""

from __future__ import annotations

from typing import Final
from uuid import UUID

from partita.store.database import Connection
from partita.store.sql import Sql

DEAD_AFTER: Final = 10
"""Failures after which a row is given up."""
_MESSAGE: Final = 2_000
"""Characters of the last error that are kept."""


def _kept(message: str) -> str:
    """What of an error's text can be stored; an account that could not be written would never be closed."""
    return message[:_MESSAGE].replace("\0", "").encode("utf-8", "replace").decode()


async def fail_timer(connection: Connection, sql: Sql, key: tuple[UUID, str, str, int], message: str) -> bool:
    """Count a failure of a timer, (run, kind, node, index), and let it fall due later; True if it is given up."""
    rows = await connection.fetch(sql("fail_timer"), *key, _kept(message), DEAD_AFTER)
    return bool(rows and rows[0]["dead"])


async def drop_undeliverable(connection: Connection, sql: Sql, inbox_id: int, run_id: UUID) -> bool:
    """Delete a message whose run neither exists nor is about to start; False when it has to wait."""
    return bool(await connection.fetch(sql("drop_undeliverable"), inbox_id, run_id))


async def fail_inbox(connection: Connection, sql: Sql, inbox_id: int, message: str, *, final: bool = False) -> bool:
    """Count a failure of an inbox row and let it be due later, or give it up after too many, or if it is ``final``;
    True if it is given up."""
    rows = await connection.fetch(sql("fail_inbox"), inbox_id, _kept(message), 1 if final else DEAD_AFTER)
    return bool(rows and rows[0]["dead"])


async def show_given_up(connection: Connection, sql: Sql, run_id: UUID) -> bool:
    """Let the object of a run say what was given up; False if it has none. It locks the run, so that it has to stand in
    a transaction of its own: who applies the row locks the run before the row."""
    return bool(await connection.fetch(sql("show_given_up"), run_id))
