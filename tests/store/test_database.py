"""Connections: lost servers, proxies that pool by transaction, planner options."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from dataclasses import replace
from functools import partial
from types import CoroutineType
from typing import Any

import asyncpg
import pytest

from partita.domain.errors import InvalidError, UnavailableError
from partita.settings import DatabaseSettings, Settings
from partita.store.backoff import Backoff
from partita.store.database import PLANNER, Connection, Database, Dedicated
from partita.store.embedded import Server, StopMode
from partita.store.errors import DATABASE_ERRORS, Verdict, is_disconnect, verdict
from tests.postgres import Cluster
from tests.waiting import until


@pytest.fixture
def settings(direct: Settings) -> Settings:
    """What is tested here is the session itself; see ``tests/pooled`` for what is behind PgBouncer."""
    return direct


@pytest.fixture
async def lost(restartable_server: Server) -> AsyncIterator[Database]:
    """A database on a server that the test may stop."""
    settings = DatabaseSettings(url=restartable_server.url("partita"), patience_ms=30_000, backoff_max_ms=200)
    async with await Database.open(settings) as database:
        yield database


@pytest.mark.parametrize("mode", ["fast", "immediate"])
async def test_reads_outlive_a_restart(lost: Database, restartable_server: Server, mode: StopMode) -> None:
    before = await lost.clock()
    await asyncio.to_thread(restartable_server.restart, mode)
    assert await lost.clock() > before


async def test_a_read_waits_for_a_server_that_is_away(lost: Database, restartable_server: Server) -> None:
    await lost.clock()
    await asyncio.to_thread(restartable_server.stop, "immediate")
    reading = asyncio.create_task(lost.clock())
    await asyncio.to_thread(restartable_server.start)
    await asyncio.wait_for(reading, 30)


async def test_patience_ends_with_unavailable(restartable_server: Server) -> None:
    settings = DatabaseSettings(url=restartable_server.url("partita"), patience_ms=50)
    restartable_server.stop()
    async with await Database.open(settings) as database:
        with pytest.raises(UnavailableError, match="pg_isready"):
            await database.clock()
        with pytest.raises(UnavailableError):
            await database.dedicated("test").connection()


HOUR_MS = 3_600_000


async def test_who_ends_waits_for_no_server_that_is_away(restartable_server: Server) -> None:
    settings = DatabaseSettings(url=restartable_server.url("partita"), patience_ms=HOUR_MS, backoff_max_ms=HOUR_MS)
    async with await Database.open(settings) as database:
        dedicated, own = database.dedicated("test"), asyncio.Event()
        apart = database.dedicated("apart", ending=own)
        await database.clock()
        database.hurry()
        await database.clock()
        async with dedicated.transaction() as connection:  # one that can be reached is used as before
            assert await connection.fetchval("SELECT 1") == 1
        await asyncio.to_thread(restartable_server.stop, "immediate")
        for request in (database.clock(), dedicated.connection(), dedicated.connection(HOUR_MS)):
            with pytest.raises(UnavailableError):
                await asyncio.wait_for(request, 30)
        waiting = asyncio.create_task(apart.connection())
        await until(lambda: pausing(waiting), what="what has an end of its own to go on waiting")
        own.set()
        with pytest.raises(UnavailableError):
            await asyncio.wait_for(waiting, 30)


async def pausing(task: asyncio.Task[Any]) -> bool:
    """Whether a task is between two attempts to reach the server."""
    awaited: object = task.get_coro()
    names = []
    while isinstance(awaited, CoroutineType):
        names.append(awaited.__name__)
        awaited = awaited.cr_await
    return "pause" in names


async def test_a_pause_ends_with_the_process(restartable_server: Server) -> None:
    settings = DatabaseSettings(
        url=restartable_server.url("partita"), patience_ms=HOUR_MS, backoff_min_ms=60_000, backoff_max_ms=HOUR_MS
    )
    restartable_server.stop()
    async with await Database.open(settings) as database:
        reading = asyncio.create_task(database.clock())
        await until(lambda: pausing(reading), what="the first attempt to have failed")
        database.hurry()
        with pytest.raises(UnavailableError):
            await asyncio.wait_for(reading, 20)


async def test_a_lost_transaction_says_so_and_the_next_one_begins_anew(
    lost: Database, restartable_server: Server
) -> None:
    dedicated = lost.dedicated("test")
    await lost.read(lambda c: c.execute("CREATE TABLE kept (id int)"))
    error = await _broken_off(dedicated, restartable_server)
    assert is_disconnect(error)
    async with dedicated.transaction() as connection:
        assert await connection.fetchval("SELECT count(*) FROM kept") == 0
        await connection.execute("INSERT INTO kept VALUES (2)")
    assert dedicated.connects == 2
    assert await lost.read(lambda c: c.fetchval("SELECT count(*) FROM kept")) == 1
    await dedicated.close()


async def _broken_off(dedicated: Dedicated, server: Server) -> BaseException:
    try:
        async with dedicated.transaction() as connection:
            await connection.execute("INSERT INTO kept VALUES (1)")
            await asyncio.to_thread(server.stop, "immediate")
            await connection.execute("INSERT INTO kept VALUES (1)")
    except DATABASE_ERRORS as error:
        return error
    finally:
        await asyncio.to_thread(server.start)
    raise AssertionError("the transaction outlived its server")


async def test_a_failed_statement_keeps_the_connection(database: Database) -> None:
    dedicated = database.dedicated("test")
    with pytest.raises(asyncpg.DivisionByZeroError):
        async with dedicated.transaction() as connection:
            await connection.execute("SELECT 1 / 0")

    async def fail() -> None:
        async with dedicated.transaction() as connection:
            await connection.execute("CREATE TABLE gone (id int)")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await fail()
    async with dedicated.transaction() as connection:
        assert await connection.fetchval("SELECT to_regclass('gone')") is None
    assert dedicated.connects == 1
    await dedicated.close()


async def _terminate(pid: int, connection: Connection) -> None:
    await connection.execute("SELECT pg_terminate_backend($1)", pid)


async def test_a_session_that_is_terminated_is_always_a_lost_one(database: Database) -> None:
    """Between the server's last word and the end of the socket the driver has errors of another kind."""
    dedicated = database.dedicated("test")
    lost: list[BaseException] = []
    for _ in range(40):
        pid = (await dedicated.connection()).get_server_pid()
        await database.read(partial(_terminate, pid))
        try:
            for _ in range(50):
                async with dedicated.transaction() as connection:
                    await connection.execute("SELECT 1")
        except DATABASE_ERRORS as error:
            lost.append(error)
    assert lost
    assert [error for error in lost if not is_disconnect(error) or verdict(error) is not Verdict.RETRY] == []
    await dedicated.close()


async def test_transactions_of_one_connection_take_turns(database: Database) -> None:
    dedicated = database.dedicated("test")

    async def insert(number: int) -> None:
        async with dedicated.transaction() as connection:
            await connection.execute("SELECT pg_sleep(0.001)")
            await connection.execute("INSERT INTO turns VALUES ($1)", number)
            if number % 2:
                raise ZeroDivisionError

    await database.read(lambda c: c.execute("CREATE TABLE turns (id int)"))
    results = await asyncio.gather(*(insert(number) for number in range(6)), return_exceptions=True)
    assert [type(result) for result in results] == [type(None), ZeroDivisionError] * 3
    kept = await database.read(lambda c: c.fetch("SELECT id FROM turns ORDER BY id"))
    assert [row["id"] for row in kept] == [0, 2, 4]
    assert dedicated.connects == 1
    await dedicated.close()


async def test_a_cancelled_transaction_is_rolled_back_and_its_connection_dropped(database: Database) -> None:
    dedicated = database.dedicated("test")

    async def hang() -> None:
        async with dedicated.transaction() as connection:
            await connection.execute("CREATE TABLE gone (id int)")
            await connection.execute("SELECT pg_sleep(60)")

    task = asyncio.create_task(hang())
    sleeping = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND query LIKE '%pg_sleep%'"
    sleeping += " AND pid <> pg_backend_pid() AND state = 'active'"
    await until(lambda: database.read(lambda c: c.fetchval(sleeping)), what="the statement runs")
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    async with dedicated.transaction() as connection:
        assert await connection.fetchval("SELECT to_regclass('gone')") is None
    assert dedicated.connects == 2
    await dedicated.close()


async def planner(connection: Connection) -> dict[str, str]:
    return {name: await connection.fetchval("SELECT current_setting($1)", name) for name, _ in PLANNER}


async def test_the_coordinators_session_has_its_planner_options(database: Database) -> None:
    dedicated = database.dedicated("coordinator")
    wanted = {name: value.replace("60s", "1min") for name, value in PLANNER}
    async with dedicated.transaction() as connection:
        assert await planner(connection) == wanted
    assert (await planner(await dedicated.connection()))["enable_seqscan"] == "off"
    by_role = Dedicated(replace(database.settings, planner="role"), "role", planner=True)
    found = await planner(await by_role.connection())
    assert (found["plan_cache_mode"], found["enable_seqscan"]) == ("force_generic_plan", "on"), "the role has the rest"
    await by_role.close()
    plain = database.dedicated("plain", planner=False)
    assert (await planner(await plain.connection()))["enable_seqscan"] == "on"
    await dedicated.close()
    await plain.close()


async def test_a_snapshot_sees_one_moment_and_cannot_write(database: Database) -> None:
    async def twice(connection: Connection) -> tuple[int, int]:
        count = "SELECT count(*) FROM partita.workers"
        first = await connection.fetchval(count)
        added = "INSERT INTO partita.workers (id, expires_at, protocol, slots, queues) VALUES ('w', now(), 1, 1, '{}')"
        await database.read(lambda c: c.execute(added))
        return first, await connection.fetchval(count)

    assert await database.read(twice, snapshot=True) == (0, 0)
    async with await Database.open(replace(database.settings, patience_ms=0)) as other:
        with pytest.raises(UnavailableError, match="read-only"):
            await other.read(lambda c: c.execute("CREATE TABLE x (id int)"), snapshot=True)


async def test_a_migration_under_a_live_connection_costs_one_retry(database: Database) -> None:
    dedicated = database.dedicated("test")
    await database.read(lambda c: c.execute("CREATE TABLE changing (id int)"))
    async with dedicated.transaction() as connection:
        await connection.fetch("SELECT * FROM changing")
    await database.read(lambda c: c.execute("ALTER TABLE changing ADD COLUMN more text"))

    async def again() -> None:
        async with dedicated.transaction() as connection:
            await connection.fetch("SELECT * FROM changing")

    with pytest.raises(DATABASE_ERRORS) as caught:
        await again()
    assert verdict(caught.value) is Verdict.RETRY
    await again()
    async with dedicated.transaction() as connection:
        assert await connection.fetch("SELECT * FROM changing") == []
    await dedicated.close()


async def test_an_unknown_database_is_said_at_once_unless_waiting_is_asked_for(
    postgres_cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    pauses: list[int] = []

    async def pause(_: Backoff) -> bool:
        pauses.append(1)
        return False

    monkeypatch.setattr(Backoff, "pause", pause)
    async with await Database.open(DatabaseSettings(url=postgres_cluster.url("no_such_one"))) as database:
        dedicated = database.dedicated("test")
        with pytest.raises(UnavailableError, match="no_such_one"):
            await database.clock()
        with pytest.raises(UnavailableError, match="no_such_one"):
            await dedicated.connection()
        assert pauses == []
        with pytest.raises(UnavailableError, match="no_such_one"):
            await dedicated.connection(patience_ms=1)
        assert pauses == [1]


async def test_a_url_that_means_nothing_is_refused() -> None:
    url = "postgresql://h/x?sslnegotiation=never"
    with pytest.raises(InvalidError):
        async with await Database.open(DatabaseSettings(url=url, patience_ms=0)) as database:
            await database.clock()


async def test_a_cancelled_read_ends_though_its_connection_cannot_be_given_back(restartable_server: Server) -> None:
    """The server does not confirm that the statement was broken off: Ctrl-C must not look like a lost connection."""
    quick = DatabaseSettings(url=restartable_server.url("partita"), connect_timeout_ms=300)
    pids: list[int] = []

    async def sleeping(connection: Any) -> Any:
        pids.append(connection.get_server_pid())
        return await connection.fetchval("SELECT pg_sleep(60)" if len(pids) == 1 else "SELECT 1")

    async with await Database.open(quick) as database, await Database.open(quick) as other:
        reading = asyncio.create_task(database.read(sleeping))
        active = "SELECT pid FROM pg_stat_activity WHERE state = 'active' AND query = 'SELECT pg_sleep(60)'"
        await until(lambda: other.read(lambda connection: connection.fetchval(active)), what="the statement runs")
        os.kill(pids[0], signal.SIGSTOP)
        try:
            reading.cancel()
            await asyncio.wait({reading}, timeout=20)
        finally:
            os.kill(pids[0], signal.SIGCONT)
    assert reading.cancelled()
    assert len(pids) == 1
