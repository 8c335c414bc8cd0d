"""Reads for people: a run, history, definitions, queues, workers; lists of runs are in ``lists``.

Purpose: everything that ``get`` and the status pages show. Invariant: nothing counts or skips rows to get to a page: it
begins after the last key of the one before. Trade-off: a run is read with several statements of one snapshot, so that
none has to join tables whose rows have nothing to do with each other.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final
from uuid import UUID

import orjson

from partita.domain.errors import InvalidError, NotFoundError, Problem
from partita.domain.ids import bounds
from partita.domain.payload import Payload
from partita.domain.places import shortened
from partita.domain.state.rows import ErrorInfo, Parent, RunStatus
from partita.store.database import Connection, Database, Record
from partita.store.details import detail_of
from partita.store.views import (
    DefinitionView,
    HistoryView,
    NodeView,
    QueueView,
    RunDetailView,
    RunView,
    SignalView,
    TimerView,
    WaitingView,
    WaitView,
    WorkerView,
)

_SIGNALS: Final = 1_000


async def get_run(database: Database, run_id: UUID) -> RunDetailView:
    """A run with nodes, waits, timers and its first 1,000 signals, of one moment; raises NotFoundError.

    A loop is one node, with its progress; ``trees.items`` has its items, and ``trees.children`` the run's children.
    """
    sql = database.sql

    async def load(connection: Connection) -> RunDetailView:
        run = await connection.fetchrow(sql("run_by_id"), run_id)
        if run is None:
            raise NotFoundError(f"run {run_id}: does not exist, or its month has been dropped", hint="partita list")
        mailbox = run["mailbox_id"] or run_id
        return RunDetailView(
            run_view(run),
            tuple(map(node_view, await connection.fetch(sql("run_nodes"), run_id))),
            tuple(WaitView(**row) for row in await connection.fetch(sql("run_waits"), run_id, mailbox)),
            tuple(map(_timer, await connection.fetch(sql("run_timers"), run_id))),
            tuple(map(_signal, await connection.fetch(sql("run_signals"), run_id, _SIGNALS))),
        )

    return await database.read(load, snapshot=True)


async def find_run(database: Database, namespace: str, name: str) -> UUID:
    """Id of the newest run with this name (its WorkflowRun object's); raises NotFoundError.

    An empty name is no name, since the runs without one would all fit; raises InvalidError.

    Unfinished runs come first, since a name is used by one object at a time.
    """
    if not name:
        raise InvalidError("run", (Problem("name", "is empty; expected a run's id or its object's name"),))
    run_id = await database.fetchval("newest_run_named", namespace, name)
    if run_id is None:
        run_id = await database.fetchval("newest_ending_named", namespace, name)
    if run_id is None:
        raise NotFoundError(
            f"run {namespace}/{shortened(name)}: does not exist; expected a run's id or its object's name",
            hint="partita list",
        )
    return UUID(int=run_id.int)


async def waiting(database: Database, run_ids: Iterable[UUID]) -> Mapping[UUID, tuple[WaitingView, ...]]:
    """What each of these runs waits for, where it does: at most 50 signals, 50 timers and 50 children each."""
    found: dict[UUID, tuple[WaitingView, ...]] = {}
    ids = list(run_ids)
    for row in await database.fetch("waits_of_runs", ids, *bounds(ids)) if ids else ():
        wait = WaitingView(row["kind"], row["name"], row["node"], row["until"], row["child"])
        found[row["id"]] = (*found.get(row["id"], ()), wait)
    return found


async def history(database: Database, run_id: UUID, *, after: int = 0, limit: int = 1_000) -> tuple[HistoryView, ...]:
    """Lines of a run's history after a sequence number, oldest first."""
    return tuple(map(_line, await database.fetch("run_history_page", run_id, after, limit)))


async def definitions(
    database: Database,
    namespace: str | None = None,
    *,
    after: tuple[str, str] = ("", ""),
    limit: int = 100,
    deleted: bool = False,
) -> tuple[DefinitionView, ...]:
    """Definitions by namespace and name, after a (namespace, name); ``deleted``: those too."""
    rows = await database.fetch("definitions_page", namespace, *after, limit, deleted)
    return tuple(DefinitionView(**row) for row in rows)


async def queues(database: Database) -> tuple[QueueView, ...]:
    """Every queue with ready tasks, running attempts or live workers."""
    return tuple(QueueView(**row) for row in await database.fetch("queues"))


async def workers(database: Database, *, after: str = "", limit: int = 1_000) -> tuple[WorkerView, ...]:
    """Worker processes by id, dead ones too until they are cleared away."""
    return tuple(map(_worker, await database.fetch("workers_page", after, limit)))


def run_view(row: Record) -> RunView:
    """A row of ``workflow_runs``."""
    values = dict(row)
    values.pop("mailbox_id", None)
    place = [values.pop(f"parent_{name}") for name in ("id", "node", "index", "attempt")]
    context, error, output = (values.pop(name) for name in ("context_json", "error_json", "output_json"))
    parsed = {
        "id": UUID(int=row["id"].int),
        "name": values["name"] or str(row["id"]),
        "status": RunStatus(values["status"]),
        "cr_uid": values["cr_uid"] or "",
        "idempotency_key": values["idempotency_key"] or "",
        "tags": tuple(orjson.loads(values["tags"] or "[]")),
        "attributes": orjson.loads(values["attributes"] or "{}"),
        "error": error_of(error),
        "input": None if context is None else Payload.of(orjson.loads(context).get("input")),
        "output": payload_of(output),
        "parent": None if place[0] is None else Parent(*place),
        "subflow": values["subflow"] or "",
        "depth": values["depth"] or 0,
    }
    return RunView(**{**values, **parsed})


def node_view(row: Record) -> NodeView:
    """A row of ``task_instances`` with its lease."""
    values = dict(row)
    error, worker, detail = values.pop("last_error"), values.pop("worker_id"), detail_of(values.pop("detail"))
    extra = {} if detail is None else {"loop": detail.loop, "child": detail.child}
    payloads = {name: payload_of(values[name]) for name in ("input", "output", "event")}
    texts = {"queue": values["queue"] or "", "worker": worker or ""}
    return NodeView(**{**values, **payloads, **texts, **extra, "error": error_of(error)})


def _timer(row: Record) -> TimerView:
    return TimerView(**{**row, "last_error": row["last_error"] or ""})


def _signal(row: Record) -> SignalView:
    values = {**row, "payload": Payload.parse(row["payload"])}
    return SignalView(**{**values, "consumed_by": row["consumed_by"] or "", "refused": row["refused"] or ""})


def _line(row: Record) -> HistoryView:
    values: dict[str, Any] = {**row, "error": error_of(row["error"]), "details": payload_of(row["details"])}
    texts = {name: row[name] or "" for name in ("node", "who")}
    numbers = {name: row[name] or 0 for name in ("index", "attempt")}
    return HistoryView(**{**values, **texts, **numbers})


def _worker(row: Record) -> WorkerView:
    namespaces = None if row["namespaces"] is None else tuple(row["namespaces"])
    return WorkerView(**{**row, "namespaces": namespaces, "queues": tuple(row["queues"]), "types": tuple(row["types"])})


def payload_of(text: str | None) -> Payload | None:
    """A column of json."""
    return None if text is None else Payload.parse(text)


def error_of(text: str | None) -> ErrorInfo | None:
    """A column of an error."""
    if text is None:
        return None
    value = orjson.loads(text)
    details = Payload.of(value["details"]) if "details" in value else None
    return ErrorInfo(str(value.get("type", "")), str(value.get("message", "")), details)
