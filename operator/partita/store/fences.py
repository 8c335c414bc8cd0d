"""Fences: rows whose deletion decides who may say what became of an attempt or a timer.

Invariant: a fence is tried only after the run was locked, and only the returned rows count. Conditions on time are
compared with ``clock_timestamp()``, since ``now()`` is older than the wait for the lock.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from enum import IntEnum
from typing import NamedTuple
from uuid import UUID

from partita.domain.payload import Payload
from partita.domain.record import record
from partita.domain.state.rows import NodeKey, ReadyKey
from partita.store.database import Connection
from partita.store.sql import Sql


class Demand(IntEnum):
    """Who ends a lease, and on which condition."""

    WORKER = 0
    """Its worker reports or hands back: no condition."""
    OVERDUE = 1
    """Only if the attempt's deadline has passed."""
    WORKER_GONE = 2
    """Only if the worker's own time has run out."""


class LeaseFence(NamedTuple):
    """A lease to end."""

    run_id: UUID
    node: str
    item: int
    attempt: int
    lease_id: UUID
    demand: int


class TimerFence(NamedTuple):
    """A timer to fire, if it is due."""

    run_id: UUID
    kind: str
    node: str
    item: int


class ReadyFence(NamedTuple):
    """A ready row to withdraw, if its scheduleToStart has passed."""

    run_id: UUID
    node: str
    item: int
    attempt: int
    queue: str
    lane: int
    priority: int
    seq: int

    @classmethod
    def of(cls, run_id: UUID, key: NodeKey, attempt: int, ready: ReadyKey) -> ReadyFence:
        """The fence of an attempt whose ready row stands at ``ready``."""
        return cls(run_id, key.node, key.index, attempt, *ready)


@record
class EndedLease:
    """A lease that was deleted."""

    generation: int
    worker_id: str
    claimed_at: datetime


EndedLeases = dict[tuple[UUID, str, int, UUID], EndedLease]
"""By (run, node, index, lease)."""


class RecordedAttempt(NamedTuple):
    """A report, as history knows it."""

    run_id: UUID
    node: str
    item: int
    attempt: int
    worker_id: str


@record
class HandedOn:
    """A task that was leased to the worker by an earlier sending of its report."""

    generation: int
    node: str
    index: int
    attempt: int
    lease_id: UUID
    type: str
    queue: str
    namespace: str
    input: Payload
    claimed_at: datetime
    deadline_at: datetime


async def end_leases(connection: Connection, sql: Sql, fences: Sequence[LeaseFence]) -> EndedLeases:
    """Delete leases; the answer holds those that were there."""
    records = await connection.fetch(sql("fence_leases"), *zip(*fences, strict=True))
    return {(r[0], r[1], r[2], r[3]): EndedLease(r[4], r[5], r[6]) for r in records}


async def fire_timers(connection: Connection, sql: Sql, fences: Sequence[TimerFence]) -> set[TimerFence]:
    """Delete timers that are due; the answer holds those."""
    records = await connection.fetch(sql("fence_timers"), *zip(*fences, strict=True))
    return {TimerFence(*record) for record in records}


async def expire_ready(
    connection: Connection, sql: Sql, fences: Sequence[ReadyFence]
) -> set[tuple[UUID, str, int, int]]:
    """Delete ready rows that waited too long; the answer holds them by (run, node, index, attempt)."""
    records = await connection.fetch(sql("fence_ready"), *zip(*fences, strict=True))
    return {(r[0], r[1], r[2], r[3]) for r in records}


async def take_inbox(connection: Connection, sql: Sql, ids: Sequence[int]) -> set[int]:
    """Delete inbox rows; the answer holds those that were still there."""
    return {record[0] for record in await connection.fetch(sql("fence_inbox"), ids)}


async def out_of_turn(connection: Connection, sql: Sql, messages: Sequence[tuple[UUID, int]]) -> set[int]:
    """Which of these messages, (run, number), have an earlier one of their run before them that is not among them."""
    runs, ids = {run_id for run_id, _ in messages}, {number for _, number in messages}
    blocked: set[UUID] = set()
    late: set[int] = set()
    waiting = await connection.fetch(sql("inbox_until"), list(runs), max(ids))
    for number, run_id in sorted((row[0], row[1]) for row in waiting):
        if number not in ids:
            blocked.add(run_id)
        elif run_id in blocked:
            late.add(number)
    return late


async def recorded_attempts(
    connection: Connection, sql: Sql, reports: Sequence[tuple[UUID, int, str, int, int, str]]
) -> dict[RecordedAttempt, bool]:
    """Which reports, (run, generation, node, index, attempt, worker), are in the history already, and whether as late
    results, which changed nothing."""
    columns = tuple(zip(*reports, strict=True))
    records = await connection.fetch(sql("recorded_attempts"), *columns, min(columns[0]), max(columns[0]))
    return {RecordedAttempt(*record[:5]): record[5] for record in records}


async def handed_on(connection: Connection, sql: Sql, reports: Sequence[tuple[UUID, UUID]]) -> dict[UUID, HandedOn]:
    """Tasks that these reports, (run, request id), were answered with before, by request id."""
    runs, requests = zip(*reports, strict=True)
    records = await connection.fetch(sql("handed_on"), runs, requests, min(runs), max(runs))
    return {
        r["claim_id"]: HandedOn(
            r["generation"],
            r["node"],
            r["index"],
            r["attempt"],
            r["lease_id"],
            r["type"],
            r["queue"],
            r["namespace"],
            Payload.parse(r["input"] or "null"),
            r["claimed_at"],
            r["deadline_at"],
        )
        for r in records
    }
