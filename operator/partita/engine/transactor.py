"""Settling submissions: transactions until every one of them has its answer.

Purpose: what to do when a transaction fails. Invariant: a submission is answered only after a commit, or when it is
known that it failed by itself, or when its time is over. What cannot be decided fails alone; what cannot be stored is
found by bisection; when the server was lost, or someone was in the way, all are tried again. Trade-off: a poisoned
submission costs its neighbours some repeated work, never their result.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Iterable, Sequence

from partita.domain.errors import OutdatedError, PartitaError, UnavailableError
from partita.engine.batch import Batch, Tools
from partita.engine.direct import Direct
from partita.engine.submissions import Start, Submission, TimerFell
from partita.engine.turns import CollidedError, MonthMissingError, OverspentError, PoisonedError, as_engine_error
from partita.store import failures
from partita.store.database import Backoff, Connection, Dedicated
from partita.store.errors import Verdict, is_disconnect, is_locked, is_store_error, is_timeout, translate, verdict

log = logging.getLogger(__name__)


class Transactor:
    """One connection's transactions."""

    def __init__(self, tools: Tools, connection: Dedicated) -> None:
        self._tools = tools
        self._connection = connection
        self._direct = Direct(tools, connection)
        self._turn = asyncio.Lock()
        self._timeline = (0, "")
        """The server's timeline, and the number of the connection on which it was asked for."""
        self._transactions = 0

    @property
    def transactions(self) -> int:
        """Transactions begun, and statements that were one, for figures and tests."""
        return self._transactions + self._direct.transactions

    async def close(self) -> None:
        """Give the connection back."""
        await self._connection.close()

    async def settle(
        self, submissions: Sequence[Submission], *, wait: bool = False, turn_seconds: float | None = None
    ) -> list[Submission]:
        """Answer all but those whose run another process holds; these are returned. ``wait``: wait for them.

        ``turn_seconds``: how long to wait for the connection; afterwards all that still need an answer are returned.
        """
        try:
            async with asyncio.timeout(turn_seconds):
                await self._turn.acquire()
        except TimeoutError:
            return _living(list(submissions))
        try:
            return await self._settle(submissions, wait=wait)
        finally:
            self._turn.release()

    async def _settle(self, submissions: Sequence[Submission], *, wait: bool) -> list[Submission]:
        skipped: list[Submission] = []
        groups = deque([list(submissions)])
        backoff: Backoff | None = None
        while groups:
            group = _living(groups.popleft())
            if not group:
                continue
            try:
                skipped += await self._attempt(group, wait=wait, again=backoff is not None)
                backoff = None
            except OverspentError as spent:
                groups.extendleft(reversed(_parts(group, spent.size)))
            except PoisonedError as poisoned:
                await self._fail(poisoned.failures)
                groups.appendleft([one for one in group if one not in poisoned.failures])
            except Exception as error:  # noqa: BLE001  # a batch must be answered whatever went wrong in it
                backoff = backoff or self._connection.backoff(_patience(group))
                groups.extendleft(reversed(await self._recover(group, error, backoff)))
        return skipped

    async def _recover(self, group: list[Submission], error: Exception, backoff: Backoff) -> list[list[Submission]]:
        """What to try next after a failure: all again, two halves, or nothing since all were answered."""
        if isinstance(error, CollidedError | MonthMissingError):
            return [group]
        if isinstance(error, OutdatedError | UnavailableError):
            if isinstance(error, OutdatedError):
                self._tools.notices.tell_outdated()
            return _answer_all(group, error)
        meaning = verdict(error) if is_store_error(error) else Verdict.POISON
        if is_timeout(error) and len(group) > 1:
            return _parts(group, (len(group) + 1) // 2)  # together they took too long
        if meaning is Verdict.RETRY:
            return [group] if await backoff.pause() else _answer_all(group, _unavailable(error, group))
        if meaning is Verdict.DEFECT:
            return _answer_all(group, translate(error))
        return await self._bisect(group, error)

    async def _bisect(self, group: list[Submission], error: Exception) -> list[list[Submission]]:
        """One of them cannot be stored: the halves, or the end of the search."""
        if len(group) == 1:
            await self._fail({group[0]: translate(error) if is_store_error(error) else error})
            return []
        middle = len(group) // 2
        return [group[:middle], group[middle:]]

    async def _attempt(self, group: list[Submission], *, wait: bool, again: bool) -> list[Submission]:
        """One transaction; the answer is what it skipped."""
        if len(group) == 1 and not (wait or again) and await self._direct.settle(group[0], _patience(group)):
            return []
        batch = Batch(self._tools, group, wait=wait)
        self._transactions += 1
        complete = ended = False
        try:
            async with self._connection.transaction(_patience(group), first=batch.first) as connection:
                if wait:
                    await self._bound_waiting(connection)
                await batch.run(connection)
                if self._timeline[0] != self._connection.connects:
                    timeline = await connection.fetchval(self._tools.sql("timeline"))
                    self._timeline = (self._connection.connects, timeline)
                complete = True
            ended = True
            batch.wrote(int(batch.xid) % 2**32, self._connection.session)
        except Exception as error:
            if self._tools.months.avoid(error, batch.sql):
                raise MonthMissingError from error
            lost = complete and is_disconnect(error)
            if not (lost and await self._committed(batch.xid, group)):
                _note_tried(group if lost else ())
                raise
            ended = True
        finally:
            batch.deliver() if ended else batch.abandon()
        return batch.skipped

    async def _bound_waiting(self, connection: Connection) -> None:
        limit = self._tools.settings.engine.lock_timeout_ms
        await connection.execute(f"SET LOCAL lock_timeout = {int(limit)}")

    async def _committed(self, xid: str, group: list[Submission]) -> bool:
        """Whether a transaction whose COMMIT was not answered took effect. When nobody can tell, it is tried again,
        and the fences and request ids make the second time harmless."""
        backoff = self._connection.backoff(_patience(group))
        text = self._tools.sql("transaction_outcome")
        while True:
            try:
                async with self._connection.transaction(_patience(group)) as connection:
                    row = await connection.fetchrow(text, xid)
            except Exception as error:
                if not is_store_error(error) or is_disconnect(error):
                    raise
                return False
            status, timeline = row or ("", "")
            if timeline != self._timeline[1]:
                return False  # a standby took over, which may have given the same id to another transaction
            if status != "in progress" or not await backoff.pause():
                return bool(status == "committed")

    async def _fail(self, failed: dict[Submission, Exception]) -> None:
        """Answer submissions that failed by themselves; what drives itself comes later the next time."""
        for one, error in failed.items():
            known = as_engine_error(one, error)
            if isinstance(one, TimerFell):
                await self._postpone(one, known)
            one.fail(known)

    async def _postpone(self, one: TimerFell, error: PartitaError) -> None:
        """Let a timer that cannot be applied fall due later. If that fails too, its duty finds it again at once."""
        key = (one.run_id, one.timer.kind.value, one.timer.node, one.timer.index)
        try:
            async with self._connection.transaction(_patience([one])) as connection:
                dead = await failures.fail_timer(connection, self._tools.sql, key, str(error))
            if dead:
                await self._show_given_up(one)
        except Exception as failure:
            if not (is_store_error(failure) or isinstance(failure, PartitaError)):
                raise
            log.warning("run %s: timer %s of %s: cannot be postponed: %s", key[0], key[1], key[2] or "the run", failure)

    async def _show_given_up(self, one: TimerFell) -> None:
        """Let the status of the run that stands still say so."""
        async with self._connection.transaction(_patience([one])) as connection:
            shown = await failures.show_given_up(connection, self._tools.sql, one.run_id)
        if shown:
            self._tools.notices.tell_projection()


def _note_tried(group: Iterable[Submission]) -> None:
    """Nobody can tell whether these starts were committed: what the second try finds, the first one has made."""
    for one in group:
        if isinstance(one, Start):
            one.tried = True


def _living(group: list[Submission]) -> list[Submission]:
    """Those that were not answered, and whose callers still wait."""
    return [one for one in group if not one.future.done()]


def _parts(group: list[Submission], size: int) -> list[list[Submission]]:
    return [group[first : first + size] for first in range(0, len(group), size)]


def _patience(group: Sequence[Submission]) -> int:
    """Milliseconds until the last of them has to be answered."""
    left = max(one.expires for one in group) - asyncio.get_running_loop().time()
    return max(0, round(left * 1000))


def _answer_all(group: list[Submission], error: PartitaError) -> list[list[Submission]]:
    for one in group:
        one.fail(error)
    return []


def _unavailable(error: Exception, group: Sequence[Submission]) -> PartitaError:
    if is_locked(error):
        run_id = min(one.run_id for one in group)
        return UnavailableError(f"run {run_id}: another session keeps it locked", hint="send the same request again")
    known = translate(error)
    if isinstance(known, UnavailableError):
        return known
    return UnavailableError(f"database: {known}", hint="send the same request again")
