"""Every named block is a statement that PostgreSQL accepts, and the hot ones read what their mark allows.

The blocks are found, not listed: one that is added to a file in ``queries`` is tested from then on. Plans are those of
the coordinator's session, on 24 months: empty or full, analysed or not. What was analysed while empty and filled later
is the hardest case: a join that may start at either side then starts at the table that will be the large one.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from uuid import uuid4

import asyncpg
import pytest

import partita
from partita.domain.ids import Month, make_id, to_milliseconds
from partita.settings import DatabaseSettings, RetentionSettings, Settings
from partita.store import migrations, partitions, roles
from partita.store.database import PLANNER, PREPARED, Connection
from partita.store.direct import REPORT, START, _text
from partita.store.roles import Roles
from partita.store.sql import Block, Sql, blocks, parse
from partita.store.together import Part, combined
from partita.store.writes import COUNTED, TOGETHER
from tests import postgres
from tests.postgres import Cluster
from tests.store.bounds import Bounds
from tests.store.plans import Plan, explain, prepare

STATEMENTS = sorted(name for name, block in blocks().items() if "utility" not in block.marks)
HOT = sorted(name for name, block in blocks().items() if "hot" in block.marks)
READS = [
    name for name in HOT if blocks()[name].source.startswith("reads.sql") and blocks()[name].marks["hot"] != "queue"
]
SMALL = {"engine_state", "schema_migrations", "workers"}
"""Tables of a few rows, for which a scan is as good as an index."""
IDS = "SELECT * FROM unnest($1::uuid[]) AS u (id)"
NOW = Month(2031, 6)
ALL_MONTHS = Sql("partita")
ID = make_id(to_milliseconds(NOW.start) + 5, 5)


@pytest.fixture(scope="module", params=["empty", "empty, analysed", "full", "full, analysed"])
def many_months(request: pytest.FixtureRequest, postgres_cluster: Cluster, postgres_template: str) -> Iterator[str]:
    """A database with 24 months of partitions, of which the month of ``NOW`` is empty or full."""
    with postgres.fresh_database(postgres_cluster, postgres_template) as url:
        postgres.run(_fill(url, request.param))
        yield url


async def _fill(url: str, state: str) -> None:
    connection = await asyncpg.connect(url)
    await connection.execute("DROP SCHEMA partita CASCADE")
    await connection.close()
    settings = Settings(
        database=DatabaseSettings(url=url), retention=RetentionSettings(months_behind=20, months_ahead=3)
    )
    await migrations.migrate(settings.database)
    await partitions.ensure(settings, now=NOW.start)
    connection = await asyncpg.connect(url)
    if state.startswith("full"):
        script = Path(__file__).with_name("fill.sql").read_text(encoding="utf-8")
        await connection.execute(script.replace("$MS", str(to_milliseconds(NOW.start))))
    if state.endswith("analysed"):
        await connection.execute("ANALYZE")
    await connection.close()


@pytest.fixture
async def coordinator(many_months: str) -> AsyncIterator[Connection]:
    """A session with the coordinator's planner options, whose work is rolled back."""
    connection = await asyncpg.connect(many_months)
    for name, value in PLANNER:
        await connection.execute(f"SET {name} = '{value}'")
    yield connection
    await connection.close()


@pytest.fixture
async def coordinator_role(many_months: str) -> AsyncIterator[Connection]:
    """A session whose role brings the same options with it."""
    suffix = uuid4().hex[:8]
    names = Roles(f"coordinator_{suffix}", f"reader_{suffix}")
    await roles.apply(DatabaseSettings(url=many_months), names)
    owner = await asyncpg.connect(many_months)
    await owner.execute(f"ALTER ROLE {names.coordinator} LOGIN PASSWORD '{suffix}'")
    connection = await asyncpg.connect(many_months, user=names.coordinator, password=suffix)
    await connection.execute("SET {} = '{}'".format(*PREPARED))
    yield connection
    await connection.close()
    for name in (names.coordinator, names.reader):
        await owner.execute(f"DROP OWNED BY {name}; DROP ROLE {name}")
    await owner.close()


@pytest.fixture
async def session(database_url: str) -> AsyncIterator[Connection]:
    """An ordinary session."""
    connection = await asyncpg.connect(database_url)
    yield connection
    await connection.close()


@pytest.mark.parametrize("named", [False, True])
async def test_every_statement_is_accepted(session: Connection, named: bool) -> None:
    """On all months, and on the tables of this one."""
    month = Month.of(await session.fetchval("SELECT clock_timestamp()"))
    sql = Sql("partita").within(month) if named else Sql("partita")
    refused = []
    for name in STATEMENTS:
        try:
            await prepare(session, name, sql(name))
        except (asyncpg.PostgresError, KeyError) as error:
            refused.append(f"{blocks()[name].source} {name}: {error}")
    assert STATEMENTS
    assert not refused, "\n".join(refused)


async def test_reads_keep_to_their_marks_without_planner_options(
    many_months: str, request: pytest.FixtureRequest
) -> None:
    """An empty month may be scanned and sorted: reads are planned anew when it has grown."""
    full = request.node.callspec.params["many_months"].startswith("full")
    connection = await asyncpg.connect(many_months)
    faults = await _faults(connection, READS, scans=full)
    await connection.close()
    assert READS
    assert not faults, "\n".join(faults)


async def test_hot_statements_read_what_their_mark_allows(coordinator: Connection) -> None:
    """Planned once for all values, as prepared statements are."""
    assert HOT
    faults = await _faults(coordinator, HOT)
    assert not faults, "\n".join(faults)


@pytest.mark.parametrize("mode", ["force_generic_plan", "force_custom_plan"])
async def test_statements_that_name_a_month_read_that_month_by_index(coordinator: Connection, mode: str) -> None:
    await coordinator.execute(f"SET plan_cache_mode = {mode}")
    faults = await _faults(coordinator, HOT, sql=Sql("partita").within(NOW))
    assert not faults, "\n".join(faults)


async def test_options_of_the_role_lead_to_the_same_plans(coordinator_role: Connection) -> None:
    faults = await _faults(coordinator_role, HOT)
    assert not faults, "\n".join(faults)


async def test_statements_that_are_planned_anew_each_time_keep_to_their_marks(coordinator: Connection) -> None:
    """As behind PgBouncer, where no statement stays prepared."""
    await coordinator.execute("SET plan_cache_mode = force_custom_plan")
    faults = await _faults(coordinator, HOT)
    assert not faults, "\n".join(faults)


@pytest.mark.parametrize("sql", [ALL_MONTHS, ALL_MONTHS.within(NOW)], ids=["all months", "one month"])
async def test_statements_sent_together_keep_to_their_marks(coordinator: Connection, sql: Sql) -> None:
    """All that a batch may write at once, as one statement."""
    parts = parts_of(sql, TOGETHER)
    types = await prepare(coordinator, "together", combined(sql, parts))
    assert len(types) == sum(part.parameters for part in parts)
    plan = await explain(coordinator, "together", types, ID, await Bounds.of(coordinator, SMALL))
    hot = Block("together", "writes.py", "", {"hot": "pruned"})
    assert check(hot, plan) == []


def parts_of(sql: Sql, names: Sequence[str]) -> tuple[Part, ...]:
    """Blocks as parts of a statement."""
    return tuple(
        Part(name, max(map(int, re.findall(r"\$(\d+)", sql(name))), default=0), name in COUNTED) for name in names
    )


@pytest.mark.parametrize("mode", ["force_generic_plan", "force_custom_plan"])
@pytest.mark.parametrize("proof", [REPORT, START], ids=["report", "start"])
@pytest.mark.parametrize("single", [False, True])
async def test_statements_that_are_a_transaction_keep_to_their_marks(
    coordinator: Connection, mode: str, proof: tuple[Part, ...], single: bool
) -> None:
    """A lone transition that writes all it may, with what it rests on; on the month's own tables, as it is sent."""
    await coordinator.execute(f"SET plan_cache_mode = {mode}")
    sql = ALL_MONTHS.within(NOW)
    parts = tuple(part._replace(single=single) for part in parts_of(sql, TOGETHER))
    types = await prepare(coordinator, "direct", _text(sql, proof, parts, (1,) * len(COUNTED)))
    plan = await explain(coordinator, "direct", types, ID, await Bounds.of(coordinator, SMALL))
    assert check(Block("direct", "direct.py", "", {"hot": "pruned"}), plan) == []
    assert all(months == {NOW.suffix} for months in plan.partitions.values()), plan.text


async def _faults(connection: Connection, names: list[str], *, scans: bool = True, sql: Sql = ALL_MONTHS) -> list[str]:
    """What the plans of these blocks do against their marks; ``scans``: sequential ones count, and sorts."""
    bounds = await Bounds.of(connection, SMALL)
    faults = []
    for name in names:
        try:
            types = await prepare(connection, name, sql(name))
            plan = await explain(connection, name, types, ID, bounds)
            if sql is not ALL_MONTHS:
                assert all(months == {NOW.suffix} for months in plan.partitions.values()), plan.text
            found = check(blocks()[name], plan if scans else replace(plan, sequential=set(), unbounded_sorts=[]))
        except asyncpg.PostgresError as error:
            found = [str(error)]
        faults += [f"{blocks()[name].source} {name}: {fault}" for fault in found]
    return faults


def check(block: Block, plan: Plan) -> list[str]:
    """What a plan does that the block's mark forbids."""
    sorts = [] if "sorts" in block.marks else [f"sorts {tables} without a bound" for tables in plan.unbounded_sorts]
    return _check_tables(block.marks["hot"], plan) + sorts


def _check_tables(mark: str, plan: Plan) -> list[str]:
    months = plan.partitions
    if mark in {"queue", "queue scan"}:
        scanned = set() if mark == "queue scan" else plan.sequential - SMALL - months.keys()
        faults = [f"reads the records {table}" for table in months]
        return faults + [f"scans {table} without an index" for table in scanned]
    if not re.fullmatch(r"pruned( \d+)?", mark):
        return [f"has the unknown mark {mark!r}; expected pruned, pruned <n>, queue or queue scan"]
    allowed = int(mark.removeprefix("pruned") or 1)
    faults = [f"reads {len(m)} months of {table}, allowed {allowed}" for table, m in months.items() if len(m) > allowed]
    faults += [f"reads all of {table} between two ids" for table in plan.ranges]
    return faults + [f"scans {table} without an index" for table in plan.sequential & months.keys()]


def test_the_check_sees_a_plan_that_reads_too_much() -> None:
    pruned, queue = (Block("b", "f:1", "SELECT", {"hot": mark}) for mark in ("pruned", "queue"))
    one, two = {"run_history": {"203106"}}, {"run_history": {"203106", "203107"}}
    assert check(pruned, Plan(one)) == []
    assert check(pruned, Plan(two)) == ["reads 2 months of run_history, allowed 1"]
    assert check(pruned, Plan(one, {"run_history"})) == ["scans run_history without an index"]
    assert check(pruned, Plan(one, ranges={"run_history"})) == ["reads all of run_history between two ids"]
    assert check(queue, Plan(one)) == ["reads the records run_history"]
    assert check(queue, Plan({}, {"timers", "engine_state"})) == ["scans timers without an index"]
    assert check(queue, Plan(unbounded_sorts=["timers"])) == ["sorts timers without a bound"]
    assert check(Block("b", "f:1", "SELECT", {"hot": "queue scan"}), Plan({}, {"timers"})) == []
    assert check(Block("b", "f:1", "SELECT", {"hot": "queue", "sorts": "few"}), Plan(unbounded_sorts=["timers"])) == []


@pytest.mark.parametrize(
    ("statement", "months", "scans", "ranges"),
    [
        ("run_id = ANY($1::uuid[]) AND run_id BETWEEN $2 AND $3", 1, False, False),
        ("run_id = ANY($1::uuid[])", 24, False, False),
        ("node = $1 AND run_id BETWEEN $2 AND $3", 1, False, True),
        ("node = $1", 24, True, False),
    ],
)
async def test_plans_are_read_right(
    coordinator: Connection, statement: str, months: int, scans: bool, ranges: bool
) -> None:
    text = f"SELECT * FROM partita.run_history WHERE {statement}"  # noqa: S608 - the conditions above are the test's
    types = await prepare(coordinator, "sample", text)
    plan = await explain(coordinator, "sample", types, ID, await Bounds.of(coordinator, SMALL))
    assert len(plan.partitions["run_history"]) == months, plan.text
    assert ("run_history" in plan.sequential) is scans, plan.text
    assert ("run_history" in plan.ranges) is ranges, plan.text


@pytest.mark.parametrize(
    ("statement", "sorted_"),
    [
        ("SELECT * FROM partita.run_history WHERE run_id = $1 AND seq = $2 ORDER BY at", []),
        ("SELECT * FROM partita.run_history WHERE run_id = $1 ORDER BY at", ["run_history"]),
        ("SELECT * FROM partita.run_history WHERE run_id = $1 ORDER BY at LIMIT 5", ["run_history"]),
        ("SELECT * FROM (SELECT * FROM partita.run_history WHERE run_id = $1 LIMIT 5) AS h ORDER BY at", []),
        ("SELECT count(*) FROM partita.run_history WHERE run_id = $1 ORDER BY 1", []),
        ("SELECT * FROM partita.timers ORDER BY node", ["timers"]),
        ("SELECT * FROM partita.timers WHERE ctid = ANY ($1::tid[]) ORDER BY node", []),
        (IDS + " CROSS JOIN LATERAL (SELECT * FROM partita.waits WHERE run_id = u.id LIMIT 1) AS w ORDER BY name", []),  # noqa: S608 - no value
        (IDS + " JOIN partita.waits AS w ON w.run_id = u.id ORDER BY w.name", ["waits"]),
        ("SELECT node, row_number() OVER (ORDER BY node) FROM partita.timers", ["timers"]),
        ("SELECT * FROM partita.workers ORDER BY expires_at", []),
    ],
)
async def test_sorts_are_judged_right(coordinator: Connection, statement: str, sorted_: list[str]) -> None:
    types = await prepare(coordinator, "sample", statement)
    plan = await explain(coordinator, "sample", types, ID, await Bounds.of(coordinator, SMALL))
    found = [re.sub(r"_\d{6}\b", "", tables) for tables in plan.unbounded_sorts]
    assert found == sorted_, plan.text


def test_every_block_is_used() -> None:
    code = "\n".join(path.read_text(encoding="utf-8") for path in Path(partita.__file__).parent.rglob("*.py"))
    assert sorted(name for name in blocks() if not re.search(rf"[\"']{name}[\"']", code)) == []


def test_only_utility_blocks_have_tokens_besides_the_schema() -> None:
    assert [name for name in STATEMENTS if blocks()[name].tokens - {"schema"}] == []


def test_blocks_are_parsed_with_their_marks() -> None:
    text = "-- A file.\n\n-- name: one\n-- Says why.\n-- hot: pruned 2\nSELECT $1::text;\n\n-- name: two\nSELECT 1;\n"
    one, two = parse(text, "x.sql")
    assert (one.name, one.doc, one.marks, one.text) == ("one", "Says why.", {"hot": "pruned 2"}, "SELECT $1::text")
    assert (one.source, one.tokens, two.source) == ("x.sql:3", frozenset(), "x.sql:8")
    for bad in ("SELECT 1\n", "-- name: empty\n-- nothing\n"):
        with pytest.raises(ValueError, match=r"x\.sql"):
            list(parse(bad, "x.sql"))


def test_identifiers_are_quoted_as_psql_does_it() -> None:
    assert Sql('we"ird')("migrations_applied").count('"we""ird".') == 1
    with pytest.raises(KeyError):
        Sql("partita")("partition_create")
