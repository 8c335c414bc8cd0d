"""Bare SQL that writes what the engine writes: the denominator of throughput and latency.

The transactions of some runs are decided beforehand, by the engine's own state machine and its own gathering of rows;
measured is only sending the statements that write, one transaction a transition as the engine does it: start, claim,
three reports with the next task handed on. Nothing is locked first, nothing is read, nothing is decided and no worker
exists. Lone runs are also played in the fewest round trips that are possible, each transition as one statement that is
its own transaction (``play_at_once``), with the first task leased by the start: no engine on these tables can be
faster. Invariant: since the rows come from the same code, all leave the same rows behind; a test counts them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Final
from uuid import UUID, uuid4

from uuid6 import uuid7

from bench import narrow
from bench.workload import NAME, NODES, STEPS, spec
from partita.domain.manifest import definition_from_spec
from partita.domain.model import Definition
from partita.domain.payload import NULL, Payload
from partita.domain.state import absorb, decide
from partita.domain.state.effects import Effects
from partita.domain.state.events import Event, RunStarted, TaskCompleted
from partita.domain.state.rows import NodeKey
from partita.domain.state.slices import Context, Need, Slice
from partita.store import fences, together
from partita.store.columns import Row
from partita.store.database import Connection, Dedicated
from partita.store.fences import LeaseFence
from partita.store.months import Months
from partita.store.sequence import ReadySequence
from partita.store.sql import Sql
from partita.store.starts import NewRun
from partita.store.together import Part
from partita.store.writes import NewLease, ProjectionDelays, Writes

NAMESPACE: Final = "bare"
"""Another one than the engine's runs have, so that they can be told apart; also the queue, which no worker serves."""
WORKER: Final = "bench-worker"
_TIMEOUT: Final = timedelta(minutes=5)
_DELAYS: Final = ProjectionDelays(timedelta(0), timedelta(0))


@dataclass(slots=True)
class Transition:
    """One transaction: what it inserts, fences and writes."""

    writes: Writes
    new: list[NewRun] = field(default_factory=list)
    fences: list[LeaseFence] = field(default_factory=list)
    updates: tuple[list[Row], list[Row]] = ([], [])
    """Of runs and of tasks, by key."""

    async def send(self, connection: Connection, sql: Sql) -> None:
        """The statements between BEGIN and COMMIT."""
        if self.new:
            self.writes.start(self.new)
        if self.fences:
            await fences.end_leases(connection, sql, self.fences)
        await narrow.send(connection, sql, *self.updates, (min(self.writes.ids), max(self.writes.ids)))
        await self.writes.send(connection, sql)

    def statement(self, sql: Sql) -> tuple[str, list[object]]:
        """All of it as one statement."""
        if self.new:
            self.writes.start(self.new)
        parts = narrow.parts(sql, *self.updates, (min(self.writes.ids), max(self.writes.ids)))
        if self.fences:
            parts.append(("fenced", sql("fence_leases"), list(zip(*self.fences, strict=True))))
        parts += [(one.name, sql(one.name), list(one.values)) for one in self.writes.at_once() or ()]
        text = _text(tuple((name, text, len(values)) for name, text, values in parts))
        return text, [value for _, _, values in parts for value in values]


@lru_cache
def _text(parts: tuple[tuple[str, str, int], ...]) -> str:
    clauses = together.clauses_of((Part(name, count, counted=False), text) for name, text, count in parts)
    return f"WITH {', '.join(clauses)} SELECT 1"


@dataclass(slots=True)
class _Run:
    """A run while its transitions are made."""

    id: UUID
    slice: Slice
    lease: UUID = field(default_factory=uuid4)


def definition() -> Definition:
    """The benchmark's definition, parsed."""
    return definition_from_spec(spec(NAMESPACE), namespace=NAMESPACE, name=NAME)


def decided(count: int, parsed: Definition) -> list[Transition]:
    """The five transactions of ``count`` runs that go through their steps together."""
    now = datetime.now(UTC)
    runs = [_Run(run_id := uuid7(), _empty(parsed), run_id) for _ in range(count)]
    begun, rows = _start(runs, now)
    return [begun, _claim(runs, rows, now), *(_report(runs, step, now) for step in range(STEPS))]


async def play(transitions: Sequence[Transition], connection: Dedicated, sql: Sql) -> None:
    """Send them, one transaction each, on the current month's own tables as the engine does it."""
    months = Months(sql)
    for transition in transitions:
        numbers = [run_id.int for run_id in transition.writes.ids]
        own = months.sql(min(numbers), max(numbers))
        async with connection.transaction() as session:
            await transition.send(session, own)


def decided_at_once(parsed: Definition) -> list[Transition]:
    """The four transactions of one run whose first task is leased by its start."""
    now = datetime.now(UTC)
    runs = [_Run(run_id := uuid7(), _empty(parsed), run_id)]
    begun, _ = _start(runs, now, leased=True)
    return [begun, *(_report(runs, step, now) for step in range(STEPS))]


async def play_at_once(transitions: Sequence[Transition], connection: Dedicated, sql: Sql) -> None:
    """Send them, each as one statement."""
    months = Months(sql)
    for transition in transitions:
        numbers = [run_id.int for run_id in transition.writes.ids]
        text, values = transition.statement(months.sql(min(numbers), max(numbers)))
        await connection.fetchrow(text, *values)


def _empty(parsed: Definition) -> Slice:
    return Slice(parsed, None, Payload.of({}), whole=True, timers=[], waits=[], signals=[], leased=set())


def _writes(now: datetime) -> Writes:
    return Writes(now, ReadySequence(now), _DELAYS)


def _start(runs: Sequence[_Run], now: datetime, *, leased: bool = False) -> tuple[Transition, Writes]:
    made = Transition(_writes(now))
    for run in runs:
        event = RunStarted(
            run_id=run.id, namespace=NAMESPACE, name="", definition=NAME, version=1, input=Payload.of({})
        )
        effects = _advance(run, event, made.writes, now, handed=leased)
        made.new.append(_new_run(run.id, effects))
    return made, made.writes


def _claim(runs: Sequence[_Run], started: Writes, now: datetime) -> Transition:
    """Ready rows become leases, as a claim moves them."""
    writes = _writes(now)
    node = NODES[0]
    for run in runs:
        row = run.slice.tasks[NodeKey(node)]
        if row.ready_key is None:
            raise AssertionError(f"{node} of a new run is not ready")
        writes.ids.append(run.id)
        writes.clear_ready.append((run.id, node, 0, *row.ready_key))
        queue = row.ready_key.queue
        writes.leases.append(
            (run.id, run.lease, uuid4(), now, now + _TIMEOUT, 0, 1, 0, node, WORKER, queue, "noop")
        )  # fmt: skip
    if len(started.ready) != len(runs):
        raise AssertionError("each new run has one ready task")
    return Transition(writes)


def _report(runs: Sequence[_Run], step: int, now: datetime) -> Transition:
    """The step completes; the next one is handed on, or the run ends."""
    made = Transition(_writes(now))
    node = NODES[step]
    for run in runs:
        made.fences.append(LeaseFence(run.id, node, 0, 1, run.lease, 0))
        event = TaskCompleted(node=node, index=0, attempt=1, output=NULL, worker=WORKER, started_at=now)
        run.lease = uuid4()
        _advance(run, event, made.writes, now)
    made.updates = narrow.narrowed(made.writes)
    return made


def _advance(run: _Run, event: Event, writes: Writes, now: datetime, *, handed: bool = True) -> Effects:
    effects = decide(run.slice, event, Context(now))
    if isinstance(effects, Need):
        raise AssertionError(f"a whole run lacks {effects}")  # noqa: TRY004  # the state machine would be broken
    lease = NewLease(run.lease, uuid4(), WORKER, now + _TIMEOUT)
    writes.add(run.slice, effects, dict.fromkeys(effects.enqueue, lease) if handed else {})
    run.slice = absorb(run.slice, effects)
    return effects


def _new_run(run_id: UUID, effects: Effects) -> NewRun:
    return NewRun(
        effects=effects,
        definition_id=run_id,
        start_request_id=run_id,
        started_by="",
        cluster_uid=None,
        engine_id=None,
        idempotency_key=None,
        tags=(),
        attributes={},
        input=Payload.of({}),
        config=None,
    )
