"""An autovacuum of the month that is to go is ended by the server, since somebody waits for its lock long enough."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import asyncpg
import pytest

from partita.domain.ids import Month
from partita.settings import DatabaseSettings, Settings
from partita.store import retention
from partita.store.embedded import DEFAULT_VERSION, Server
from tests import postgres
from tests.store.records import open_run
from tests.waiting import until

FILL = """
INSERT INTO partita.workflow_runs
    (id, definition_id, start_request_id, created_at, version, total, status, namespace, name, definition, context_json)
SELECT id, id, id, now(), 1, 1, 'Succeeded', 'shop', '', 'order', '{}'
FROM generate_series(1, 20000) AS number
CROSS JOIN LATERAL (SELECT (left($1::text, 13) || '-7000-8000-' || lpad(to_hex(number), 12, '0'))::uuid AS id) AS made
"""
SLOW = """
ALTER TABLE partita.{table} SET (autovacuum_vacuum_threshold = 1, autovacuum_vacuum_scale_factor = 0,
                                 autovacuum_vacuum_cost_delay = 100, autovacuum_vacuum_cost_limit = 1)
"""
AT_WORK = """
SELECT EXISTS (SELECT FROM pg_stat_progress_vacuum WHERE relid = $1::text::regclass AND heap_blks_total > 0)
"""


@pytest.fixture
def busy() -> Iterator[Settings]:
    """A server that looks every second what there is to vacuum."""
    folder = Path(tempfile.mkdtemp(prefix="partita-autovacuum-"))
    folder.chmod(0o755)
    version = postgres.chosen_version() or DEFAULT_VERSION
    server = Server(folder / "data", version, durable=False, options={"autovacuum_naptime": "1s"})
    server.start()
    try:
        postgres.run(postgres.create_prepared(server, "partita"))
        yield Settings(database=DatabaseSettings(url=server.url("partita")))
    finally:
        server.remove()
        folder.rmdir()


@pytest.mark.parametrize("compact", [False, True])
async def test_an_autovacuum_of_the_month_does_not_keep_it(busy: Settings, compact: bool) -> None:
    connection = await asyncpg.connect(busy.database.url)
    month = Month.of(await connection.fetchval("SELECT now()")).plus(-1)
    table = f"workflow_runs_{month.suffix}"
    await connection.execute(FILL, str(month.lower))
    if compact:
        await open_run(connection, await connection.fetchval("SELECT id FROM partita.workflow_runs LIMIT 1"))
    await connection.execute("UPDATE partita.workflow_runs SET seq = 1")
    await connection.execute(SLOW.format(table=table))
    await until(lambda: connection.fetchval(AT_WORK, f"partita.{table}"), within=60, what="the table is vacuumed")
    report = await retention.drop(busy, before=month.plus(1), compact=compact)
    assert (report.kept, report.dropped, report.compacted) == (({}, (), {month: 1}) if compact else ({}, (month,), {}))
    await connection.close()
