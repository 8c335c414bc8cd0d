"""One transaction: lock, read, fence, decide and write the submissions of many runs.

Invariant: everything that is decided upon is read under the lock of its run, or proved by the lock to be as it was read
(``opening``), or remembered and proved by the statement that writes (``direct``); no later statement locks a run that
existed before. The number of statements depends on the kinds of submissions, never on how many there are. Trade-off:
one failure undoes the whole batch, which is then tried again in parts by ``transactor``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from operator import attrgetter
from typing import Final
from uuid import UUID

from partita.domain.errors import NotFoundError, OutdatedError
from partita.domain.state.effects import Effects, Message
from partita.domain.state.events import Reply, RunStarted
from partita.domain.state.slices import Context, Limits, new_slice
from partita.engine import admission, fencing, handoff, likeness, messages, opening, rounds
from partita.engine.definitions import Definitions
from partita.engine.eager import IdleWorkers, Promise
from partita.engine.known_runs import KnownRuns
from partita.engine.likeness import Likeness
from partita.engine.memory import Memory
from partita.engine.messages import Delivery
from partita.engine.notices import Notices
from partita.engine.opening import FEW, Opening
from partita.engine.requests import PROTOCOL, ReportReply, StartReply
from partita.engine.submissions import Happening, Reported, Start, Submission
from partita.engine.turns import CollidedError, Group, Turn
from partita.engine.urgency import Urgency
from partita.settings import Settings
from partita.store.database import Connection
from partita.store.months import Months
from partita.store.sequence import ReadySequence
from partita.store.slices import Loaded
from partita.store.sql import Sql
from partita.store.starts import NewRun, TakenError
from partita.store.together import Places
from partita.store.writes import ProjectionDelays, Writes

_RANK: Final = attrgetter("rank")


@dataclass(frozen=True, slots=True)
class Tools:
    """What every batch of a process works with."""

    sql: Sql
    months: Months
    settings: Settings
    limits: Limits
    delays: ProjectionDelays
    definitions: Definitions
    notices: Notices
    urgency: Urgency
    known: KnownRuns
    idle: IdleWorkers
    memory: Memory


class Batch:
    """The submissions of one transaction; used once."""

    __slots__ = (
        "_few", "_messages", "_promises", "_sent", "_tools", "_wait",
        "groups", "skipped", "sql", "turns", "writes", "xid",
    )  # fmt: skip  # a line a name says no more

    def __init__(self, tools: Tools, submissions: Sequence[Submission], *, wait: bool) -> None:
        self._tools = tools
        self._wait = wait
        self.turns = [Turn(submission) for submission in sorted(submissions, key=_RANK)]
        numbers = [one.run_id.int for one in submissions]
        self.sql = tools.months.sql(min(numbers), max(numbers))
        """Statements on all months, or on the one that all runs belong to."""
        self.skipped: list[Submission] = []
        """Submissions whose run another process held."""
        self.groups: Sequence[Group] = ()
        """The runs that change, once it is decided how."""
        self.writes: Writes | None = None
        self._messages: Sequence[tuple[str, Message]] = ()
        """What runs are to be told, and the namespace of each."""
        self._few: Sequence[tuple[UUID, Group]] = ()
        """Runs of a small batch, whose next report may come alone as well, and what they are like."""
        self._promises: Mapping[Turn, Promise] = {}
        """Slots of idle workers that wait for the outcome."""
        self._sent: list[Delivery] = []
        """Messages that this transaction sends."""
        self.xid = ""
        """The transaction's id; empty until it is known."""

    @property
    def within_month(self) -> bool:
        """Whether its statements are on the tables of one month."""
        return self.sql is not self._tools.sql

    @property
    def first(self) -> str:
        """What has to be sent with BEGIN: on one month's tables, the guard against those who replace them."""
        return self._tools.months.guard if self.within_month else ""

    async def run(self, connection: Connection) -> None:
        """Everything between BEGIN and COMMIT."""
        tools = self._tools
        opened = await self._open(connection)
        loaded = opened.loaded
        self.xid = loaded.xid
        tools.months.learn(loaded.now)
        tools.memory.learn(loaded, asyncio.get_running_loop().time())
        if loaded.oldest_protocol > PROTOCOL:
            raise OutdatedError(
                f"engine: protocol {PROTOCOL} is too old; expected {loaded.oldest_protocol} or newer",
                hint="run the program version that migrated the schema",
            )
        if (alike := await self.decide(connection, opened)) is not None:
            await self._send(connection, alike)

    async def decide(self, connection: Connection, opened: Opening) -> Sequence[Likeness] | None:
        """From what was locked and read to ``writes``; what is to be copied, or None when there is nothing to write."""
        tools, sql, loaded = self._tools, self.sql, opened.loaded
        starts = [(turn, turn.submission) for turn in self.turns if isinstance(turn.submission, Start)]
        others = [turn for turn in self.turns if not isinstance(turn.submission, Start) and not turn.settled]
        new = await admission.admit(connection, sql, starts, loaded, tools.settings.retention)
        await fencing.fence(connection, sql, others, loaded, opened.ended)
        self.groups = groups = new.groups + await self._grouped(connection, others, opened)
        if not groups:
            return None
        context = Context(loaded.now, tools.limits)
        with likeness.sharing_failures(new.alike):
            await rounds.decide_batch(connection, sql, groups, context, tools.settings.engine)
        if not loaded.paused:
            await self._hand_on(connection, groups, new.alike, loaded.now)
        new_runs = await admission.take_keys(connection, sql, new, tools.settings.retention)
        self._gather(new_runs, loaded)
        _answer(groups)
        if len(self.turns) <= FEW:
            self._few = [(group.run_id, group) for group in groups]
            self._few += [(start.run_id, kind.first) for kind in new.alike for _, start in kind.others]
        return new.alike

    async def _hand_on(
        self, connection: Connection, groups: Sequence[Group], alike: Sequence[Likeness], now: datetime
    ) -> None:
        """Give workers what became ready; where a batch is small, idle workers of this process too.

        What is copied stays as it was decided: with a ready row.
        """
        tools = self._tools
        if len(self.turns) <= FEW:
            copied = {kind.first.run_id for kind in alike}
            self._promises = handoff.promised([one for one in groups if one.run_id not in copied], tools.idle)
        await handoff.hand_on(connection, self.sql, groups, tools.urgency, now, self._promises)
        for turn, promise in self._promises.items():
            promise.task = turn.next

    async def _open(self, connection: Connection) -> Opening:
        """Lock and read; skipped and missing runs leave the batch here."""
        submissions = [turn.submission for turn in self.turns]
        opened = await opening.begin(connection, self.sql, submissions, self._tools.known, wait=self._wait)
        staying = []
        for turn in self.turns:
            one = turn.submission
            if isinstance(one, Start) or one.run_id in opened.locked:
                staying.append(turn)
            elif one.run_id in opened.loaded.runs:
                self.skipped.append(one)
            else:
                turn.settle(_missing(one))
                staying.append(turn)
        self.turns = staying
        return opened

    async def _grouped(self, connection: Connection, turns: Sequence[Turn], opened: Opening) -> list[Group]:
        """The turns that have an event, by run, with a slice of what has been read of it."""
        by_run: dict[UUID, list[Turn]] = {}
        for turn in turns:
            if turn.event is not None:
                by_run.setdefault(turn.submission.run_id, []).append(turn)
        if (known := opened.remembered) is not None:
            return [Group(run_id, known.version, known.fresh(), by_run[run_id], remembered=True) for run_id in by_run]
        runs = {run_id: opened.loaded.runs[run_id] for run_id in by_run}
        versions = await self._tools.definitions.versions(
            connection, {(run.definition_id, run.row.version) for run in runs.values()}
        )
        groups = []
        for run_id, of_run in by_run.items():
            run = runs[run_id]
            version = versions[run.definition_id, run.row.version]
            definition = version.definition.flow(run.row.subflow)
            groups.append(Group(run_id, version, new_slice(definition, run.row), of_run))
            opened.give(groups[-1])
        return groups

    def _gather(self, new_runs: Sequence[NewRun], loaded: Loaded) -> None:
        tools = self._tools
        writes = Writes(loaded.now, ReadySequence(loaded.now), tools.delays, tools.settings.engine.message_grace_ms)
        sent: list[tuple[str, Message]] = []
        for group in self.groups:
            if (effects := group.effects) is not None:
                writes.add(group.slice, effects, group.handed)
                sent += [(effects.run.namespace, message) for message in effects.messages]
        writes.messages = [messages.row_of(message, namespace) for namespace, message in sent]
        writes.start(new_runs)
        self.writes, self._messages = writes, sent

    async def _send(self, connection: Connection, alike: Sequence[Likeness]) -> None:
        writes = self.writes
        if writes is None:
            raise AssertionError("nothing was decided")
        try:
            await writes.send(connection, self.sql)
        except TakenError as taken:
            raise CollidedError from taken
        for kind in alike:
            await likeness.copy(connection, self.sql, kind, writes.sequence)
        numbered = zip(writes.message_ids, self._messages, strict=True)
        self._sent = [Delivery(number, m.run_id, namespace, m.event) for number, (namespace, m) in numbered]

    def wrote(self, xid: int, session: object, places: Places | None = None) -> None:
        """The transaction was committed over this connection: remember a lone run, and forget all others.

        ``places``: of its rows, where it was not ``run`` that has sent them.
        """
        memory, writes = self._tools.memory, self.writes
        if len(self.turns) == 1 and len(self.groups) == 1 and writes is not None:
            writes.places = writes.places if places is None else places
            memory.keep(self.groups[0], writes.placed(xid), session)
        else:
            memory.forget([turn.submission.run_id for turn in self.turns])

    def abandon(self, *, unknown: bool = True) -> None:
        """Tell those who wait beside the callers that the transaction failed, or, if so, that nobody knows."""
        for promise in self._promises.values():
            promise.failed(unknown=unknown)

    def deliver(self) -> None:
        """Answer the callers and tell the process's duties, after the commit."""
        for promise in self._promises.values():
            promise.committed()
        for turn in self.turns:
            if isinstance(turn.answer, Exception):
                turn.submission.fail(turn.answer)
            else:
                turn.submission.answer(turn.answer)
        for run_id, like in self._few:
            self._tools.known.note(run_id, (like.version.id, like.version.version), _subflow(like))
        writes, notices = self.writes, self._tools.notices
        if writes is None:
            return
        if writes.queues:
            notices.tell_ready(frozenset(writes.queues))
        if writes.timers:
            notices.tell_timer(min(row[1] for row in writes.timers))
        if writes.projections:
            notices.tell_projection()
        if self._sent:
            notices.tell_messages(self._sent)


def _subflow(group: Group) -> str:
    """The part of its definition that a run executes, if not the whole."""
    if (run := group.slice.run) is not None:
        return run.subflow
    event = group.turns[0].event
    return event.subflow if isinstance(event, RunStarted) else ""


def _missing(one: Submission) -> object:
    """The answer of a submission whose run does not exist."""
    if isinstance(one, Reported):
        return ReportReply("stale")
    if isinstance(one, Happening):
        return NotFoundError(f"run {one.run_id}: does not exist; expected the id of a run", hint="partita list")
    return fencing.STALE


def _answer(groups: Sequence[Group]) -> None:
    for group in groups:
        for turn in group.turns:
            if turn.decided is not None and group.effects is not None:
                turn.settle(_answer_of(turn, turn.decided, group.effects))


def _answer_of(turn: Turn, decided: Effects, merged: Effects) -> object:
    one = turn.submission
    if isinstance(one, Start):
        return StartReply(one.run_id, created=True, status=merged.run.status)
    if isinstance(one, Reported):
        return ReportReply(_report_outcome(decided.reply), turn.next)
    return decided.reply


def _report_outcome(reply: Reply) -> str:
    return "stale" if reply.outcome == "refused" else reply.outcome
