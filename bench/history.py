"""Years of work in minutes: finished runs over past months, as lists see them.

    PARTITA_DATABASE_URL=… python -m bench.history --runs 1000000 --months 12

Invariant: the same flags give the same runs; columns have the spread of real ones: 20 definitions and 50 people of
which few are busy, 5 namespaces, 95 % Succeeded, 4 % Failed and 1 % Cancelled, tags on a third, attributes on a third,
and of each kind one value that one run in a million has. Trade-off: only what lists read is made (runs, ends, labels,
and unfinished runs); nodes, signals and history lines are left out.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import asyncpg

from bench.figures import say
from partita.domain.ids import Month, month_range, to_milliseconds
from partita.settings import DatabaseSettings, RetentionSettings, Settings
from partita.store import migrations, partitions
from partita.store.database import Connection
from partita.store.sql import substitute

CHUNK: Final = 100_000
RARE: Final = 1_000_000
"""One run of so many has a rare value."""
CHILDREN: Final = 1_000
"""Of each million runs so many have one parent: the run before them."""
DEFINITIONS, NAMESPACES, PEOPLE, TAGS, TEAMS = 20, 5, 50, 30, 12

_FUNCTIONS: Final = """
-- The id of run n, made at a time in milliseconds.
CREATE OR REPLACE FUNCTION pg_temp.run_id(n bigint, at bigint) RETURNS uuid LANGUAGE sql IMMUTABLE AS $$
    SELECT (lpad(to_hex(at), 12, '0') || '7' || left(md5(n::text), 3) || '8' || substr(md5(n::text), 4, 15))::uuid
$$;
"""
_RUNS: Final = """
WITH drawn AS MATERIALIZED (
    SELECT n, $2::bigint + ((n - $1::bigint) * $3::float8)::bigint AS at, (n - 1) % {rare} AS place, random() AS status,
           random() AS definition, random() AS person, random() AS space, random() AS tagged, random() AS tag,
           random() AS described, random() AS team
    FROM generate_series($4::bigint, $5::bigint) AS n
), new AS MATERIALIZED (
    SELECT n, pg_temp.run_id(n, at) AS id, to_timestamp(at / 1000.0) AS made, place,
           CASE WHEN status < 0.95 THEN 'Succeeded' WHEN status < 0.99 THEN 'Failed' ELSE 'Cancelled' END AS status,
           CASE WHEN place = 5000 THEN 'once' ELSE 'workflow-' || floor({definitions} * definition ^ 2)
           END AS definition,
           CASE WHEN place = 6000 THEN 'once' ELSE 'person-' || floor({people} * person ^ 2) END AS started_by,
           CASE WHEN place = 7000 THEN 'once' ELSE 'space-' || floor({namespaces} * space ^ 2) END AS namespace,
           CASE WHEN place = 8000 THEN '["once", "tag-0"]'
                WHEN tagged < 0.16 THEN format('["tag-%s"]', floor({tags} * tag ^ 2))
                WHEN tagged < 0.33 THEN format('["tag-%s", "night"]', floor({tags} * tag ^ 2)) END::jsonb AS tags,
           CASE WHEN place = 9000 THEN '{{"case": "once", "team": "team-0"}}'
                WHEN described < 0.33 THEN format('{{"team": "team-%s", "tier": "%s"}}', floor({teams} * team), n % 3)
           END::jsonb AS attributes,
           CASE WHEN place BETWEEN 1001 AND 1000 + {children}
                THEN pg_temp.run_id(n - place + 1000,
                                    $2::bigint + ((n - place + 1000 - $1::bigint) * $3::float8)::bigint)
           END AS parent
    FROM drawn
), runs AS (
    INSERT INTO :"schema".workflow_runs
        (id, definition_id, start_request_id, created_at, version, total, done, seq, revision, started_at, finished_at,
         status, reason, error_json, output_json, namespace, name, definition, started_by, tags, attributes,
         context_json, parent_id, parent_node, parent_index, parent_attempt)
    SELECT id, '00000000-0000-4000-8000-000000000000', id, made, 1, 3, 3, 6, 6, made, made + interval '3 seconds',
           status, CASE status WHEN 'Failed' THEN 'NodeFailed' WHEN 'Cancelled' THEN 'CancelRequested' ELSE '' END,
           CASE status WHEN 'Failed' THEN '{{"type": "timeout", "message": "no answer within 30 s"}}' END::json,
           '{{"total": 12.5, "invoice": "i-123456"}}', namespace, '', definition, started_by, tags, attributes,
           format('{{"input": {{"order": "o-%s", "amount": 12.5, "items": ["a", "b", "c"]}}}}', n)::json, parent,
           CASE WHEN parent IS NOT NULL THEN 'each' END, CASE WHEN parent IS NOT NULL THEN place - 1001 END,
           CASE WHEN parent IS NOT NULL THEN 1 END
    FROM new
), endings AS (
    INSERT INTO :"schema".run_endings
        (run_id, finished_at, generation, seq, status, namespace, definition, name, reason, started_by)
    SELECT id, made + interval '3 seconds', 0, 6, status, namespace, definition, '', '', started_by FROM new
)
INSERT INTO :"schema".run_labels (run_id, label, status, origin, labels)
SELECT new.id, label.hash, new.status,
       ('x' || left(md5(new.namespace), 4) || left(md5(new.definition), 6)
        || left(md5(new.started_by), 6))::bit(64)::bigint, known.bits
FROM new
CROSS JOIN LATERAL (
    SELECT array_agg(hash) AS hashes,
           bit_or((1::bigint << (hash & 63)::int) | (1::bigint << (hash >> 6 & 63)::int)
                  | (1::bigint << (hash >> 12 & 63)::int) | (1::bigint << (hash >> 18 & 63)::int)) AS bits
    FROM (
        SELECT ('x' || left(md5('#' || tag), 16))::bit(64)::bigint AS hash
        FROM jsonb_array_elements_text(new.tags) AS tag
        UNION ALL
        SELECT ('x' || left(md5(key || '=' || value), 16))::bit(64)::bigint FROM jsonb_each_text(new.attributes)
    ) AS label
) AS known
CROSS JOIN LATERAL unnest(known.hashes) AS label (hash)
"""
_OPEN: Final = """
WITH new AS MATERIALIZED (
    SELECT pg_temp.run_id(-n, $1::bigint + n) AS id, to_timestamp(($1::bigint + n) / 1000.0) AS made,
           'workflow-' || n % {definitions} AS definition, 'space-' || n % {namespaces} AS namespace,
           'person-' || n % {people} AS started_by
    FROM generate_series(1, $2::bigint) AS n
), runs AS (
    INSERT INTO :"schema".workflow_runs
        (id, definition_id, start_request_id, created_at, version, total, status, namespace, name, definition,
         started_by, context_json)
    SELECT id, '00000000-0000-4000-8000-000000000000', id, made, 1, 3, 'Running', namespace, '', definition, started_by,
           '{{"input": null}}'
    FROM new
)
INSERT INTO :"schema".open_runs (run_id, namespace, definition, name, started_by)
SELECT id, namespace, definition, '', started_by FROM new
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What is made."""

    runs: int
    months: int = 12
    """Whole months before the current one."""
    open: int = 1_000
    """Unfinished runs of the current month."""


@dataclass(frozen=True, slots=True)
class _Part:
    """The runs of one month."""

    month: Month
    first: int
    """Number of its first run."""
    last: int
    gap: float
    """Milliseconds between two runs."""


async def make(settings: Settings, work: Work) -> None:
    """Make the schema, the months and the runs, on an empty database."""
    await migrations.migrate(settings.database)
    kept = RetentionSettings(months_behind=work.months, months_ahead=1)
    await partitions.ensure(Settings(database=settings.database, retention=kept))
    connection = await asyncpg.connect(settings.database.url)
    try:
        await connection.execute("SET synchronous_commit = off")
        await connection.execute("SELECT setseed(0.5)")
        await connection.execute(_FUNCTIONS)
        now = await connection.fetchval("SELECT clock_timestamp()")
        schema = settings.database.schema
        begun = time.monotonic()
        for part in parts(work, Month.of(now)):
            await _month(connection, schema, part)
            say(f"history: {part.last:,} of {work.runs:,} runs, to {part.month}; {time.monotonic() - begun:.0f} s")
        await connection.execute(_text(_OPEN, schema), to_milliseconds(Month.of(now).start), work.open)
        await connection.execute("VACUUM ANALYZE")
        await connection.execute("CHECKPOINT")
    finally:
        await connection.close()


def parts(work: Work, current: Month) -> Iterator[_Part]:
    """The months before the current one, oldest first, with equal numbers of runs."""
    months = month_range(current.plus(-work.months), current.plus(-1))
    for number, month in enumerate(months):
        first, last = work.runs * number // work.months + 1, work.runs * (number + 1) // work.months
        length = to_milliseconds(month.plus(1).start) - to_milliseconds(month.start)
        if last >= first:
            yield _Part(month, first, last, length / (last - first + 1))


async def _month(connection: Connection, schema: str, part: _Part) -> None:
    statement = _text(_RUNS, schema)
    begin = to_milliseconds(part.month.start)
    for first in range(part.first, part.last + 1, CHUNK):
        last = min(first + CHUNK - 1, part.last)
        await connection.execute(statement, part.first, begin, part.gap, first, last)


def _text(statement: str, schema: str) -> str:
    sizes = {"definitions": DEFINITIONS, "people": PEOPLE, "namespaces": NAMESPACES, "tags": TAGS, "teams": TEAMS}
    return substitute(statement.format(rare=RARE, children=CHILDREN, **sizes), {"schema": schema})


def main(arguments: Sequence[str]) -> None:
    """Fill the database of PARTITA_DATABASE_URL, or of ``--database``."""
    parser = argparse.ArgumentParser(prog="python -m bench.history", description="Finished runs over past months.")
    parser.add_argument("--database", default="", metavar="URL", help="instead of PARTITA_DATABASE_URL")
    parser.add_argument("--runs", type=int, default=100_000, metavar="N", help="finished runs (100000)")
    parser.add_argument("--months", type=int, default=12, metavar="N", help="months before this one (12)")
    parser.add_argument("--open", type=int, default=1_000, metavar="N", help="unfinished runs (1000)")
    found = parser.parse_args(arguments)
    settings = Settings(database=DatabaseSettings(url=found.database)) if found.database else Settings.load(os.environ)
    asyncio.run(make(settings, Work(runs=found.runs, months=found.months, open=found.open)))


if __name__ == "__main__":
    main(sys.argv[1:])
