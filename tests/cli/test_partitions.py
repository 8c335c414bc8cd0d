"""``partita partitions``: what it says of months, to people and to programs."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from pathlib import Path
from uuid import uuid4

import asyncpg
import pytest

from partita.cli.exits import Exit
from partita.domain.ids import Month, make_id, to_milliseconds
from partita.settings import DatabaseSettings, Settings
from partita.store import partitions
from partita.store.database import Connection, Database
from tests import postgres
from tests.cli.commands import Cli
from tests.store.records import insert_run, open_run

RUNS = 5
MANIFEST = """
apiVersion: partita.dev/v1alpha1
kind: WorkflowDefinition
metadata: {{name: order}}
spec: {{nodes: [{{name: a, task: {{type: noop}}}}]}}
---
apiVersion: partita.dev/v1alpha1
kind: WorkflowRun
metadata: {{name: one}}
spec: {{definitionRef: {{name: order}}, runId: "{run_id}"}}
"""


@pytest.fixture
def old(database_url: str) -> Month:
    """A month that retention does not keep, with ended runs and unfinished ones."""
    return postgres.run(_fill(database_url))


async def _fill(url: str) -> Month:
    settings = Settings(database=DatabaseSettings(url=url))
    async with await Database.open(settings.database) as database:
        month = Month.of(await database.clock()).plus(-14)
        floor = "UPDATE partita.engine_state SET retention_floor = $1"
        await database.read(lambda c: c.execute(floor, month.start))
        await partitions.ensure(settings)
        await database.read(lambda c: _runs(c, month))
    return month


async def _runs(connection: Connection, month: Month) -> None:
    for number in range(RUNS):
        run_id = make_id(to_milliseconds(month.start + timedelta(days=1)), number)
        await insert_run(connection, run_id)
        if number < 2:
            await open_run(connection, run_id)
    await connection.execute("SELECT pg_stat_force_next_flush()")  # or they are counted again on top of what is found
    await connection.execute(f"ANALYZE partita.workflow_runs_{month.suffix}")


def test_status_shows_months_with_their_runs_sizes_and_what_is_missing(on_database: Cli, old: Month) -> None:
    shown = on_database("partitions", "status")
    assert shown.code == Exit.OK
    line = next(line for line in shown.out.splitlines() if str(old) in line)
    assert re.search(rf"{old} .*~{RUNS} .*~{RUNS} .*\d KiB.* 2 ", f"{line} ")
    assert "3 months ahead; runs from before" in shown.err
    found = on_database("partitions", "status", "-o", "json").json
    assert set(found) == {"months", "ahead", "left", "floor", "now"}
    first = found["months"][0]
    assert first["bytes"] > 0
    assert first == {
        "month": str(old), "runs": RUNS, "rows": RUNS, "bytes": first["bytes"], "unfinished": 2, "missing": []
    }  # fmt: skip  # a line of the answer
    assert [one["month"] for one in found["months"]] == [str(old.plus(n)) for n in range(18)]


def test_drop_keeps_a_month_with_unfinished_runs_or_compacts_it(on_database: Cli, old: Month) -> None:
    kept = on_database("partitions", "drop")
    assert kept.code == Exit.OK
    line = next(line for line in kept.out.splitlines() if str(old) in line)
    assert re.search(r"kept +it has 2 unfinished run\(s\), such as [0-9a-f-]{36}", line)
    assert "--compact" in kept.out
    assert f"{old.plus(1)} " in kept.out
    done = on_database("partitions", "drop", "--compact", "-o", "json").json
    assert done["compacted"] == [{"month": str(old), "unfinished": 2}]
    assert (done["dropped"], done["kept"]) == ([], [])
    again = on_database("partitions", "drop", "--compact")
    assert re.search(r"and no other", again.out)
    assert on_database("partitions", "status", "-o", "json").json["months"][0]["unfinished"] == 2


def test_status_names_what_a_broken_off_drop_has_left(on_database: Cli, database_url: str, old: Month) -> None:
    postgres.run(_break_off(database_url, old))
    names = [f"run_history_{old.suffix}", f"workflow_runs_{old.suffix}_old"]
    shown = on_database("partitions", "status")
    assert f"left by a drop that was broken off: {', '.join(names)}; try: partita partitions drop" in shown.err
    found = on_database("partitions", "status", "-o", "json").json
    assert found["left"] == names
    assert found["months"][0]["missing"] == ["run_history"]
    assert on_database("partitions", "drop", "--compact", "-o", "json").json["compacted"] != []
    assert on_database("partitions", "status", "-o", "json").json["left"] == []


async def _break_off(url: str, month: Month) -> None:
    async with await Database.open(DatabaseSettings(url=url)) as database:
        detach = f"ALTER TABLE partita.run_history DETACH PARTITION partita.run_history_{month.suffix}"
        await database.read(lambda c: c.execute(detach))
        await database.read(lambda c: c.execute(f"CREATE TABLE partita.workflow_runs_{month.suffix}_old ()"))


@pytest.mark.parametrize(
    ("offset", "code", "words"),
    [
        (timedelta(days=-400), Exit.CONFLICT, r"is dated .* UTC; expected .* or later.*; try: start it as a new run"),
        (timedelta(days=2), Exit.UNAVAILABLE, r"ahead of the database's clock; expected at most 86400 s ahead"),
        (None, Exit.USAGE, r"runId"),
    ],
)
def test_submit_says_what_is_wrong_with_an_id(
    on_database: Cli, database_url: str, tmp_path: Path, offset: timedelta | None, code: Exit, words: str
) -> None:
    now = postgres.run(_now(database_url))
    run_id = uuid4() if offset is None else make_id(to_milliseconds(now + offset), 1)
    file = tmp_path / "run.yaml"
    file.write_text(MANIFEST.format(run_id=run_id))
    done = on_database("submit", str(file))
    assert done.code == code, done.err
    assert re.search(words, done.err.replace("\n", " ")), done.err


async def _now(url: str) -> datetime:
    connection = await asyncpg.connect(url)
    try:
        return await connection.fetchval("SELECT now()")  # type: ignore[no-any-return]  # of the driver
    finally:
        await connection.close()
