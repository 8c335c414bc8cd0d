"""Roles: what they may do, and the options that come with logging in."""

from __future__ import annotations

from collections.abc import AsyncIterator
from uuid import uuid4

import asyncpg
import pytest

from partita.settings import Settings
from partita.store import roles
from partita.store.database import OPTIONS, PREPARED, Database
from partita.store.roles import Roles


@pytest.fixture
async def made(database: Database, settings: Settings) -> AsyncIterator[Roles]:
    """Both roles under names of this test; roles belong to the whole server."""
    suffix = uuid4().hex[:8]
    names = Roles(f"coordinator_{suffix}", f"reader_{suffix}")
    assert await roles.apply(settings.database, names) == (names.coordinator, names.reader)
    yield names
    for name in (names.coordinator, names.reader):
        await database.read(lambda c, name=name: c.execute(f"DROP OWNED BY {name}; DROP ROLE {name}"))  # type: ignore[misc]  # a lambda's default


async def as_role(database: Database, role: str, statement: str) -> None:
    dedicated = database.dedicated("role", planner=False)
    try:
        async with dedicated.transaction() as connection:
            await connection.execute(f"SET LOCAL ROLE {role}")
            await connection.execute(statement)
    finally:
        await dedicated.close()


WRITE = "INSERT INTO partita.workers (id, expires_at, protocol, slots, queues) VALUES ('w', now(), 1, 1, '{}')"


async def test_the_coordinator_writes_and_the_reader_reads(database: Database, made: Roles) -> None:
    await as_role(database, made.coordinator, WRITE)
    await as_role(database, made.reader, "SELECT * FROM partita.workers")
    with pytest.raises(asyncpg.InsufficientPrivilegeError):
        await as_role(database, made.reader, "DELETE FROM partita.workers")
    for name in (made.coordinator, made.reader):
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            await as_role(database, name, "DROP TABLE partita.workers")


async def test_tables_of_later_migrations_are_included(database: Database, made: Roles) -> None:
    await database.read(lambda c: c.execute("CREATE TABLE partita.later (id int)"))
    await as_role(database, made.coordinator, "INSERT INTO partita.later VALUES (1)")
    await as_role(database, made.reader, "SELECT * FROM partita.later")


async def test_options_come_with_the_role(database: Database, settings: Settings, made: Roles) -> None:
    earlier = f"ALTER ROLE {made.coordinator} IN DATABASE {{}} SET {PREPARED[0]} = {PREPARED[1]}"
    name = await database.read(lambda c: c.fetchval("SELECT current_database()"))
    await database.read(lambda c: c.execute(earlier.format(name)))
    assert await roles.apply(settings.database, made) == ()
    query = "SELECT setconfig FROM pg_db_role_setting s JOIN pg_roles r ON r.oid = s.setrole WHERE rolname = $1"
    options = await database.read(lambda c: c.fetchval(query, made.coordinator))
    assert set(options) == {f"{name}={value}" for name, value in OPTIONS}
    assert await database.read(lambda c: c.fetchval(query, made.reader)) == ["default_transaction_read_only=on"]
