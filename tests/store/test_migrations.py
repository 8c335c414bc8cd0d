"""The migration runner: alone, many at once, by psql, and on schemas that do not fit."""

from __future__ import annotations

import asyncio
import subprocess
from dataclasses import replace
from pathlib import Path

import asyncpg
import pytest

from partita.domain.errors import EngineError, InvalidError
from partita.settings import DatabaseSettings, Settings
from partita.store import migrations
from partita.store.database import Database
from partita.store.embedded import Server
from partita.store.errors import SchemaMissingError
from partita.store.migrations import MigrationEditedError, SchemaNewerError
from tests.postgres import Cluster

NEXT = """
CREATE TABLE :"schema".next (id integer);
INSERT INTO :"schema".schema_migrations (version, name, checksum) VALUES (3, 'next', '');
"""


@pytest.fixture
def empty(empty_database_url: str) -> DatabaseSettings:
    """Settings on a database without a schema."""
    return DatabaseSettings(url=empty_database_url, patience_ms=2_000)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A copy of the migrations that a test may change."""
    for file in migrations.migrations_folder().glob("V*.sql"):
        (tmp_path / file.name).write_text(file.read_text(encoding="utf-8"), encoding="utf-8")
    return tmp_path


async def scalar(settings: DatabaseSettings, statement: str) -> object:
    connection = await asyncpg.connect(settings.url)
    try:
        return await connection.fetchval(statement)
    finally:
        await connection.close()


async def test_migrate_applies_everything_once(empty: DatabaseSettings) -> None:
    files = migrations.available()
    assert [state.applied_at for state in await migrations.status(empty)] == [None] * len(files)
    applied = await migrations.migrate(empty)
    assert [(state.version, state.name) for state in applied] == [(file.version, file.name) for file in files]
    assert await migrations.migrate(empty) == ()
    assert await migrations.status(empty) == applied


async def test_ten_at_once_apply_each_file_once(empty: DatabaseSettings, folder: Path) -> None:
    (folder / "V003__next.sql").write_text(NEXT)
    results = await asyncio.gather(*(migrations.migrate(empty, folder=folder) for _ in range(10)))
    assert sorted(state.version for applied in results for state in applied) == [1, 2, 3]


async def test_an_edited_file_is_refused_and_line_ends_are_no_edit(empty: DatabaseSettings, folder: Path) -> None:
    await migrations.migrate(empty, folder=folder)
    file = folder / "V001__init.sql"
    file.write_bytes(file.read_bytes().replace(b"\n", b"\r\n"))
    assert await migrations.migrate(empty, folder=folder) == ()
    file.write_text(file.read_text() + "-- a word\n")
    with pytest.raises(MigrationEditedError, match=r"V001__init\.sql.*as a new migration"):
        await migrations.migrate(empty, folder=folder)


async def test_an_older_program_does_not_touch_a_newer_schema(empty: DatabaseSettings, folder: Path) -> None:
    (folder / "V003__next.sql").write_text(NEXT)
    await migrations.migrate(empty, folder=folder)
    with pytest.raises(SchemaNewerError, match="at version 3; expected at most 2"):
        await migrations.migrate(empty)
    async with await Database.open(empty) as database:
        await migrations.require_current(database)


async def test_a_program_says_what_its_schema_lacks(empty: DatabaseSettings) -> None:
    async with await Database.open(empty) as database:
        missing = ", ".join(file.file for file in migrations.available())
        with pytest.raises(SchemaMissingError, match=f"{missing}; try: partita migrate"):
            await migrations.require_current(database)


async def test_a_failing_file_leaves_the_version_before(empty: DatabaseSettings, folder: Path) -> None:
    (folder / "V003__next.sql").write_text(NEXT.replace("id integer", "id nonsense"))
    with pytest.raises(EngineError, match=r"V003__next\.sql.*nonsense.*42704"):
        await migrations.migrate(empty, folder=folder)
    assert [state.version for state in await migrations.status(empty, folder=folder) if state.applied_at] == [1, 2]
    assert await scalar(empty, "SELECT to_regclass('partita.next') IS NULL")
    (folder / "V003__next.sql").write_text(NEXT)
    assert [state.version for state in await migrations.migrate(empty, folder=folder)] == [3]


async def test_a_file_that_does_not_record_itself_is_refused(empty: DatabaseSettings, folder: Path) -> None:
    (folder / "V003__next.sql").write_text('CREATE TABLE :"schema".second (id integer);')
    with pytest.raises(EngineError, match="does not record itself"):
        await migrations.migrate(empty, folder=folder)
    assert await scalar(empty, "SELECT to_regclass('partita.next') IS NULL")


async def test_two_installations_share_a_database(empty: DatabaseSettings) -> None:
    other = replace(empty, schema="second_one")
    await asyncio.gather(migrations.migrate(empty), migrations.migrate(other))
    query = (
        "SELECT count(*) FROM pg_tables WHERE tablename = 'engine_state' AND schemaname IN ('partita', 'second_one')"
    )
    assert await scalar(empty, query) == 2


async def test_a_strange_schema_name_stays_one_name(empty: DatabaseSettings) -> None:
    strange = replace(empty, schema='we"ird; DROP')
    await migrations.migrate(strange)
    assert await migrations.migrate(strange) == ()
    assert await scalar(empty, """SELECT count(*) FROM pg_namespace WHERE nspname = 'we"ird; DROP'""") == 1


@pytest.mark.parametrize("name", ["Partita", "1st", "a-b", "x" * 49, 'a"b', "pg_temp", "information_schema"])
def test_wrong_schema_names_are_refused(name: str) -> None:
    with pytest.raises(InvalidError, match=r"PARTITA_DATABASE_SCHEMA.*expected a lower-case SQL identifier"):
        Settings.load({"PARTITA_DATABASE_SCHEMA": name})


async def test_psql_does_the_same_and_the_runner_takes_over(empty: DatabaseSettings, postgres_cluster: Cluster) -> None:
    for file in migrations.available():
        path = migrations.migrations_folder() / file.file
        _psql(postgres_cluster, empty.url, path)
    assert await migrations.migrate(empty) == ()
    sealed = await scalar(empty, "SELECT checksum FROM partita.schema_migrations WHERE version = 1")
    assert sealed == migrations.available()[0].checksum


def _psql(cluster: Cluster, url: str, path: Path) -> None:
    server = cluster.server or Server(Path("unused"))
    variables = ("-v", "ON_ERROR_STOP=1", "-v", "schema=partita")
    psql = [str(server.program("psql")), "-X", "-q", "-1", *variables, "-f", str(path), url]
    subprocess.run(psql, check=True, capture_output=True, timeout=60)


def test_files_are_numbered_without_gaps(folder: Path) -> None:
    (folder / "V004__fourth.sql").write_text(NEXT)
    with pytest.raises(EngineError, match="without gaps"):
        migrations.available(folder)
    (folder / "V004__fourth.sql").rename(folder / "V2_wrong.sql")
    with pytest.raises(EngineError, match="is not named like"):
        migrations.available(folder)


def test_every_file_records_itself_last() -> None:
    for file in migrations.available():
        last = file.text.strip().splitlines()[-1]
        assert last.startswith('INSERT INTO :"schema".schema_migrations'), file.file
        assert last.endswith(f"({file.version}, '{file.name}', '');"), file.file


async def test_a_server_that_is_away_is_waited_for(restartable_server: Server) -> None:
    settings = DatabaseSettings(url=restartable_server.url("partita"), patience_ms=30_000)
    await asyncio.to_thread(restartable_server.stop)
    waiting = asyncio.create_task(migrations.migrate(settings))
    await asyncio.to_thread(restartable_server.start)
    assert await waiting == ()
