"""Which statements a transaction uses: those on one month's own tables, or those on all months."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import asyncpg
import pytest

from partita.domain.ids import Month, make_id, to_milliseconds
from partita.settings import Settings
from partita.store import partitions, retention
from partita.store.database import Connection, Database
from partita.store.months import Months
from partita.store.sql import RECORDS, Sql, blocks
from tests.postgres import direct_url
from tests.store.records import insert_run, open_run

MONTH = Month(2031, 6)
MISSING = asyncpg.UndefinedTableError()


async def test_the_tables_of_records_are_those_of_the_catalog(database: Database) -> None:
    names = await database.read(lambda connection: partitions.table_names(connection, database.sql))
    assert sorted(names) == sorted(RECORDS)


def test_within_a_month_a_block_differs_by_the_names_of_tables_only() -> None:
    sql = Sql("partita")
    own = sql.within(MONTH)
    differing = set()
    for name, block in blocks().items():
        if block.tokens - {"schema"}:
            continue
        differing |= {name} if own(name) != sql(name) else set()
        assert re.sub(r'("partita"\.(?:workflow|task|run)_\w+?)_203106\b', r"\1", own(name)) == sql(name)
    assert {"lock_runs", "insert_runs", "insert_endings", "copy_tasks"} <= differing
    assert not {"claim_tasks", "insert_ready", "delete_open_runs", "start_keys"} & differing
    assert 'INSERT INTO "partita".run_labels_203106 (' in own("insert_labels")
    assert own.written('SELECT FROM :"schema".run_labels') == 'SELECT FROM "partita".run_labels_203106'
    assert own("start_key_runs") != own.parents("start_key_runs") == sql("start_key_runs")


def test_two_months_are_kept() -> None:
    sql = Sql("partita")
    first, second = sql.within(MONTH), sql.within(MONTH.plus(1))
    assert (sql.within(MONTH), second.within(MONTH.plus(1)), first.parents) == (first, second, sql)
    sql.within(MONTH.plus(2))
    assert sql.within(MONTH.plus(1)) is second
    assert sql.within(MONTH) is not first


def test_a_month_is_named_for_its_own_runs_once_the_time_is_known() -> None:
    """At first that is the time of the process, so that it need not prepare all statements on all months."""
    sql = Sql("partita")
    known = Months(sql)
    now = Month.of(datetime.now(UTC))
    assert known.sql(now.lower.int, now.lower.int) is sql.within(now)
    low, high = MONTH.lower.int, MONTH.upper.int - 1
    assert known.sql(low, high) is sql
    known.learn(MONTH.start)
    assert known.sql(low, high) is sql.within(MONTH)
    assert known.sql(low, low) is sql.within(MONTH)
    for lowest, highest in ((low - 1, high), (low, high + 1), (low - 2, low - 1), (high + 1, high + 1)):
        assert known.sql(lowest, highest) is sql
    known.learn(MONTH.plus(1).start - timedelta(microseconds=1))
    assert known.sql(low, high) is sql.within(MONTH)
    known.learn(MONTH.plus(1).start)
    assert known.sql(low, high) is sql
    assert known.sql(high + 1, high + 1) is sql.within(MONTH.plus(1))


def test_a_month_that_cannot_be_used_is_left_alone_for_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1000.0
    monkeypatch.setattr("partita.store.months.time.monotonic", lambda: now)
    known, low = Months(Sql("partita")), MONTH.lower.int
    known.learn(MONTH.start)
    own = known.sql(low, low)
    assert not known.avoid(MISSING, known.parents)
    assert not known.avoid(asyncpg.UniqueViolationError(), own)
    assert known.sql(low, low) is own
    assert known.avoid(asyncpg.InsufficientPrivilegeError(), own)
    assert known.sql(low, low) is known.parents
    now += 59
    assert known.sql(low, low) is known.parents
    now += 2
    assert known.sql(low, low) is own
    assert known.avoid(MISSING, own)
    known.learn(MONTH.plus(1).start)
    assert known.sql(MONTH.upper.int, MONTH.upper.int) is not known.parents, "another month has done nothing"
    assert known.avoid(MISSING, own), "a transaction that began before"
    assert known.sql(MONTH.upper.int, MONTH.upper.int) is not known.parents


@pytest.fixture
async def owner(settings: Settings) -> AsyncIterator[Connection]:
    """A session of the schema's owner."""
    connection = await asyncpg.connect(direct_url(settings))
    yield connection
    await connection.close()


@pytest.fixture
async def role(owner: Connection) -> AsyncIterator[str]:
    """A role that may use the parents, and nothing by default."""
    name = f"some {uuid4().hex[:8]}"
    tables = ", ".join(f"partita.{table}" for table in RECORDS)
    await owner.execute(f'CREATE ROLE "{name}"; GRANT USAGE ON SCHEMA partita TO "{name}"')
    await owner.execute(f'GRANT SELECT, INSERT, UPDATE ON {tables} TO "{name}"; GRANT DELETE ON {tables} TO PUBLIC')
    yield name
    await owner.execute(f'DROP OWNED BY "{name}"; DROP ROLE "{name}"')


async def rights(owner: Connection, role: str, table: str) -> set[str]:
    kinds = ("SELECT", "INSERT", "UPDATE", "DELETE", "TRUNCATE")
    return {kind for kind in kinds if await owner.fetchval("SELECT has_table_privilege($1, $2, $3)", role, table, kind)}


async def test_a_new_month_may_be_used_by_those_who_may_use_its_parent(
    settings: Settings, owner: Connection, role: str
) -> None:
    later = Month.of(await owner.fetchval("SELECT clock_timestamp()")).plus(9)
    made = await partitions.ensure(settings, now=later.start)
    assert {name for name in made if name.endswith(later.suffix)} == {f"{table}_{later.suffix}" for table in RECORDS}
    for table in RECORDS:
        expected = {"SELECT", "INSERT", "UPDATE", "DELETE"}
        assert await rights(owner, role, f"partita.{table}_{later.suffix}") == expected


async def test_a_month_that_somebody_else_made_may_be_used_by_the_owner_of_its_parent(
    settings: Settings, owner: Connection, role: str
) -> None:
    sql = Sql(settings.database.schema)
    await owner.execute(f'GRANT CREATE ON SCHEMA partita TO "{role}"; SET ROLE "{role}"')
    await partitions.create(owner, sql, "run_labels", "run_labels_203106")
    await owner.execute("RESET ROLE")
    acl = "SELECT relacl::text, relowner::regrole::text, current_user::text FROM pg_class WHERE relname = $1"
    text, made_by, me = await owner.fetchrow(acl, "run_labels_203106") or ("", "", "")
    assert made_by.strip('"') == role
    assert f"{me}=arwd" in text


async def test_a_month_that_was_compacted_may_be_used_as_before(
    settings: Settings, database: Database, owner: Connection, role: str
) -> None:
    month = Month.of(await database.clock()).plus(-1)
    for number in range(2):
        await insert_run(database, make_id(to_milliseconds(month.start), number))
    await open_run(database, make_id(to_milliseconds(month.start), 1))
    report = await retention.drop(settings, before=month.plus(1), compact=True)
    assert report.compacted == {month: 1}
    for table in RECORDS:
        assert "UPDATE" in await rights(owner, role, f"partita.{table}_{month.suffix}")
