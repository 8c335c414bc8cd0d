"""Starting runs: what is looked at before, and the rows that are only ever inserted.

Invariant: nothing here locks a run that exists. Two transactions that start the same run, or runs of the same key,
meet at a unique index: the later one gets no row back and begins again, and then finds what the earlier one wrote.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

import orjson
from asyncpg import UniqueViolationError

from partita.domain.payload import Payload
from partita.domain.record import record
from partita.domain.state.effects import Effects
from partita.domain.state.rows import TERMINAL, RunStatus
from partita.store import columns
from partita.store.columns import Row
from partita.store.database import Connection
from partita.store.sql import Sql


class RunKey(NamedTuple):
    """A name that may start only one run: scope ``cr`` or ``idempotency``."""

    scope: str
    namespace: str
    key: str


class KeyRow(NamedTuple):
    """A key to be taken for a run."""

    scope: str
    namespace: str
    key: str
    run_id: UUID
    input_hash: str
    expires_at: datetime


@record
class HeldKey:
    """The run that holds a key; ``status`` is None when the run's month is gone."""

    run_id: UUID
    input_hash: str
    status: RunStatus | None
    cr_uid: str


@record(kw_only=True)
class NewRun:
    """A run to insert: the effects of its start, and what only the shell knows of it."""

    effects: Effects
    definition_id: UUID
    start_request_id: UUID
    started_by: str
    cluster_uid: str | None
    engine_id: str | None
    idempotency_key: str | None
    tags: tuple[str, ...]
    attributes: dict[str, str]
    input: Payload
    config: Payload | None


async def held_keys(connection: Connection, sql: Sql, keys: Sequence[RunKey]) -> dict[RunKey, HeldKey]:
    """Which of these keys are held, and by what."""
    records = await connection.fetch(sql("start_keys"), *zip(*keys, strict=True))
    if not records:
        return {}
    ids = [record["run_id"] for record in records]
    held_by = sql.parents("start_key_runs")  # other runs than the batch's, of any month
    runs = await connection.fetch(held_by, ids, min(ids), max(ids))
    known = {run["id"]: (RunStatus(run["status"]), run["cr_uid"] or "") for run in runs}
    return {
        RunKey(*record[:3]): HeldKey(record["run_id"], record["input_hash"], *known.get(record["run_id"], (None, "")))
        for record in records
    }


async def insert_keys(connection: Connection, sql: Sql, keys: Sequence[KeyRow]) -> bool:
    """Take keys for runs, in the order of the keys; False when another transaction took one meanwhile."""
    if not keys:
        return True
    taken = await connection.fetch(sql("insert_keys"), *zip(*sorted(keys), strict=True))
    return len(taken) == len(keys)


class TakenError(Exception):
    """Another transaction inserted one of these runs meanwhile. This one is of no more use; its caller begins again."""


async def insert_runs(connection: Connection, sql: Sql, runs: Sequence[NewRun]) -> None:
    """Insert runs that are many, or ended as they started; raises TakenError."""
    rows, open_rows = rows_of(runs)
    with inserting():
        await connection.fetch(sql("insert_runs"), *columns.arrays(rows))
    if open_rows:
        await connection.fetch(sql("insert_open_runs"), *columns.arrays(open_rows))


def rows_of(runs: Sequence[NewRun]) -> tuple[list[Row], list[Row]]:
    """What ``insert_runs`` and ``insert_open_runs`` take."""
    unfinished = [run for run in runs if run.effects.run.status not in TERMINAL]
    return [_run_row(run) for run in runs], [_open_row(run) for run in unfinished]


@contextmanager
def inserting() -> Iterator[None]:
    """Raises TakenError when a run exists that was to be inserted."""
    try:
        yield
    except UniqueViolationError as error:
        if (error.table_name or "").startswith("workflow_runs"):
            raise TakenError from error
        raise


async def insert_inbox(connection: Connection, sql: Sql, run_id: UUID, kind: str, body: str) -> int:
    """Insert one row for a run's inbox into the caller's transaction; returns its id."""
    inbox_id: int = await connection.fetchval(sql("insert_inbox"), run_id, kind, body)
    return inbox_id


def _run_row(new: NewRun) -> Row:
    run = new.effects.run
    changing = columns.run_row(run, new.effects.output)
    return (
        run.id,
        new.definition_id,
        new.start_request_id,
        run.created_at,
        run.version,
        run.priority,
        run.total,
        *changing[1:],
        run.namespace,
        run.name,
        run.definition,
        new.started_by,
        new.cluster_uid,
        new.engine_id,
        run.cr_uid or None,
        new.idempotency_key,
        *_labels(new),
        _context(new),
        *columns.kin_row(run),
    )


def _labels(new: NewRun) -> Row:
    """Tags and attributes."""
    tags = orjson.dumps(list(new.tags)).decode() if new.tags else None
    return tags, orjson.dumps(new.attributes).decode() if new.attributes else None


def _context(new: NewRun) -> str:
    config = "" if new.config is None else f',"config":{new.config.text}'
    return f'{{"input":{new.input.text}{config}}}'


def _open_row(new: NewRun) -> Row:
    run = new.effects.run
    uid = run.cr_uid or None
    subflow = run.subflow or None
    place = (run.namespace, run.definition, run.name, new.cluster_uid, new.engine_id, uid, subflow)
    return (run.id, *place, new.started_by, *_labels(new))
