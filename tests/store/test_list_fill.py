"""Lists on a schema that has come from version 2 or 3, with runs that had ended before."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from uuid import UUID, uuid4

import asyncpg
import pytest

from partita.domain.ids import Month, make_id, to_milliseconds
from partita.settings import DatabaseSettings, RetentionSettings, Settings
from partita.store import list_fill, lists, migrations, partitions
from partita.store.database import Database
from partita.store.views import RunFilter
from tests.postgres import direct_url
from tests.store.records import insert, insert_run
from tests.waiting import until

WAITING = "FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
SECOND = 2
"""The version before lists had their indexes."""
LABELS = """
INSERT INTO partita.run_labels (run_id, label, status)
SELECT run_id, ('x' || left(md5(label), 16))::bit(64)::bigint, status
FROM partita.run_endings CROSS JOIN unnest(ARRAY['#eu', 'team=red']) AS label WHERE run_id = $1
"""
FILTERS = (
    RunFilter(started_by="ann"),
    RunFilter(tags=("eu",)),
    RunFilter(attributes={"team": "red"}, namespace="shop"),
    RunFilter(namespace="shop", definition="order"),
    RunFilter(tags=("eu",), started_by="ann", definition="order"),
)


@pytest.fixture
async def old(empty_database_url: str, tmp_path: Path) -> tuple[Settings, list[UUID]]:
    """A schema of version 2 with finished runs in two months and an unfinished one; their ids, newest first."""
    settings = Settings(
        database=DatabaseSettings(url=empty_database_url), retention=RetentionSettings(months_behind=2, months_ahead=1)
    )
    for file in migrations.available()[:SECOND]:
        (tmp_path / file.file).write_text(file.text, encoding="utf-8")
    await migrations.migrate(settings.database, folder=tmp_path)
    await partitions.ensure(settings)
    connection = await asyncpg.connect(empty_database_url)
    month = Month.of(await connection.fetchval("SELECT clock_timestamp()"))
    made = []
    for number, start in enumerate((month.start, month.start, month.plus(-2).start, month.start)):
        run_id = make_id(to_milliseconds(start) + number, uuid4().int)
        labels = {"tags": '["eu"]', "attributes": '{"team": "red"}', "started_by": "ann"}
        status = "Running" if number == 3 else "Succeeded"
        await insert_run(connection, run_id, status=status, **labels)
        place = {"run_id": run_id, "namespace": "shop", "definition": "order", "name": ""}
        if status == "Running":
            await insert(connection, "open_runs", **place)
        else:
            ended = {"finished_at": start, "generation": 0, "seq": 6, "status": status}
            await insert(connection, "run_endings", **place, **ended)
        made.append(run_id)
    await connection.close()
    return settings, sorted(made, reverse=True)


async def shown(settings: Settings) -> list[list[UUID]]:
    async with await Database.open(settings.database) as database:
        return [[run.id for run in (await lists.list_runs(database, query)).runs] for query in FILTERS]


async def test_old_runs_are_in_every_list_before_and_after_they_are_filled_in(old: tuple[Settings, list[UUID]]) -> None:
    settings, made = old
    applied = await migrations.migrate(settings.database)
    assert applied[0].version == SECOND + 1
    assert await shown(settings) == [made] * len(FILTERS)
    assert await list_fill.fill(settings.database, steps=1, most=2) == 2
    assert await shown(settings) == [made] * len(FILTERS)
    assert await list_fill.fill(settings.database) == 2
    assert await shown(settings) == [made] * len(FILTERS)


async def test_labels_of_the_version_before_are_filled_in(old: tuple[Settings, list[UUID]], tmp_path: Path) -> None:
    """A process of that version still writes them after the migration."""
    settings, made = old
    third = migrations.available()[SECOND]
    (tmp_path / third.file).write_text(third.text, encoding="utf-8")
    await migrations.migrate(settings.database, folder=tmp_path)
    connection = await asyncpg.connect(settings.database.url)
    await connection.execute("UPDATE partita.run_endings SET started_by = 'ann'")
    for run_id in made[2:]:
        await connection.execute(LABELS, run_id)
    await migrations.migrate(settings.database)
    await connection.execute(LABELS, made[1])
    assert await shown(settings) == [made] * len(FILTERS)
    assert await list_fill.fill(settings.database) == 1 + 2 * 3, "the unfinished run, and labels"
    assert await shown(settings) == [made] * len(FILTERS)
    assert await connection.fetchval("SELECT count(DISTINCT (origin, labels)) FROM partita.run_labels") == 1
    await connection.close()


async def test_processes_that_fill_in_at_once_take_turns(old: tuple[Settings, list[UUID]]) -> None:
    """The first one is in the middle when the second one begins."""
    settings, made = old
    await migrations.migrate(settings.database)
    connection, observer = [await asyncpg.connect(direct_url(settings)) for _ in range(2)]
    await connection.execute("BEGIN; SELECT FROM partita.run_endings FOR UPDATE")
    both = [asyncio.create_task(list_fill.fill(settings.database)) for _ in range(2)]

    async def waiting() -> bool:
        return bool(await observer.fetchval(f"SELECT count(*) = {len(both)} {WAITING}"))

    await until(waiting, what="two sessions that wait")
    await connection.execute("COMMIT")
    assert sum(await asyncio.gather(*both)) == len(made), "each of them by one alone"
    assert await shown(settings) == [made] * len(FILTERS)
    await connection.close()
    await observer.close()


async def test_the_migration_makes_the_months_of_its_table(old: tuple[Settings, list[UUID]]) -> None:
    """So that a run may end before anybody has ensured partitions; ensuring them finds nothing to do."""
    settings, _ = old
    await migrations.migrate(settings.database)
    connection = await asyncpg.connect(settings.database.url)
    text = (
        "SELECT count(*) FROM pg_class AS labels JOIN pg_class AS ends ON replace(labels.relname, 'run_labels', "
        "'run_endings') = ends.relname AND pg_get_expr(labels.relpartbound, labels.oid) = "
        "pg_get_expr(ends.relpartbound, ends.oid) WHERE labels.relname ~ '^run_labels_[0-9]{6}$'"
    )
    assert await connection.fetchval(text) == 4
    await connection.close()
    assert await partitions.ensure(settings) == ()
    later = replace(settings, retention=RetentionSettings(months_behind=2, months_ahead=2))
    assert {name[:-7] for name in await partitions.ensure(later)} >= {"run_labels", "run_endings", "workflow_runs"}


async def test_indexes_that_were_made_before_are_taken_over(old: tuple[Settings, list[UUID]]) -> None:
    """Where building them would hold ends up for too long, they are built month by month before."""
    settings, made = old
    connection = await asyncpg.connect(settings.database.url)
    tables = await connection.fetch(
        "SELECT relname FROM pg_class WHERE relname ~ '^run_endings_[0-9]{6}$' ORDER BY relname"
    )
    for table in tables:
        await connection.execute(
            f"CREATE UNIQUE INDEX CONCURRENTLY ON partita.{table['relname']} "
            "(status, namespace, definition, run_id, generation)"
        )
    before = await connection.fetch("SELECT indexrelid FROM pg_index WHERE indnkeyatts = 5 AND indisunique ORDER BY 1")
    await migrations.migrate(settings.database)
    attached = await connection.fetch(
        "SELECT inhrelid FROM pg_inherits WHERE inhparent = 'partita.run_endings_place'::regclass ORDER BY 1"
    )
    await connection.close()
    assert [row[0] for row in attached] == [row[0] for row in before if row[0] in {each[0] for each in attached}]
    assert len(attached) == len(tables)
    assert await shown(settings) == [made] * len(FILTERS)
