"""Runs of a manifest that other runs stand in the way of: the same id, or the same key for another order.

Invariant: read only, and refused as the start itself would refuse it. Trade-off: a run that takes the key or the id
afterwards is found by the start alone.
"""

from __future__ import annotations

from collections.abc import Iterable

from partita.cli.plan import Planned
from partita.domain.errors import ConflictError, IdempotencyKeyInUseError, NotFoundError
from partita.engine.prepared import hash_of
from partita.store import reads
from partita.store.database import Database
from partita.store.starts import RunKey, held_keys


async def refuse_clashes(database: Database, plan: Iterable[Planned]) -> None:
    """Raise ConflictError for the first run that cannot be started."""
    for each in plan:
        if each.run is not None and each.run.run_id is not None:
            await _refuse_id(database, each)
        if each.run is not None and each.run.idempotency_key is not None and each.input is not None:
            key = RunKey("idempotency", each.namespace, each.run.idempotency_key)
            await _refuse_key(database, key, hash_of(each.run.definition, each.input))


async def _refuse_id(database: Database, planned: Planned) -> None:
    identity = planned.run.run_id if planned.run is not None else None
    if identity is None:
        return
    try:
        await reads.get_run(database, identity)
    except NotFoundError:
        return
    words = f"run {identity}: runId: was started by another request; expected an id that was not used before"
    raise ConflictError(words, hint=f"partita get {identity}")


async def _refuse_key(database: Database, key: RunKey, input_hash: str) -> None:
    held = await database.read(lambda connection: held_keys(connection, database.sql, [key]))
    holder = held.get(key)
    if holder is not None and holder.input_hash != input_hash:
        words = f"idempotencyKey: {key.key!r} belongs to a run with another input, {holder.run_id}"
        raise IdempotencyKeyInUseError(f"{words}; expected a key of its own", hint=f"partita get {holder.run_id}")
