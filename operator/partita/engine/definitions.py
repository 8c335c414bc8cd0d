"""Definitions: deploying, deleting and resolving versions, and the cache of parsed ones.

Invariant: a version is immutable, so that a parsed one can be kept for ever; which version is deployed is never cached
without being checked again by the transaction that starts a run of it. Trade-off: the cache is bounded and drops the
version that was used longest ago, which is then parsed again.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from typing import Final
from uuid import UUID

import orjson

from partita.domain.errors import DefinitionNotFoundError, EngineError, InvalidError
from partita.domain.manifest import definition_from_spec, parse_definition
from partita.domain.model import Definition
from partita.domain.payload import Json, Payload, encode
from partita.engine.requests import Deployed, Version
from partita.minting import new_id
from partita.store import definitions as store
from partita.store.database import Connection, Database
from partita.store.errors import boundary

_API: Final = "partita.dev/v1alpha1"
_CACHE: Final = 1_000
"""Parsed versions that a process keeps."""
Key = tuple[UUID, int]
"""A definition's id, and a version."""


class Definitions:
    """The definitions of one installation, as one process sees them."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._parsed: OrderedDict[Key, Version] = OrderedDict()
        self._deployed: dict[tuple[str, str], Key] = {}
        self._exact: OrderedDict[tuple[str, str, int], Key] = OrderedDict()
        self._writer = database.dedicated("definitions", planner=False)
        self._turn = asyncio.Lock()

    async def close(self) -> None:
        """Give back the connection."""
        await self._writer.close()

    @asynccontextmanager
    async def _writing(self) -> AsyncIterator[Connection]:
        """A transaction on the one connection, after those before it; its errors are those of ``domain.errors``."""
        with boundary():
            async with self._turn, self._writer.transaction() as connection:
                yield connection

    async def deploy(self, namespace: str, name: str, spec: Json, *, created_by: str = "") -> Deployed:
        """Store a spec under the next version, or deploy the version that has the same content again.

        Raises InvalidError with every problem of the spec.
        """
        metadata = {"namespace": namespace, "name": name}
        manifest = {"apiVersion": _API, "kind": "WorkflowDefinition", "metadata": metadata, "spec": spec}
        definition, problems = parse_definition(manifest)
        if definition is None or problems:
            raise InvalidError(f"WorkflowDefinition {namespace}/{name}", tuple(problems), hint="partita lint")
        text = encode(spec, f"WorkflowDefinition {namespace}/{name}")
        async with self._writing() as connection:
            row = await store.deploy(
                connection, self._database.sql, namespace, name, text, definition.content_hash, created_by, new_id()
            )
        self._deployed[namespace, name] = (row.id, row.version)
        self._keep(_version(row.id, row.version, definition))
        return Deployed(row.version, definition.content_hash, row.created)

    async def delete(self, namespace: str, name: str) -> bool:
        """Delete softly: starts are refused, runs go on. False when there was nothing to delete."""
        self.forget(namespace, name)
        async with self._writing() as connection:
            return await store.delete(connection, self._database.sql, namespace, name)

    def forget(self, namespace: str, name: str) -> None:
        """Drop what is remembered of which version is deployed."""
        self._deployed.pop((namespace, name), None)

    async def resolve(self, namespace: str, name: str, version: int | None = None, *, fresh: bool = True) -> Version:
        """The deployed, or an exact, version; ``fresh`` False may answer from memory, for starts, which check it.

        Raises DefinitionNotFoundError.
        """
        key = self._deployed.get((namespace, name)) if version is None and not fresh else None
        if key is None:
            key = await self._find(namespace, name, version)
            if version is None:
                self._deployed[namespace, name] = key
        return await self._load(key)

    async def exact(self, namespace: str, name: str, version: int) -> Version:
        """One version, whether it may still be started or not: what a run has decided to start.

        Raises DefinitionNotFoundError.
        """
        place = (namespace, name, version)
        key = self._exact.get(place)
        if key is None:
            found = await self._database.fetchval("exact_definition", *place)
            if found is None:
                raise DefinitionNotFoundError(f"WorkflowDefinition {namespace}/{name}: version {version} is not stored")
            key = self._exact[place] = (found, version)
            while len(self._exact) > _CACHE:
                self._exact.popitem(last=False)
        return await self._load(key)

    async def _find(self, namespace: str, name: str, version: int | None) -> Key:
        row = await self._database.fetchrow("resolve_definition", namespace, name, version)
        if row is not None and row["enabled"]:
            return row["id"], row["version"]
        which = "" if version is None else f" version {version}"
        what = "is disabled" if row is not None else "does not exist"
        raise DefinitionNotFoundError(
            f"WorkflowDefinition {namespace}/{name}:{which} {what}; expected a deployed definition",
            hint=f"partita definitions -n {namespace}",
        )

    async def _load(self, key: Key) -> Version:
        found = self._cached(key)
        if found is None:
            text = self._database.sql("load_definitions")
            rows = await self._database.read(lambda connection: store.load(connection, text, [key]))
            found = self._parse(rows)[key]
        return found

    async def versions(self, connection: Connection, keys: Iterable[Key]) -> Mapping[Key, Version]:
        """Parsed versions, loaded within a transaction where they are not known yet.

        Raises EngineError for a stored spec that this program cannot read.
        """
        found: dict[Key, Version] = {}
        missing: list[Key] = []
        for key in keys:
            version = self._cached(key)
            if version is None:
                missing.append(key)
            else:
                found[key] = version
        if missing:
            found |= self._parse(await store.load(connection, self._database.sql("load_definitions"), missing))
            for definition_id, number in missing:
                if (definition_id, number) not in found:
                    raise EngineError(f"definition {definition_id}: version {number} is not stored")
        return found

    def known(self, key: Key) -> Version | None:
        """A parsed version that is remembered."""
        return self._parsed.get(key)

    def _cached(self, key: Key) -> Version | None:
        version = self._parsed.get(key)
        if version is not None:
            self._parsed.move_to_end(key)
        return version

    def _parse(self, rows: list[store.StoredDefinition]) -> dict[Key, Version]:
        found = {}
        for row in rows:
            try:
                definition = definition_from_spec(orjson.loads(row.spec), name=row.name, namespace=row.namespace)
            except InvalidError as error:
                raise EngineError(
                    f"WorkflowDefinition {row.namespace}/{row.name} version {row.version}: {error}"
                ) from error
            found[row.id, row.version] = self._keep(_version(row.id, row.version, definition))
        return found

    def _keep(self, version: Version) -> Version:
        self._parsed[version.id, version.version] = version
        while len(self._parsed) > _CACHE:
            self._parsed.popitem(last=False)
        return version


def _version(definition_id: UUID, number: int, definition: Definition) -> Version:
    config = Payload.of(dict(definition.config)) if definition.config else None
    return Version(definition_id, number, definition, config)
