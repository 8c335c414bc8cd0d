"""A month's tables are removed by several sessions: all of them or none, and those of the runs last."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import asyncpg
import asyncpg.transaction
import pytest

from partita.domain.errors import UnavailableError
from partita.domain.ids import Month
from partita.settings import RetentionSettings, Settings
from partita.store import removal, retention
from partita.store.database import Database, Dedicated
from tests.postgres import direct_url
from tests.store.records import insert_run
from tests.store.test_partitions import RECORDS, in_month

LEFT = "SELECT array_agg(relname::text ORDER BY relname) FROM pg_class WHERE relkind = 'r' AND right(relname, 6) = $1"
LOOKS = 20
"""So often a session looks whether the runs' table is gone before it commits."""


@pytest.fixture
async def month(database: Database, monkeypatch: pytest.MonkeyPatch) -> Month:
    """The month before this one, with a run; every table counts as large."""
    monkeypatch.setattr(removal, "LARGE", 0)
    month = Month.of(await database.clock()).plus(-1)
    await insert_run(database, in_month(month))
    return month


async def left(database: Database, month: Month) -> Sequence[str]:
    return await database.read(lambda c: c.fetchval(LEFT, month.suffix)) or []


def test_large_tables_are_shared_out_and_the_last_one_stays_with_the_caller() -> None:
    sizes = {"events": 9, "tasks": 900, "labels": 0, "history": 500, "endings": 150, "notes": 140, "runs": 700}
    large = {name: size * removal.LARGE // 100 for name, size in sizes.items()}
    mine, others = removal.shares(list(sizes), large)
    assert mine == ["events", "labels", "runs"]
    assert others == [["tasks"], ["history"], ["endings", "notes"]]
    assert removal.shares(["runs"], large) == (["runs"], [])
    assert removal.shares([], large) == ([], [])


async def test_several_sessions_remove_a_month_and_are_closed(
    database: Database, settings: Settings, month: Month, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[asyncpg.Connection[asyncpg.Record]] = []
    connect = Dedicated.connection

    async def noted(self: Dedicated, patience_ms: int | None = None) -> Any:
        opened.append(await connect(self, patience_ms))
        return opened[-1]

    monkeypatch.setattr(Dedicated, "connection", noted)
    assert (await retention.drop(settings, before=month.plus(1))).dropped == (month,)
    assert await left(database, month) == []
    assert len(opened) == 1 + removal.SESSIONS
    assert all(connection.is_closed() for connection in opened)


async def test_the_runs_go_when_what_depends_on_them_is_gone(
    database: Database, settings: Settings, month: Month, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other sessions are slow to commit, and the runs' table is there as long as they have not."""
    leave = asyncpg.transaction.Transaction.__aexit__
    seen: list[bool] = []

    async def slow(self: Any, *error: Any) -> None:
        if self._connection.get_settings().application_name == "partita/removal":
            for _ in range(LOOKS):
                names = await left(database, month)
            seen.append(f"workflow_runs_{month.suffix}" in names)
        await leave(self, *error)

    monkeypatch.setattr(asyncpg.transaction.Transaction, "__aexit__", slow)
    assert (await retention.drop(settings, before=month.plus(1))).dropped == (month,)
    assert seen == [True] * removal.SESSIONS


async def test_a_table_that_is_in_use_keeps_all_of_them(database: Database, settings: Settings, month: Month) -> None:
    impatient = Settings(database=settings.database, retention=RetentionSettings(lock_timeout_ms=10))
    names = await left(database, month)
    holder = await asyncpg.connect(direct_url(settings))
    detach = f"ALTER TABLE partita.task_instances DETACH PARTITION partita.task_instances_{month.suffix} CONCURRENTLY"
    await holder.execute(detach)
    async with holder.transaction():
        await holder.execute(f"LOCK TABLE partita.task_instances_{month.suffix} IN ACCESS SHARE MODE")
        assert "in use" in (await retention.drop(impatient, before=month.plus(1))).kept[month]
        assert await left(database, month) == names
        assert len(names) == len(RECORDS)
    await holder.close()
    assert (await retention.drop(settings, before=month.plus(1))).dropped == (month,)


async def test_without_a_free_connection_one_session_removes_everything(
    database: Database, settings: Settings, month: Month, monkeypatch: pytest.MonkeyPatch
) -> None:
    connect = Dedicated.connection

    async def refused(self: Dedicated, patience_ms: int | None = None) -> Any:
        if patience_ms == 0:
            raise UnavailableError("database: no connection is free")
        return await connect(self, patience_ms)

    monkeypatch.setattr(Dedicated, "connection", refused)
    assert (await retention.drop(settings, before=month.plus(1))).dropped == (month,)
    assert await left(database, month) == []
