"""The migration runner: ``migrations/V*.sql``, forward only, each in one transaction.

Purpose: bring a schema up to this program's version, from any number of processes at once. Invariant: a file that was
applied never changes (its checksum is compared), and a program never migrates a schema that is newer than itself.
Trade-off: every migration takes the advisory lock anew and looks again what is missing, so that no session state is
needed and a runner that dies leaves a schema at a whole version.

The files are plain psql scripts: ``psql -1 -v ON_ERROR_STOP=1 -v schema=partita -f V001__init.sql`` does the same.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from pathlib import Path
from typing import Final

import asyncpg

import partita
from partita.domain.errors import ConflictError, EngineError, OutdatedError
from partita.settings import DatabaseSettings
from partita.store.advisory import advisory_key
from partita.store.database import Connection, Database, Dedicated
from partita.store.errors import SchemaMissingError, Verdict, boundary, verdict
from partita.store.sql import Sql, substitute

_FILE: Final = re.compile(r"V(\d{3,})__(\w+)\.sql")


class SchemaNewerError(ConflictError):
    """The schema was migrated by a newer program."""

    reason = "SchemaNewer"


class MigrationEditedError(ConflictError):
    """A migration's file is not the one that was applied."""

    reason = "MigrationEdited"


@dataclass(frozen=True, slots=True)
class Migration:
    """One file."""

    version: int
    name: str
    text: str

    @property
    def file(self) -> str:
        """The file's name."""
        return f"V{self.version:03}__{self.name}.sql"

    @property
    def checksum(self) -> str:
        """SHA-256 of the text, whatever the line ends of the checkout."""
        return sha256(self.text.replace("\r\n", "\n").encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class MigrationState:
    """A migration and when it was applied; None while it is pending."""

    version: int
    name: str
    applied_at: datetime | None


def migrations_folder() -> Path:
    """Folder of the files: inside an installed package, else in the source tree."""
    package = Path(partita.__file__).parent
    packaged = package / "_migrations"
    return packaged if packaged.is_dir() else package.parent.parent / "migrations"


def available(folder: Path | None = None) -> tuple[Migration, ...]:
    """The files in order; raises EngineError unless they are numbered 1, 2, 3, …"""
    found = []
    for path in sorted((folder or migrations_folder()).glob("V*.sql")):
        match = _FILE.fullmatch(path.name)
        if match is None:
            raise EngineError(f"migrations: {path.name}: is not named like V001__init.sql")
        found.append(Migration(int(match[1]), match[2], path.read_text(encoding="utf-8")))
    found.sort(key=lambda migration: migration.version)
    versions = [migration.version for migration in found]
    if not found or versions != list(range(1, len(found) + 1)):
        raise EngineError(f"migrations: found the versions {versions}; expected 1, 2, 3, … without gaps")
    return tuple(found)


async def migrate(
    settings: DatabaseSettings, *, folder: Path | None = None, wait_ms: int | None = None
) -> tuple[MigrationState, ...]:
    """Apply what is missing and return what this call applied.

    ``wait_ms``: how long to wait for a server that cannot be reached (None takes ``patience_ms``). Raises
    MigrationEditedError, SchemaNewerError, EngineError when a file fails, UnavailableError.
    """
    files = available(folder)
    applied = []
    dedicated = _direct(settings)
    try:
        while (state := await _apply_next(dedicated, settings.schema, files, wait_ms)) is not None:
            applied.append(state)
    finally:
        await dedicated.close()
    return tuple(applied)


async def status(settings: DatabaseSettings, *, folder: Path | None = None) -> tuple[MigrationState, ...]:
    """Every known or applied migration in order."""
    dedicated = _direct(settings)
    try:
        with boundary():
            async with dedicated.transaction() as connection:
                done = await _applied(connection, settings.schema)
    finally:
        await dedicated.close()
    known = {file.version: MigrationState(file.version, file.name, None) for file in available(folder)}
    return tuple(
        ({**known, **{version: state for version, (state, _) in done.items()}})[key] for key in sorted({*known, *done})
    )


async def require_current(database: Database) -> None:
    """Raise SchemaMissingError unless the schema has every migration that this program knows.

    A newer schema is accepted: during a rolling upgrade older processes go on, as far as their protocol is accepted.
    """
    schema = database.settings.schema
    done = await database.read(lambda connection: _applied(connection, schema))
    missing = [file.file for file in available() if file.version not in done]
    if missing:
        raise SchemaMissingError(f"database: schema {schema}: lacks {', '.join(missing)}", hint="partita migrate")


async def require_protocol(database: Database, spoken: int) -> None:
    """Raise OutdatedError when the schema demands a newer engine protocol than this program speaks."""
    oldest = await database.fetchval("oldest_protocol")
    if oldest is not None and oldest > spoken:
        raise OutdatedError(
            f"database: schema {database.settings.schema}: demands engine protocol {oldest}; expected at most "
            f"{spoken}, the newest that this program speaks",
            hint="a newer release of partita",
        )


def _direct(settings: DatabaseSettings) -> Dedicated:
    return Dedicated(direct(settings), "partita/migrate", planner=False)


def direct(settings: DatabaseSettings) -> DatabaseSettings:
    """The settings of a direct connection without a limit on statements, for migrations and partition changes."""
    values = {name: getattr(settings, name) for name in DatabaseSettings.__dataclass_fields__}
    pooled = settings.pooled and not settings.migrations_url
    url = settings.migrations_url or settings.url
    return DatabaseSettings(**{**values, "url": url, "pooled": pooled, "statement_timeout_ms": 0})


async def _apply_next(
    dedicated: Dedicated, schema: str, files: tuple[Migration, ...], wait_ms: int | None
) -> MigrationState | None:
    """Apply the first missing file under the lock; None when nothing is missing."""
    with boundary():
        async with dedicated.transaction(wait_ms) as connection:
            await connection.execute("SELECT pg_advisory_xact_lock($1)", advisory_key(schema, "migrate"))
            done = await _applied(connection, schema)
            _verify(schema, files, done)
            for file in files:
                if file.version not in done:
                    return await _apply(connection, schema, file)
                if not done[file.version][1]:
                    await connection.execute(Sql(schema)("migration_seal"), file.version, file.checksum)
    return None


async def _applied(connection: Connection, schema: str) -> dict[int, tuple[MigrationState, str]]:
    """Applied migrations with their checksums; the checksum is empty when psql applied it."""
    sql = Sql(schema)
    if not await connection.fetchval(sql("migrations_table_exists"), schema):
        return {}
    rows = await connection.fetch(sql("migrations_applied"))
    return {
        row["version"]: (MigrationState(row["version"], row["name"], row["applied_at"]), row["checksum"])
        for row in rows
    }


def _verify(schema: str, files: tuple[Migration, ...], done: dict[int, tuple[MigrationState, str]]) -> None:
    newest = max(done, default=0)
    if newest > files[-1].version:
        raise SchemaNewerError(
            f"database: schema {schema}: is at version {newest}; expected at most {files[-1].version}, the newest that "
            "this program knows",
            hint="a newer release of partita",
        )
    for file in files:
        applied = done.get(file.version)
        if applied is not None and applied[1] not in ("", file.checksum):
            raise MigrationEditedError(
                f"migrations: {file.file}: differs from the file that was applied at {applied[0].applied_at}; expected "
                "an applied file to stay as it is",
                hint="restore the file and add the change as a new migration",
            )


async def _apply(connection: Connection, schema: str, file: Migration) -> MigrationState:
    try:
        await connection.execute(substitute(file.text, {"schema": schema}))
    except asyncpg.PostgresError as error:
        if verdict(error) is Verdict.RETRY:
            raise
        raise EngineError(f"migrations: {file.file}: {error} (SQLSTATE {error.sqlstate})") from error
    sql = Sql(schema)
    if await connection.execute(sql("migration_seal"), file.version, file.checksum) != "UPDATE 1":
        raise EngineError(f"migrations: {file.file}: does not record itself; expected an INSERT INTO schema_migrations")
    at = (await _applied(connection, schema))[file.version][0].applied_at
    return MigrationState(file.version, file.name, at)
