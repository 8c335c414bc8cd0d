"""What reading a list touches: one month at a time, by index, and no further than the page needs.

Plans are those of the pool's sessions (generic ones), on 24 months of which one is full and one older one has a few
rows; what PostgreSQL really did is read from EXPLAIN ANALYZE, as all months stand in a plan that reads one.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from hashlib import md5
from pathlib import Path
from typing import Any, Final
from uuid import UUID

import asyncpg
import orjson
import pytest

from partita.domain.ids import Month, to_milliseconds
from partita.settings import DatabaseSettings, RetentionSettings, Settings
from partita.store import migrations, partitions
from partita.store.database import READS, Connection
from partita.store.sql import Sql, blocks
from tests import postgres
from tests.postgres import Cluster

NOW: Final = Month(2031, 6)
OLDER: Final = NOW.plus(-7)
LIMIT: Final = 40
DONE: Final = "ARRAY['Succeeded']"
ENDS: Final = "ARRAY['Succeeded', 'Failed', 'Cancelled']"
MONTHS: Final = ", ".join(
    f"ARRAY[{', '.join(repr(str(bound)) for bound in bounds)}]::uuid[]"
    for bounds in zip(*((month.lower, month.upper) for month in (NOW.plus(1 - n) for n in range(24))), strict=True)
)
RANGE: Final = f"'{NOW.plus(-24).lower}', '{NOW.plus(3).lower}', {LIMIT}"


def _run(n: int) -> UUID:
    """The n-th run of the full month."""
    return UUID(f"{to_milliseconds(NOW.start) + n:012x}70008{n:015x}")


PAST: Final = frozenset(NOW.plus(-n).suffix for n in range(1, 24))
ASKED: Final = "ARRAY['#eu', '#half'], 'ann', 'ns1', 'order'"
COMMON: Final = {
    "list_all": RANGE,
    "list_scan": f"{RANGE}, {DONE}, 'ns1', 'order'",
    "list_place": f"{RANGE}, {DONE}, 'ns1', 'order'",
    "list_person": f"{RANGE}, {DONE}, 'ann'",
    "list_label": f"{RANGE}, {DONE}, '#eu'",
    "list_namespace": f"{RANGE}, {DONE}, 'ns1', {MONTHS}",
    "list_definition": f"{RANGE}, {DONE}, 'order', {MONTHS}",
    "list_ended": f"{RANGE}, {DONE}, {MONTHS}",
    "list_unlisted": RANGE,
    "list_children": f"{RANGE}, '{_run(2)}'",
    "list_newest": f"{RANGE}, {DONE}, {ASKED}",
    "list_label_fits": f"{RANGE}, {DONE}, {ASKED}, 50",
    "list_person_fits": f"{RANGE}, {DONE}, {ASKED}, 50",
    "list_place_fits": f"{RANGE}, {DONE}, {ASKED}, 50",
}
"""Calls that the full month fills."""
RARE: Final = {
    "list_place": f"{RANGE}, {ENDS}, 'once', 'once'",
    "list_person": f"{RANGE}, {ENDS}, 'once'",
    "list_label": f"{RANGE}, {ENDS}, '#once'",
    "list_namespace": f"{RANGE}, {ENDS}, 'once', {MONTHS}",
    "list_definition": f"{RANGE}, {ENDS}, 'once', {MONTHS}",
    "list_newest": f"{RANGE}, {ENDS}, ARRAY['#once', '#eu'], 'once', 'once', 'once'",
    "list_label_fits": f"{RANGE}, {ENDS}, ARRAY['#once', '#eu'], 'ann', 'ns1', 'order', 50",
    "list_person_fits": f"{RANGE}, {ENDS}, ARRAY['#eu'], 'once', 'ns1', NULL, 50",
    "list_place_fits": f"{RANGE}, {ENDS}, ARRAY['#eu'], 'ann', 'once', 'once', 50",
}
"""Calls for what only one older run has."""


def bits(*labels: str) -> int:
    """What ``run_labels`` says of a run with these labels."""
    found = 0
    for label in labels:
        number = int(md5(label.encode(), usedforsecurity=False).hexdigest()[:16], 16)
        for shift in (0, 6, 12, 18):
            found |= 1 << (number >> shift & 63)
    return found - (1 << 64) if found >> 63 else found


FILL: Final = """
UPDATE partita.run_endings SET started_by = 'ann' WHERE run_id < (
    SELECT run_id FROM partita.run_endings ORDER BY run_id LIMIT 1 OFFSET 15000);
INSERT INTO partita.run_labels (run_id, label, status)
SELECT run_id, ('x' || left(md5('#eu'), 16))::bit(64)::bigint, status FROM partita.run_endings;
INSERT INTO partita.run_labels (run_id, label, status, origin, labels)
SELECT run_id, ('x' || left(md5('#new'), 16))::bit(64)::bigint, status,
       ('x' || left(md5(namespace), 4) || left(md5(definition), 6) || left(md5(started_by), 6))::bit(64)::bigint, $FEW
FROM partita.run_endings WHERE started_by <> '';
INSERT INTO partita.run_labels (run_id, label, status)
SELECT run_id, ('x' || left(md5('#half'), 16))::bit(64)::bigint, status
FROM partita.run_endings WHERE get_byte(uuid_send(run_id), 15) % 2 = 0;
INSERT INTO partita.run_endings
    (run_id, finished_at, generation, seq, status, namespace, definition, name, started_by)
SELECT (lpad(to_hex($OLDER + n), 12, '0') || '70008' || lpad(to_hex(n), 15, '0'))::uuid, clock_timestamp(), 0, 6,
       'Failed', CASE n WHEN 1 THEN 'once' ELSE 'ns1' END, CASE n WHEN 1 THEN 'once' ELSE 'order' END, '',
       CASE n WHEN 1 THEN 'once' ELSE 'bob' END
FROM generate_series(1, 5000) AS n;
INSERT INTO partita.run_labels (run_id, label, status)
SELECT run_id, ('x' || left(md5('#once'), 16))::bit(64)::bigint, status
FROM partita.run_endings WHERE namespace = 'once';
""".replace("$OLDER", str(to_milliseconds(OLDER.start))).replace("$FEW", str(bits("#new", "#half")))


@pytest.fixture(scope="module", params=["not analysed", "analysed"])
def filled(request: pytest.FixtureRequest, postgres_cluster: Cluster, postgres_template: str) -> Iterator[str]:
    """A database with 24 months of partitions, two of which have runs."""
    with postgres.fresh_database(postgres_cluster, postgres_template) as url:
        postgres.run(_fill(url, analysed=request.param == "analysed"))
        yield url


async def _fill(url: str, *, analysed: bool) -> None:
    connection = await asyncpg.connect(url)
    await connection.execute("DROP SCHEMA partita CASCADE")
    settings = Settings(
        database=DatabaseSettings(url=url), retention=RetentionSettings(months_behind=20, months_ahead=3)
    )
    await migrations.migrate(settings.database)
    await partitions.ensure(settings, now=NOW.start)
    script = Path(__file__).with_name("fill.sql").read_text(encoding="utf-8")
    await connection.execute(script.replace("$MS", str(to_milliseconds(NOW.start))))
    await connection.execute(FILL)
    if analysed:
        await connection.execute("ANALYZE")
    await connection.close()


@pytest.fixture
async def session(filled: str) -> AsyncIterator[Connection]:
    """A session with the options of the pool's."""
    connection = await asyncpg.connect(filled, server_settings={**READS})
    yield connection
    await connection.close()


@dataclass(slots=True)
class Done:
    """What a statement did."""

    months: set[str] = field(default_factory=set)
    scans: set[str] = field(default_factory=set)
    """Tables of more than a page's rows that were read from end to end."""
    tables: set[str] = field(default_factory=set)
    """Tables that gave rows."""
    rows: int = 0
    """Most rows that one node gave in all."""
    sorted: int = 0
    """Most rows that went into one sort."""
    text: str = ""


async def did(connection: Connection, name: str, arguments: str) -> Done:
    """Run a statement and see."""
    await connection.execute(f"PREPARE {name} AS {Sql('partita')(name)}")
    text = await connection.fetchval(
        f"EXPLAIN (ANALYZE, FORMAT JSON, COSTS OFF, TIMING OFF) EXECUTE {name}({arguments})"
    )
    done = Done(text=text)
    for node in _nodes(orjson.loads(text)[0]["Plan"]):
        _note(done, node)
    return done


def _nodes(node: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield node
    for child in node.get("Plans", ()):
        yield from _nodes(child)


def _note(done: Done, node: dict[str, Any]) -> None:
    loops = int(node["Actual Loops"])
    if loops == 0:
        return
    rows = round(node["Actual Rows"] * loops)
    name = node.get("Relation Name", "")
    read = rows + round(node.get("Rows Removed by Filter", 0) * loops)
    done.rows = max(done.rows, read)
    if node["Node Type"] == "Sort":
        done.sorted = max([done.sorted, *(round(child["Actual Rows"]) for child in node["Plans"])])
    if name[-6:].isdigit():
        done.months.add(name[-6:])
        if rows:
            done.tables.add(name[:-7])
        if node["Node Type"] == "Seq Scan" and read > LIMIT:
            done.scans.add(name)


@pytest.mark.parametrize("name", sorted(COMMON))
async def test_a_window_that_one_month_fills_reads_that_month(session: Connection, name: str) -> None:
    done = await did(session, name, COMMON[name])
    assert NOW.suffix in done.months, done.text
    assert not done.months & PAST, done.months
    assert not done.scans, done.text
    assert done.rows <= 8 * LIMIT, done.text
    assert done.sorted <= 8 * LIMIT, done.text


@pytest.mark.parametrize("name", sorted(COMMON))
async def test_a_status_that_is_rare_beside_a_common_one_costs_no_more_than_a_window(
    session: Connection, name: str
) -> None:
    """It is looked for in every month, as its newest runs may be the newest of all."""
    done = await did(session, name, COMMON[name].replace(DONE, ENDS))
    assert not done.scans, done.text
    assert done.rows <= 8 * LIMIT, done.text
    assert done.sorted <= 8 * LIMIT, done.text


@pytest.mark.parametrize("name", sorted(RARE))
async def test_one_run_of_all_is_found_without_reading_others(session: Connection, name: str) -> None:
    done = await did(session, name, RARE[name])
    assert {NOW.suffix, OLDER.suffix} <= done.months, done.months
    assert not done.scans, done.text
    assert done.rows <= 8 * LIMIT, done.text


async def test_no_more_than_a_bounded_number_of_unfinished_runs_is_looked_at(session: Connection) -> None:
    done = await did(session, "list_open_runs", f"{RANGE}, 100, 'none', NULL, NULL, NULL, NULL")
    assert not done.months
    assert done.rows <= 110, done.text


async def test_unfinished_runs_are_looked_at_until_enough_fit(session: Connection) -> None:
    done = await did(session, "list_open_runs", f"{RANGE}, 1000, NULL, NULL, NULL, NULL, NULL")
    assert done.rows <= 2 * LIMIT, done.text


async def test_rows_are_read_each_in_its_month(session: Connection) -> None:
    ids = ", ".join(f"'{_run(n)}'" for n in range(20_000, 19_940, -1))
    done = await did(session, "list_rows", f"ARRAY[{ids}]::uuid[], NULL, NULL, NULL, NULL, NULL, NULL, NULL")
    assert done.months == {NOW.suffix}, done.months
    assert not done.scans, done.text
    columns = Sql("partita")("list_rows")
    assert "NULL::json AS output_json, NULL::json AS context_json" in columns


@pytest.mark.parametrize(
    ("name", "asked", "table"),
    [
        ("list_label_fits", "ARRAY['#new', '#half'], 'ann', 'ns1', 'order'", "run_labels"),
        ("list_label_fits", "ARRAY['#new'], NULL, NULL, 'order'", "run_labels"),
        ("list_person_fits", "ARRAY[]::text[], 'ann', 'ns1', 'order'", "run_endings"),
    ],
)
async def test_an_entry_says_what_else_its_run_has(session: Connection, name: str, asked: str, table: str) -> None:
    done = await did(session, name, f"{RANGE}, {DONE}, {asked}, 50")
    assert done.tables == {table}, done.tables
    assert done.rows <= LIMIT, done.text


@pytest.mark.parametrize("place", ["'ns1', NULL", "NULL, 'order'", "'ns1', 'order'"])
async def test_ids_are_checked_by_one_lookup_each_in_its_month(session: Connection, place: str) -> None:
    """However many entries the filters have."""
    ids = ", ".join(f"'{_run(n)}'" for n in range(20_000, 19_940, -1))
    done = await did(session, "list_ids_fit", f"ARRAY[{ids}]::uuid[], {ENDS}, ARRAY['#eu', '#half'], 'ann', {place}")
    assert done.months == {NOW.suffix}, done.months
    assert not done.scans, done.text
    assert done.rows <= 4 * 60, done.text


def test_every_block_that_gives_ids_is_looked_at() -> None:
    names = {name for name, block in blocks().items() if block.source.startswith("lists")}
    others = {"list_months", "list_open_runs", "list_ids_fit", "list_rows", "list_count"}
    others |= {"list_fill", "list_fill_open", "list_fill_labels", "list_unknown"}
    assert names - others == COMMON.keys()
