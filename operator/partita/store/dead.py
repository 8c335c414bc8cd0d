"""Dead letters: what was given up after too many failures, to be looked at and driven again.

Purpose: a message to a run, or a timer, whose every delivery failed stands aside so that it holds nothing up; whoever
has removed the cause lets it be tried again. Invariant: only what is dead is touched, so that a command which is sent
twice, or races the engine, changes nothing twice. Trade-off: these are updates without the run's lock; the engine locks
the run before it looks at the row, and finds it or not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from partita.store.database import Database
from partita.store.errors import boundary


@dataclass(frozen=True, slots=True, kw_only=True)
class TimerId:
    """The key of a timer."""

    run_id: UUID
    kind: str
    node: str
    index: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLetter:
    """A message or a timer that was given up."""

    id: int | TimerId
    """A message's number, or a timer's key."""
    run_id: UUID
    what: str
    """Kind of the message or of the timer."""
    node: str
    """Of a timer; empty for messages."""
    created_at: datetime | None
    """When the message was sent; None for timers."""
    dead_at: datetime
    failures: int
    error: str
    """The last one."""


async def dead_letters(database: Database, run_id: UUID | None = None, *, limit: int = 100) -> tuple[DeadLetter, ...]:
    """The letters that were given up longest ago, of one run or of all."""
    found = []
    for row in await database.fetch("dead_letters", run_id, limit):
        run = UUID(int=row["run_id"].int)
        timer = TimerId(run_id=run, kind=row["what"], node=row["node"], index=row["index"])
        found.append(
            DeadLetter(
                id=row["message"] if row["kind"] == "message" else timer,
                run_id=run,
                **{name: row[name] for name in ("what", "node", "created_at", "dead_at", "failures", "error")},
            )
        )
    return tuple(found)


async def retry(database: Database, letters: Sequence[int | TimerId]) -> frozenset[int | TimerId]:
    """Let these be tried again at once; the answer is which of them were dead."""
    messages = [letter for letter in letters if isinstance(letter, int)]
    timers = [letter for letter in letters if isinstance(letter, TimerId)]
    columns = [[getattr(timer, name) for timer in timers] for name in ("run_id", "kind", "node", "index")]
    rows = [*await _write(database, "retry_messages", messages), *await _write(database, "retry_timers", *columns)]
    return frozenset(
        row["id"] if "id" in row else TimerId(**{**row, "run_id": UUID(int=row["run_id"].int)}) for row in rows
    )


async def delete(database: Database, messages: Sequence[int]) -> frozenset[int]:
    """Forget these messages; the answer is which of them were dead. Timers stay: their runs would never go on."""
    return frozenset(row["id"] for row in await _write(database, "delete_messages", list(messages)))


async def _write(database: Database, name: str, *columns: Sequence[object]) -> list[dict[str, Any]]:
    if not columns[0]:
        return []
    session = database.dedicated("dead-letters")
    try:
        with boundary():
            async with session.transaction() as connection:
                return [dict(row) for row in await connection.fetch(database.sql(name), *columns)]
    finally:
        await session.close()
