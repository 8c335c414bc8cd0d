"""A lone submission as one statement: decided from memory, written under a proof.

Invariant: the same code decides as in any other transaction; only what it rests on differs, which the statement proves
(``store.direct``) before it writes. Whatever is not remembered, or cannot be written so, is left to the usual
transaction, and so is every failure: nothing was answered, and the fences make a second try harmless. Trade-off: only
one submission at a time; more of them share the round trips of an ordinary transaction.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from enum import Enum
from typing import Final, NoReturn, cast

from partita.domain.errors import PartitaError
from partita.engine.admission import versions_of
from partita.engine.batch import Batch, Tools
from partita.engine.fencing import fence_of
from partita.engine.opening import Opening
from partita.engine.requests import PROTOCOL
from partita.engine.submissions import Reported, Start, Submission
from partita.engine.turns import OverspentError, PoisonedError
from partita.store import direct
from partita.store.database import Connection, Dedicated
from partita.store.direct import Belief, Proof
from partita.store.errors import Verdict, is_disconnect, is_store_error, verdict
from partita.store.slices import AskedVersion, Loaded
from partita.store.together import Write

log = logging.getLogger(__name__)

_QUIET: Final = 60.0
"""Seconds between two warnings."""


class Outcome(Enum):
    """What a statement came to."""

    DONE = 1
    NOTHING = 2
    """Nothing was proved, or it was refused."""
    UNKNOWN = 3
    """It was not answered."""


class _UnreadError(Exception):
    """Something has to be read that is not remembered."""


class _Nothing:
    """Stands where decisions would read from the database."""

    def __getattr__(self, name: str) -> NoReturn:
        raise _UnreadError(name)


_NOTHING: Final = cast("Connection", _Nothing())


class Direct:
    """One connection's transactions of one statement."""

    def __init__(self, tools: Tools, connection: Dedicated) -> None:
        self._tools = tools
        self._connection = connection
        self._quiet_until = 0.0
        self.transactions = 0
        """Statements that took effect, for figures and tests."""

    async def settle(self, one: Submission, patience_ms: int) -> bool:
        """Answer a submission, if it can be done so; else nothing has happened, or nobody knows what."""
        tools = self._tools
        state = tools.memory.state(asyncio.get_running_loop().time())
        opened = None if state is None else self._opened(one, state)
        if opened is None:
            return False
        tools.months.learn(opened.loaded.now)
        batch = Batch(tools, [one], wait=False)
        outcome = Outcome.NOTHING
        try:
            if batch.within_month and (writes := await _decided(batch, opened)) is not None:
                outcome = Outcome.UNKNOWN
                outcome = await self._write(batch, opened, writes, patience_ms)
        finally:
            _tell(one, batch, outcome)
        return outcome is Outcome.DONE

    def _warn(self, one: Submission, error: Exception) -> None:
        """The usual transaction may do where a statement always fails: once a minute somebody is told."""
        now = asyncio.get_running_loop().time()
        if now >= self._quiet_until:
            self._quiet_until = now + _QUIET
            log.warning("run %s: cannot be changed by one statement, trying the usual way: %s", one.run_id, error)

    def _opened(self, one: Submission, state: Loaded) -> Opening | None:
        """What an ordinary transaction would have locked and read by now."""
        if isinstance(one, Start):
            if one.keys or one.inbox_id is not None:
                return None
            state.startable = {(version.definition_id, version.version) for version in versions_of([one])}
            return Opening(state, set())
        if not isinstance(one, Reported):
            return None
        known = self._tools.memory.recall(one.run_id, self._connection.session)
        if known is None:
            return None
        state.now = max(state.now, known.written_at)  # known a little late: no attempt ends before it began
        return Opening(state, {one.run_id}, dict(known.leases), remembered=known)

    async def _write(self, batch: Batch, opened: Opening, writes: Sequence[Write], patience_ms: int) -> Outcome:
        one, memory = batch.turns[0].submission, self._tools.memory
        wrote, outcome = None, Outcome.NOTHING
        try:
            wrote = await direct.send(self._connection, batch.sql, _proof(one, opened), writes, patience_ms)
        except Exception as error:
            if not (is_store_error(error) or isinstance(error, PartitaError)):
                raise
            outcome = Outcome.UNKNOWN if is_disconnect(error) else Outcome.NOTHING
            if verdict(error) is Verdict.DEFECT and not self._tools.months.avoid(error, batch.sql):
                self._warn(one, error)
        if wrote is None:
            memory.forget([one.run_id])
            return outcome
        self.transactions += 1
        memory.clock.learn(wrote.now, asyncio.get_running_loop().time())
        batch.wrote(wrote.xid, self._connection.session, wrote.places)
        return Outcome.DONE


def _tell(one: Submission, batch: Batch, outcome: Outcome) -> None:
    """Who waits for an unknown outcome is told when the submission is answered: it is tried again until then, which
    finds, or waits for, what the lost statement has done or is still doing."""
    if outcome is Outcome.DONE:
        batch.deliver()
    elif outcome is Outcome.NOTHING:
        batch.abandon(unknown=False)
    else:
        if isinstance(one, Start):
            one.tried = True
        one.future.add_done_callback(lambda _: batch.abandon())


async def _decided(batch: Batch, opened: Opening) -> Sequence[Write] | None:
    """What is to be written; None when more than memory has to be read, or nothing is to be written at once."""
    try:
        copied = await batch.decide(_NOTHING, opened)
    except (_UnreadError, PoisonedError, OverspentError, PartitaError):
        return None
    return None if copied is None or batch.writes is None else batch.writes.at_once()


def _proof(one: Submission, opened: Opening) -> Proof:
    belief = Belief(PROTOCOL, opened.loaded.now, opened.loaded.retention_floor)
    if isinstance(one, Start):
        version = AskedVersion(one.version.id, one.version.version, one.request.version is not None)
        return direct.of_start(belief, version, decided=one.decided)
    if opened.remembered is None or not isinstance(one, Reported):
        raise AssertionError("only reports on remembered runs, and starts, can be proved")
    known = opened.remembered
    return direct.of_report(belief, known.row, fence_of(one.report), known.session)
