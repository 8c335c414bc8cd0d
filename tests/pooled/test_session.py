"""Connections behind PgBouncer: nothing is left in a session, and a role's options arrive."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from urllib.parse import urlsplit, urlunsplit
from uuid import uuid4

import asyncpg
import pytest

from partita.domain.errors import UnavailableError
from partita.settings import DatabaseSettings, Settings
from partita.store import roles
from partita.store.database import OPTIONS, Connection, Database, Dedicated
from partita.store.roles import Roles
from tests.pgbouncer import PgBouncer
from tests.pooled.tasks import app
from tests.worker.hosted import hosted

SHOWN = {name: value.replace("60s", "1min") for name, value in OPTIONS}
PREPARED_ONES = "SELECT count(*) FROM pg_prepared_statements"


async def options(connection: Connection) -> dict[str, str]:
    """The coordinator's options as the server has them."""
    return {name: await connection.fetchval("SELECT current_setting($1)", name) for name in SHOWN}


async def in_transaction(connection: Connection) -> bool:
    return connection.is_in_transaction()


@pytest.fixture
async def coordinator(pooled: Settings, bouncer: PgBouncer) -> AsyncIterator[str]:
    """URL of a database as the coordinator's role, through PgBouncer."""
    suffix = uuid4().hex[:8]
    names = Roles(f"coordinator_{suffix}", f"reader_{suffix}")
    await roles.apply(pooled.database, names)
    parts = urlsplit(pooled.database.url)
    async with await Database.open(pooled.database) as database:
        await database.read(lambda c: c.execute(f"ALTER ROLE {names.coordinator} LOGIN PASSWORD '{suffix}'"))
        bouncer.let_in(names.coordinator, suffix)
        yield urlunsplit(parts._replace(netloc=f"{names.coordinator}@{parts.netloc.rpartition('@')[2]}"))
        for name in (names.coordinator, names.reader):
            await database.read(lambda c, name=name: c.execute(f"DROP OWNED BY {name}; DROP ROLE {name}"))  # type: ignore[misc]  # a lambda's default


async def test_options_hold_for_a_transaction_and_nothing_stays(pooled: Settings) -> None:
    dedicated = Dedicated(pooled.database, "coordinator", planner=True)
    async with dedicated.transaction() as connection:
        assert await options(connection) == SHOWN
        assert await connection.fetchval("SELECT current_setting('plan_cache_mode')") == "auto", (
            "planned anew each time"
        )
        assert await connection.fetchval(PREPARED_ONES + " WHERE name <> ''") == 0
    plain = Dedicated(pooled.database, "plain", planner=False)
    async with plain.transaction() as connection:
        assert (await options(connection))["enable_seqscan"] == "on", "the same session of the server, without options"
        assert await connection.fetchval("SELECT current_setting('application_name')") == ""
    await dedicated.close()
    await plain.close()


async def test_every_read_stands_in_a_transaction(pooled: Settings) -> None:
    async with await Database.open(pooled.database) as database:
        assert await database.read(in_transaction)
        assert await database.read(in_transaction, snapshot=True)


async def test_options_of_the_role_arrive_and_are_not_set_again(pooled: Settings, coordinator: str) -> None:
    settings: DatabaseSettings = replace(pooled.database, url=coordinator, planner="role")
    dedicated = Dedicated(settings, "coordinator", planner=True)
    async with dedicated.transaction() as connection:
        assert await options(connection) == SHOWN
        sources = "SELECT DISTINCT source FROM pg_settings WHERE name = ANY ($1::text[])"
        assert [row[0] for row in await connection.fetch(sources, list(SHOWN))] == ["database user"]
    await dedicated.close()


async def test_types_are_asked_for_once_a_process_not_with_every_statement(
    pooled: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The driver keeps no statement behind PgBouncer; what it has learnt of types it does keep."""
    asked: list[object] = []
    ask = asyncpg.Connection._introspect_types  # type: ignore[attr-defined]  # the driver has no counter

    async def counting(self: object, *what: object) -> object:
        asked.append(what)
        return await ask(self, *what)

    monkeypatch.setattr(asyncpg.Connection, "_introspect_types", counting)
    async with hosted(pooled, app, poll_max_ms=50) as host:
        await host.deploy({"name": "only", "task": {"type": "double"}, "input": {"number": 1}})
        await host.ended(await host.start())
        before = len(asked)
        for _ in range(5):
            await host.ended(await host.start())
        assert asked[before:] == []
        await host.fetch("SELECT '{1}'::numeric[]")
        assert len(asked) == before + 1, "of a type that nobody has used it is seen"


async def test_whoever_does_not_know_of_the_proxy_is_told(pooled: Settings) -> None:
    async with await Database.open(replace(pooled.database, pooled=False, patience_ms=0)) as database:
        with pytest.raises(UnavailableError, match="unsupported startup parameter") as refused:
            await database.clock()
    assert "PARTITA_DATABASE_POOLED=true" in refused.value.hint
