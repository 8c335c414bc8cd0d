"""Statements that are sent as one."""

from __future__ import annotations

import pytest

from partita.domain.ids import make_id, to_milliseconds
from partita.store import together
from partita.store.database import Database
from partita.store.errors import MovedError
from partita.store.sql import Sql
from partita.store.together import Part, Write, combined
from tests.store.records import insert, insert_run


def test_parameters_are_numbered_through() -> None:
    sql = Sql("partita")
    text = combined(sql, (Part("delete_open_runs", 1, counted=False), Part("retention_floor_raise", 1, counted=True)))
    first, second = text.split("retention_floor_raise AS (")
    assert "$1" in first
    assert "$2" in second
    assert "$1" not in second
    assert second.endswith("RETURNING 1\n)\nSELECT (SELECT count(*) FROM retention_floor_raise)")


async def test_each_is_done_and_those_that_are_counted_are_compared(database: Database) -> None:
    run_id = make_id(to_milliseconds(await database.clock()), 7)
    await insert_run(database, run_id, status="Running")
    await insert(database, "timers", run_id=run_id, fire_at=await database.clock(), index=0, kind="wait", node="a")
    dedicated, sql = database.dedicated("test"), database.sql
    timer = ([run_id], ["wait"], ["a"], [0])
    async with dedicated.transaction() as connection:
        await together.send(connection, sql, [])
        await together.send(
            connection, sql, [Write("delete_open_runs", ([run_id],), 1), Write("clear_timers", timer, 1, counted=True)]
        )
    assert await database.fetch("load_timers", [run_id]) == []
    with pytest.raises(MovedError, match="clear_timers: changed 0 rows; expected 1"):
        async with dedicated.transaction() as connection:
            await together.send(connection, sql, [Write("clear_timers", timer, 1, counted=True)])
    await dedicated.close()
