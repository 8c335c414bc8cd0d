"""The migration runner: alone, many at once, by psql, and on schemas that do not fit."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import asyncpg
import pytest

from partita.domain.errors import EngineError, InvalidError, OutdatedError
from partita.domain.ids import time_of
from partita.engine.requests import PROTOCOL
from partita.minting import new_id as uuid7
from partita.settings import DatabaseSettings, RetentionSettings, Settings
from partita.store import migrations, partitions, reads, slices
from partita.store.database import Database
from partita.store.embedded import Server
from partita.store.errors import SchemaMissingError
from partita.store.migrations import MigrationEditedError, SchemaNewerError
from partita.store.sql import quote_identifier
from tests.postgres import Cluster
from tests.store.records import insert, insert_run, open_run

NEWEST = len(migrations.available())
NEXT = """
CREATE TABLE :"schema".next (id integer);
INSERT INTO :"schema".schema_migrations (version, name, checksum) VALUES ($NEXT, 'next', '');
""".replace("$NEXT", str(NEWEST + 1))
NEXT_FILE = f"V{NEWEST + 1:03}__next.sql"


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
    (folder / NEXT_FILE).write_text(NEXT)
    results = await asyncio.gather(*(migrations.migrate(empty, folder=folder) for _ in range(10)))
    assert sorted(state.version for applied in results for state in applied) == [*range(1, NEWEST + 2)]


async def test_an_edited_file_is_refused_and_line_ends_are_no_edit(empty: DatabaseSettings, folder: Path) -> None:
    await migrations.migrate(empty, folder=folder)
    file = folder / "V001__init.sql"
    file.write_bytes(file.read_bytes().replace(b"\n", b"\r\n"))
    assert await migrations.migrate(empty, folder=folder) == ()
    file.write_text(file.read_text() + "-- a word\n")
    with pytest.raises(MigrationEditedError, match=r"V001__init\.sql.*as a new migration"):
        await migrations.migrate(empty, folder=folder)


async def test_an_older_program_does_not_touch_a_newer_schema(empty: DatabaseSettings, folder: Path) -> None:
    (folder / NEXT_FILE).write_text(NEXT)
    await migrations.migrate(empty, folder=folder)
    with pytest.raises(SchemaNewerError, match=f"at version {NEWEST + 1}; expected at most {NEWEST}"):
        await migrations.migrate(empty)
    async with await Database.open(empty) as database:
        await migrations.require_current(database)


async def test_a_newer_schema_is_worked_on_unless_it_demands_a_newer_protocol(database: Database) -> None:
    await migrations.require_protocol(database, PROTOCOL)
    await database.read(lambda c: c.execute("UPDATE partita.engine_state SET oldest_protocol = $1", PROTOCOL + 1))
    with pytest.raises(OutdatedError, match=rf"demands engine protocol {PROTOCOL + 1}; expected at most {PROTOCOL}"):
        await migrations.require_protocol(database, PROTOCOL)


async def test_a_program_says_what_its_schema_lacks(empty: DatabaseSettings) -> None:
    async with await Database.open(empty) as database:
        missing = ", ".join(file.file for file in migrations.available())
        with pytest.raises(SchemaMissingError, match=f"{missing}; try: partita migrate"):
            await migrations.require_current(database)


async def test_a_failing_file_leaves_the_version_before(empty: DatabaseSettings, folder: Path) -> None:
    (folder / NEXT_FILE).write_text(NEXT.replace("id integer", "id nonsense"))
    with pytest.raises(EngineError, match=rf"{NEXT_FILE}.*nonsense.*42704"):
        await migrations.migrate(empty, folder=folder)
    states = await migrations.status(empty, folder=folder)
    assert [state.version for state in states if state.applied_at] == [*range(1, NEWEST + 1)]
    assert await scalar(empty, "SELECT to_regclass('partita.next') IS NULL")
    (folder / NEXT_FILE).write_text(NEXT)
    assert [state.version for state in await migrations.migrate(empty, folder=folder)] == [NEWEST + 1]


async def test_a_file_that_does_not_record_itself_is_refused(empty: DatabaseSettings, folder: Path) -> None:
    (folder / NEXT_FILE).write_text('CREATE TABLE :"schema".second (id integer);')
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


CATALOG = """
SELECT 'column' AS kind, c.relname || '.' || a.attname AS name,
       concat_ws(' ', format_type(a.atttypid, a.atttypmod), a.attnotnull, a.attnum, pg_get_expr(d.adbin, d.adrelid),
                 a.attstorage, a.attcompression, a.attstattarget, col_description(c.oid, a.attnum)) AS what
FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
LEFT JOIN pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum
WHERE c.relnamespace = $1::text::regnamespace
UNION ALL
SELECT 'table', relname, concat_ws(' ', relkind, reloptions::text, relpersistence, obj_description(oid, 'pg_class'),
                                   pg_get_partkeydef(oid), pg_get_expr(relpartbound, oid))
FROM pg_class WHERE relnamespace = $1::text::regnamespace
UNION ALL
SELECT 'index', c.relname, pg_get_indexdef(c.oid) FROM pg_class c
WHERE c.relnamespace = $1::text::regnamespace AND c.relkind IN ('i', 'I')
UNION ALL
SELECT 'constraint', conrelid::regclass || '.' || conname, pg_get_constraintdef(oid) FROM pg_constraint
WHERE connamespace = $1::text::regnamespace
UNION ALL
SELECT 'view', viewname, definition FROM pg_views WHERE schemaname = $1::text
UNION ALL
SELECT 'function', proname, pg_get_functiondef(oid) FROM pg_proc WHERE pronamespace = $1::text::regnamespace
UNION ALL
SELECT 'trigger', tgname, pg_get_triggerdef(t.oid) FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid
WHERE c.relnamespace = $1::text::regnamespace AND NOT tgisinternal
ORDER BY 1, 2
"""


async def _catalog(settings: DatabaseSettings, schema: str) -> list[tuple[str, str, str]]:
    """Everything that a schema is made of, without its name."""
    connection = await asyncpg.connect(settings.url)
    quoted = await connection.fetchval("SELECT quote_ident($1)", schema)
    rows = await connection.fetch(CATALOG, quoted)
    await connection.close()
    found = [(str(row["kind"]), str(row["name"]), str(row["what"])) for row in rows]
    return [(kind, name.replace(quoted, "S"), what.replace(quoted, "S")) for kind, name, what in found]


@pytest.mark.parametrize("schema", ["partita", 'we"ird; DROP', "it's", "Upper Case", "$$", ":schema"])
async def test_psql_and_the_runner_make_the_same_schema(
    empty: DatabaseSettings, postgres_cluster: Cluster, schema: str
) -> None:
    await migrations.migrate(replace(empty, schema=schema))
    ours = await _catalog(empty, schema)
    connection = await asyncpg.connect(empty.url)
    await connection.execute(f"DROP SCHEMA {quote_identifier(schema)} CASCADE")
    await connection.close()
    for file in migrations.available():
        _psql(postgres_cluster, empty.url, migrations.migrations_folder() / file.file, schema)
    theirs = await _catalog(empty, schema)
    assert len(ours) > 200
    assert theirs == ours
    assert await migrations.migrate(replace(empty, schema=schema)) == ()


async def test_ten_processes_at_once_apply_each_file_once(empty: DatabaseSettings) -> None:
    """Processes of their own, as the pods of a rollout; each also makes the months."""
    program = Path(sys.executable).with_name("partita")
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PARTITA_")}
    processes = [
        await asyncio.create_subprocess_exec(
            *(program, "migrate"),
            env={**environment, "PARTITA_DATABASE_URL": empty.url},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        for _ in range(10)
    ]
    said = [(await process.communicate())[0].decode() for process in processes]
    assert [process.returncode for process in processes] == [0] * 10, said
    recorded = await scalar(empty, "SELECT array_agg(version ORDER BY version) FROM partita.schema_migrations")
    assert recorded == [file.version for file in migrations.available()]
    for file in migrations.available():
        assert sum(f"{file.version:03}" in each or file.name in each for each in said) == 1, said


def _psql(cluster: Cluster, url: str, path: Path, schema: str = "partita") -> None:
    server = cluster.server or Server(Path("unused"))
    variables = ("-v", "ON_ERROR_STOP=1", "-v", f"schema={schema}")
    psql = [str(server.program("psql")), "-X", "-q", "-1", *variables, "-f", str(path), url]
    subprocess.run(psql, check=True, capture_output=True, timeout=60)


def test_files_are_numbered_without_gaps(folder: Path) -> None:
    (folder / f"V{NEWEST + 2:03}__gap.sql").write_text(NEXT)
    with pytest.raises(EngineError, match="without gaps"):
        migrations.available(folder)
    (folder / f"V{NEWEST + 2:03}__gap.sql").rename(folder / "V2_wrong.sql")
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


async def test_runs_in_flight_come_over_from_the_first_version(empty: DatabaseSettings, tmp_path: Path) -> None:
    """What the first version has written is read by the second one, whose new columns are null."""
    first = migrations.available()[0]
    (tmp_path / first.file).write_text(first.text, encoding="utf-8")
    await migrations.migrate(empty, folder=tmp_path)
    settings = Settings(database=empty)
    await partitions.ensure(settings)
    connection = await asyncpg.connect(empty.url)
    waiting, failing = uuid7(), uuid7()
    for run_id, pending in ((waiting, ""), (failing, "NodeFailed")):
        await insert_run(connection, run_id, status="Running", pending_outcome=pending)
        await open_run(connection, run_id)
    await insert(
        connection, "waits", run_id=waiting, since=time_of(waiting), seq=1, index=0, name="approval", node="ask"
    )
    await insert(connection, "task_instances", run_id=waiting, node="ask", kind="waitForEvent", state="Waiting")
    await insert(connection, "run_inbox", run_id=waiting, kind="signal", body="{}")
    assert [state.version for state in await migrations.migrate(empty)] == [*range(2, NEWEST + 1)]
    outcomes = await connection.fetch("SELECT pending_outcome FROM partita.workflow_runs ORDER BY pending_outcome")
    await connection.close()
    assert [row[0] for row in outcomes] == ["", "Failed/NodeFailed"]
    dedicated = (database := await Database.open(empty)).dedicated("test")
    async with dedicated.transaction() as open_:
        loaded = await slices.load_runs(open_, database.sql, [waiting])
        box = (await slices.load_mailboxes(open_, database.sql, [waiting]))[waiting]
        ((_, task),) = await slices.load_whole_runs(open_, database.sql, [waiting])
    await dedicated.close()
    detail = await reads.get_run(database, waiting)
    await database.close()
    row = loaded.runs[waiting].row
    assert (row.parent, row.depth, row.subflow, row.mailbox_id, row.applied_cancel_nodes) == (None, 0, "", None, ())
    assert loaded.oldest_protocol == 2
    assert [(wait.name, wait.child, wait.subflow, wait.alternative) for wait in box.waits] == [
        ("approval", None, "", 0)
    ]
    assert task.detail is None
    assert [wait.node for wait in detail.waits] == ["ask"]


async def test_months_of_the_first_version_and_new_ones_are_alike(empty: DatabaseSettings, tmp_path: Path) -> None:
    first = migrations.available()[0]
    (tmp_path / first.file).write_text(first.text, encoding="utf-8")
    await migrations.migrate(empty, folder=tmp_path)
    settings = Settings(database=empty, retention=RetentionSettings(months_behind=0, months_ahead=1))
    await partitions.ensure(settings)
    await migrations.migrate(empty)
    await partitions.ensure(replace(settings, retention=RetentionSettings(months_behind=0, months_ahead=2)))
    query = (
        "SELECT count(DISTINCT shape) FROM (SELECT string_agg(a.attname || a.atttypid, ',' ORDER BY a.attnum) AS shape "
        "FROM pg_attribute a JOIN pg_inherits i ON i.inhrelid = a.attrelid WHERE a.attnum > 0 AND NOT a.attisdropped "
        "AND i.inhparent = 'partita.workflow_runs'::regclass GROUP BY a.attrelid) AS months"
    )
    assert await scalar(empty, query) == 1
    indexes = "SELECT count(*) FROM pg_indexes WHERE tablename ~ '^workflow_runs_\\d+$' AND indexdef LIKE '%parent_id%'"
    assert await scalar(empty, indexes) == 3
