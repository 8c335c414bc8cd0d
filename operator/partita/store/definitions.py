"""Definition versions in the database.

Invariant: at most one version of a (namespace, name) is deployed, held by a unique index; deployments of one
definition are serialised by an advisory lock, since an ordinary lock needs a row that the first one does not have.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from partita.store.database import Connection
from partita.store.sql import Sql


@dataclass(frozen=True, slots=True)
class StoredVersion:
    """The version that a deployment ended with."""

    id: UUID
    version: int
    created: bool


@dataclass(frozen=True, slots=True)
class StoredDefinition:
    """A version with its spec as JSON text."""

    id: UUID
    version: int
    namespace: str
    name: str
    content_hash: str
    spec: str


async def deploy(
    connection: Connection,
    sql: Sql,
    namespace: str,
    name: str,
    spec: str,
    content_hash: str,
    created_by: str,
    new_id: UUID,
) -> StoredVersion:
    """Append the spec as the next version, or deploy the version with its hash again."""
    await connection.fetch(sql("lock_definition"), namespace, name)
    rows = await connection.fetch(sql("definition_versions"), namespace, name)
    same = next((row for row in rows if row["content_hash"] == content_hash), None)
    await connection.execute(sql("revive_definition"), namespace, name)
    if same is not None:
        await connection.execute(sql("withdraw_definition"), namespace, name, same["version"])
        await connection.execute(sql("redeploy_definition"), namespace, name, same["version"])
        return StoredVersion(same["id"], same["version"], created=False)
    await connection.execute(sql("withdraw_definition"), namespace, name, None)
    definition_id, version = (rows[0]["id"], rows[0]["version"] + 1) if rows else (new_id, 1)
    await connection.execute(
        sql("insert_definition"), definition_id, version, namespace, name, spec, content_hash, created_by
    )
    return StoredVersion(definition_id, version, created=True)


async def delete(connection: Connection, sql: Sql, namespace: str, name: str) -> bool:
    """Mark every version as deleted; False when none was left."""
    await connection.fetch(sql("lock_definition"), namespace, name)
    return bool(await connection.fetch(sql("delete_definition"), namespace, name))


async def load(connection: Connection, text: str, keys: Sequence[tuple[UUID, int]]) -> list[StoredDefinition]:
    """Specs of versions by (id, version); ``text`` is the block ``load_definitions``."""
    records = await connection.fetch(text, *zip(*keys, strict=True))
    return [StoredDefinition(*record) for record in records]
