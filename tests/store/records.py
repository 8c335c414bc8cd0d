"""Rows written directly, for tests of what only reads or moves them."""

from __future__ import annotations

from typing import Any, TypeAlias
from uuid import UUID, uuid4

from partita.domain.ids import time_of
from partita.store.database import Connection, Database

Target: TypeAlias = "Database | Connection"


async def _execute(target: Target, statement: str, *values: object) -> None:
    if isinstance(target, Database):
        await target.read(lambda connection: connection.execute(statement, *values))
    else:
        await target.execute(statement, *values)


async def insert(target: Target, table: str, **columns: Any) -> None:
    """One row."""
    names = ", ".join(columns)
    places = ", ".join(f"${number}" for number in range(1, len(columns) + 1))
    await _execute(target, f"INSERT INTO partita.{table} ({names}) VALUES ({places})", *columns.values())  # noqa: S608  # names are the test's own


async def insert_run(target: Target, run_id: UUID, **columns: Any) -> None:
    """A run; finished and without nodes unless the columns say otherwise."""
    base: dict[str, Any] = {
        "id": run_id,
        "definition_id": uuid4(),
        "start_request_id": uuid4(),
        "created_at": time_of(run_id),
        "version": 1,
        "total": 1,
        "status": "Succeeded",
        "namespace": "shop",
        "name": f"run-{run_id}",
        "definition": "order",
        "context_json": '{"input": null}',
    }
    await insert(target, "workflow_runs", **{**base, **columns})


async def open_run(
    target: Target, run_id: UUID, namespace: str = "shop", definition: str = "order", **columns: object
) -> None:
    """The row that marks a run as unfinished; as schema version 2 wrote it, unless ``started_by`` is given."""
    place = {"namespace": namespace, "definition": definition, "name": f"run-{run_id}"}
    await insert(target, "open_runs", run_id=run_id, **place, **columns)


async def end_run(
    target: Target,
    run_id: UUID,
    status: str,
    *,
    generation: int = 0,
    namespace: str = "shop",
    definition: str = "order",
    **columns: object,
) -> None:
    """The row that lists find a finished run by; as schema version 2 wrote it, unless ``started_by`` is given."""
    await insert(
        target,
        "run_endings",
        run_id=run_id,
        finished_at=time_of(run_id),
        generation=generation,
        seq=6,
        status=status,
        namespace=namespace,
        definition=definition,
        name=f"run-{run_id}",
        **columns,
    )
