"""The month whose own tables a process names in its statements, so that no other month costs a transaction anything.

Purpose: a statement on a partitioned table locks its months, and those of its plan, before it can tell which one it
needs, which with two years of months costs a transaction a third of a millisecond. A transaction whose runs all belong
to the current month names that month's tables instead (``Sql.within``).

Invariant: such a transaction begins with ``guard``, a lock on ``workflow_runs`` alone that only the exchange of a
month's tables conflicts with; one that is a single statement takes the same lock first (``direct``). So it is what
every other transaction on runs is for those who change partitions: they see that it is under way (``transactions_on``)
and wait for its end, it waits for theirs, and no write can reach a table that is being replaced. Which month it is
therefore decides nothing but speed: the process's clock is believed until a transaction has read the database's, and a
process that was frozen over a month's end, or whose clock is wrong, writes to the right rows all the same.

- A month that is detached concurrently, to be dropped, has no unfinished run, and the retention floor above it was
  published, and transactions of before were waited for, by their lock on the parent, before the detach. A start there
  is refused whether its statements name the month or the parent. What it stores in a month that a drop then keeps after
  all is attached again with it.
- Compaction takes ``workflow_runs`` in the exclusive mode before it looks which runs were changed since they were
  copied. A statement that waits for it, here in ``guard``, finds the new table by its name.
- A month that is not there, or whose tables the role may not use, is an error of the transaction, which leaves nothing
  behind and is tried again with the parents; the month is left alone for a while (``avoid``).

Trade-off: transactions that mix months use the parents, so runs of an older month cost what they did before.
"""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Final

from partita.domain.ids import Month
from partita.store.errors import sqlstate
from partita.store.sql import Sql

_PAUSE: Final = 60.0
"""Seconds for which a month that could not be used is not tried again."""
_UNUSABLE: Final = {"42P01", "42501"}
"""No such table, or no right to use it."""
_NEVER: Final = datetime(1, 1, 1, tzinfo=UTC)


class Months:
    """One process's knowledge of the current month."""

    __slots__ = ("_again", "_begin", "_end", "_lower", "_own", "_upper", "guard", "parents")

    def __init__(self, sql: Sql) -> None:
        self.parents = sql
        self.guard = sql("month_guard")
        """What the transactions of a month begin with."""
        self._own = sql
        self._begin = self._end = _NEVER
        self._lower = self._upper = 0
        self._again = 0.0
        self.learn(datetime.now(UTC))

    def learn(self, now: datetime) -> None:
        """The database's clock, as any transaction has read it."""
        if self._begin <= now < self._end:
            return
        month = Month.of(now)
        self._begin, self._end = month.start, month.plus(1).start
        self._lower, self._upper = month.lower.int, month.upper.int
        self._own, self._again = self.parents.within(month), 0.0

    def sql(self, lowest: int, highest: int) -> Sql:
        """Statements for runs of which these are the lowest and the highest id, as numbers."""
        if self._lower <= lowest and highest < self._upper and time.monotonic() >= self._again:
            return self._own
        return self.parents

    def avoid(self, error: BaseException, sql: Sql) -> bool:
        """Whether a transaction failed because these statements name a month; then that is not tried for a minute."""
        if sql is self.parents or sqlstate(error) not in _UNUSABLE:
            return False
        if sql is self._own:
            self._again = time.monotonic() + _PAUSE
        return True
