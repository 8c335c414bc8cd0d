-- Lists of runs: where the ids come from, and the rows that are shown (see lists.py).
--
-- Each list_… that gives ids gives those between $1 (included) and $2 (excluded) that are the newest $3, as one value: 16
-- bytes an id, which compare as ids do and cost both sides a fraction of what as many rows cost. Each reads an index whose
-- columns before the run are known, so that the ids it wants stand side by side; months are read one after the other, from
-- the newest, until there are enough. Statuses ($4) are those of ends. Each is read by itself, the first one to its end,
-- the others no further down than that; who reads the value puts them in order, and leaves out what is too much.

-- name: list_months
-- Months that have ends, newest first. $1 is the schema.
SELECT right(c.relname::text, 6) AS month
FROM pg_inherits i
JOIN pg_class c ON c.oid = i.inhrelid
WHERE i.inhparent = to_regclass(format('%I.run_endings', $1::text))
ORDER BY c.relname DESC

-- name: list_open_runs
-- Unfinished runs of any month that may fit: of those that a process of schema version 2 started, every one may. At most
-- $4 rows are looked at; the last of them is an edge: no id below it is known.
SELECT uuid_send(id) AS id, fits, n = $4 AS edge
FROM (
    SELECT run_id AS id, row_number() OVER (ORDER BY run_id DESC) AS n,
           subflow IS NULL
           AND ($5::text IS NULL OR namespace = $5)
           AND ($6::text IS NULL OR definition = $6)
           AND (started_by IS NULL
                OR ($7::text IS NULL OR started_by = $7)
                AND ($8::jsonb IS NULL OR coalesce(tags @> $8, false))
                AND ($9::jsonb IS NULL OR coalesce(attributes @> $9, false))) AS fits
    FROM (
        SELECT * FROM :"schema".open_runs WHERE run_id >= $1 AND run_id < $2 ORDER BY run_id DESC LIMIT $4
    ) AS looked_at
) AS numbered
WHERE fits OR n = $4
ORDER BY numbered.id DESC
LIMIT $3

-- name: list_all
-- Whatever they are, runs of subflows too.
SELECT string_agg(uuid_send(id), '') FROM (
    SELECT id FROM :"schema".workflow_runs WHERE id >= $1 AND id < $2 ORDER BY id DESC LIMIT $3
) AS found

-- name: list_scan
-- Of the newest $3 runs those of the statuses $4, in namespace $5, of definition $6 (null: of any), as their rows say; and
-- the oldest of all that were looked at, null if they were fewer. Rows are read from the oldest on, since what comes from a
-- disk in this order is fetched ahead.
WITH floor AS MATERIALIZED (
    SELECT (
        SELECT id FROM :"schema".workflow_runs AS row
        WHERE row.id >= $1 AND row.id < $2
        ORDER BY row.id DESC OFFSET $3 - 1 LIMIT 1
    ) AS id
)
SELECT (SELECT uuid_send(id) FROM floor) AS floor, (
    SELECT string_agg(uuid_send(id), '') FROM (
        SELECT id FROM :"schema".workflow_runs AS row
        WHERE row.id >= $1 AND row.id >= (SELECT coalesce(id, $1) FROM floor) AND row.id < $2
          AND subflow IS NULL AND ($4::text[] IS NULL OR status = ANY ($4)) AND ($5::text IS NULL OR namespace = $5)
          AND ($6::text IS NULL OR definition = $6)
        ORDER BY row.id
    ) AS found
) AS ids

-- name: list_children
-- Children of run $4, those of subflows too.
SELECT string_agg(uuid_send(id), '') FROM (
    SELECT id FROM :"schema".workflow_runs WHERE parent_id = $4 AND id >= $1 AND id < $2 ORDER BY id DESC LIMIT $3
) AS found

-- name: list_unlisted
-- Ends that nobody has written down who started the run for.
SELECT string_agg(uuid_send(id), '') FROM (
    SELECT run_id AS id FROM :"schema".run_endings
    WHERE started_by IS NULL AND run_id >= $1 AND run_id < $2 ORDER BY run_id DESC LIMIT $3
) AS found

-- name: list_place
-- Of definition $6 in namespace $5.
WITH first AS MATERIALIZED (
    SELECT run_id AS id FROM :"schema".run_endings AS row
    WHERE row.status = ($4::text[])[1] AND row.namespace = $5 AND row.definition = $6
      AND row.run_id >= $1 AND row.run_id < $2
    ORDER BY row.run_id DESC LIMIT $3
), floor AS MATERIALIZED (
    SELECT greatest($1, (SELECT id FROM first OFFSET $3 - 1 LIMIT 1)) AS id
)
SELECT string_agg(uuid_send(id), '') FROM (
    SELECT id FROM first
    UNION ALL
    SELECT rest.id
    FROM floor
    CROSS JOIN unnest(($4::text[])[2:]) AS wanted (status)
    CROSS JOIN LATERAL (
        SELECT run_id AS id FROM :"schema".run_endings AS row
        WHERE row.status = wanted.status AND row.namespace = $5 AND row.definition = $6
          AND row.run_id >= $1 AND row.run_id >= floor.id AND row.run_id < $2
        ORDER BY row.run_id DESC LIMIT $3
    ) AS rest
) AS found

-- name: list_person
-- Started by $5.
WITH first AS MATERIALIZED (
    SELECT run_id AS id FROM :"schema".run_endings AS row
    WHERE row.status = ($4::text[])[1] AND row.started_by = $5 AND row.started_by <> ''
      AND row.run_id >= $1 AND row.run_id < $2
    ORDER BY row.run_id DESC LIMIT $3
), floor AS MATERIALIZED (
    SELECT greatest($1, (SELECT id FROM first OFFSET $3 - 1 LIMIT 1)) AS id
)
SELECT string_agg(uuid_send(id), '') FROM (
    SELECT id FROM first
    UNION ALL
    SELECT rest.id
    FROM floor
    CROSS JOIN unnest(($4::text[])[2:]) AS wanted (status)
    CROSS JOIN LATERAL (
        SELECT run_id AS id FROM :"schema".run_endings AS row
        WHERE row.status = wanted.status AND row.started_by = $5 AND row.started_by <> ''
          AND row.run_id >= $1 AND row.run_id >= floor.id AND row.run_id < $2
        ORDER BY row.run_id DESC LIMIT $3
    ) AS rest
) AS found

-- name: list_label
-- With the tag #tag or the attribute name=value.
WITH first AS MATERIALIZED (
    SELECT run_id AS id FROM :"schema".run_labels AS row
    WHERE row.status = ($4::text[])[1] AND row.label = ('x' || left(md5($5::text), 16))::bit(64)::bigint
      AND row.run_id >= $1 AND row.run_id < $2
    ORDER BY row.run_id DESC LIMIT $3
), floor AS MATERIALIZED (
    SELECT greatest($1, (SELECT id FROM first OFFSET $3 - 1 LIMIT 1)) AS id
)
SELECT string_agg(uuid_send(id), '') FROM (
    SELECT id FROM first
    UNION ALL
    SELECT rest.id
    FROM floor
    CROSS JOIN unnest(($4::text[])[2:]) AS wanted (status)
    CROSS JOIN LATERAL (
        SELECT run_id AS id FROM :"schema".run_labels AS row
        WHERE row.status = wanted.status AND row.label = ('x' || left(md5($5::text), 16))::bit(64)::bigint
          AND row.run_id >= $1 AND row.run_id >= floor.id AND row.run_id < $2
        ORDER BY row.run_id DESC LIMIT $3
    ) AS rest
) AS found

-- name: list_namespace
-- Of namespace $5, in those of the months from $6 to $7 that the range touches, the newest first. In each, its definitions
-- are walked through from one entry of the index to the next; then the newest runs are read of those that have the newest.
-- Of a window of more than 100, the one that seems to have most, going by its eighth, is read first, and the others no
-- further down.
SELECT string_agg(uuid_send(id), '') FROM (
    SELECT found.id
    FROM (
        SELECT * FROM unnest($6::uuid[], $7::uuid[]) AS month (lower, upper) WHERE month.lower < $2 AND month.upper > $1
    ) AS month
    CROSS JOIN LATERAL (
        WITH RECURSIVE place AS (
            SELECT wanted.status, first.definition
            FROM unnest($4::text[]) AS wanted (status)
            CROSS JOIN LATERAL (
                SELECT definition FROM :"schema".run_endings AS row
                WHERE row.status = wanted.status AND row.namespace = $5 AND row.run_id >= month.lower AND row.run_id < month.upper
                ORDER BY row.definition LIMIT 1
            ) AS first
            UNION ALL
            SELECT place.status, next.definition
            FROM place
            CROSS JOIN LATERAL (
                SELECT definition FROM :"schema".run_endings AS row
                WHERE row.status = place.status AND row.namespace = $5 AND row.definition > place.definition
                  AND row.run_id >= month.lower AND row.run_id < month.upper
                ORDER BY row.definition LIMIT 1
            ) AS next
        ), head AS (
            SELECT place.status, place.definition, newest.run_id
            FROM place
            CROSS JOIN LATERAL (
                SELECT run_id FROM :"schema".run_endings AS row
                WHERE row.status = place.status AND row.namespace = $5 AND row.definition = place.definition
                  AND row.run_id >= month.lower AND row.run_id < month.upper AND row.run_id >= $1 AND row.run_id < $2
                ORDER BY row.run_id DESC LIMIT 1
            ) AS newest
            ORDER BY newest.run_id DESC
            LIMIT $3
        ), densest AS (
            SELECT head.status, head.definition
            FROM (SELECT * FROM head WHERE $3 > 100 ORDER BY run_id DESC LIMIT 60) AS head
            CROSS JOIN LATERAL (
                SELECT run_id FROM :"schema".run_endings AS row
                WHERE row.status = head.status AND row.namespace = $5 AND row.definition = head.definition
                  AND row.run_id >= month.lower AND row.run_id < month.upper AND row.run_id >= $1 AND row.run_id < $2
                ORDER BY row.run_id DESC OFFSET 7 LIMIT 1
            ) AS eighth
            ORDER BY eighth.run_id DESC
            LIMIT 1
        ), floor AS (
            SELECT greatest($1, (SELECT run_id FROM head ORDER BY run_id DESC OFFSET $3 - 1 LIMIT 1), (
                SELECT last.run_id
                FROM densest AS head
                CROSS JOIN LATERAL (
                    SELECT run_id FROM :"schema".run_endings AS row
                    WHERE row.status = head.status AND row.namespace = $5 AND row.definition = head.definition
                      AND row.run_id >= month.lower AND row.run_id < month.upper AND row.run_id >= $1 AND row.run_id < $2
                    ORDER BY row.run_id DESC OFFSET $3 - 1 LIMIT 1
                ) AS last
            )) AS id
        )
        SELECT ending.id
        FROM floor
        CROSS JOIN head
        CROSS JOIN LATERAL (
            SELECT run_id AS id FROM :"schema".run_endings AS row
            WHERE row.status = head.status AND row.namespace = $5 AND row.definition = head.definition
              AND row.run_id >= month.lower AND row.run_id < month.upper AND row.run_id >= $1 AND row.run_id < $2
              AND row.run_id >= floor.id
            ORDER BY row.run_id DESC LIMIT $3
        ) AS ending
        ORDER BY ending.id DESC
        LIMIT $3
    ) AS found
    LIMIT $3
) AS newest

-- name: list_definition
-- Of definition $5 in every namespace, in the same way.
SELECT string_agg(uuid_send(id), '') FROM (
    SELECT found.id
    FROM (
        SELECT * FROM unnest($6::uuid[], $7::uuid[]) AS month (lower, upper) WHERE month.lower < $2 AND month.upper > $1
    ) AS month
    CROSS JOIN LATERAL (
        WITH RECURSIVE place AS (
            SELECT wanted.status, first.namespace
            FROM unnest($4::text[]) AS wanted (status)
            CROSS JOIN LATERAL (
                SELECT namespace FROM :"schema".run_endings AS row
                WHERE row.status = wanted.status AND row.run_id >= month.lower AND row.run_id < month.upper
                ORDER BY row.namespace LIMIT 1
            ) AS first
            UNION ALL
            SELECT place.status, next.namespace
            FROM place
            CROSS JOIN LATERAL (
                SELECT namespace FROM :"schema".run_endings AS row
                WHERE row.status = place.status AND row.namespace > place.namespace
                  AND row.run_id >= month.lower AND row.run_id < month.upper
                ORDER BY row.namespace LIMIT 1
            ) AS next
        ), head AS (
            SELECT place.status, place.namespace, newest.run_id
            FROM place
            CROSS JOIN LATERAL (
                SELECT run_id FROM :"schema".run_endings AS row
                WHERE row.status = place.status AND row.definition = $5 AND row.namespace = place.namespace
                  AND row.run_id >= month.lower AND row.run_id < month.upper AND row.run_id >= $1 AND row.run_id < $2
                ORDER BY row.run_id DESC LIMIT 1
            ) AS newest
            ORDER BY newest.run_id DESC
            LIMIT $3
        ), densest AS (
            SELECT head.status, head.namespace
            FROM (SELECT * FROM head WHERE $3 > 100 ORDER BY run_id DESC LIMIT 60) AS head
            CROSS JOIN LATERAL (
                SELECT run_id FROM :"schema".run_endings AS row
                WHERE row.status = head.status AND row.definition = $5 AND row.namespace = head.namespace
                  AND row.run_id >= month.lower AND row.run_id < month.upper AND row.run_id >= $1 AND row.run_id < $2
                ORDER BY row.run_id DESC OFFSET 7 LIMIT 1
            ) AS eighth
            ORDER BY eighth.run_id DESC
            LIMIT 1
        ), floor AS (
            SELECT greatest($1, (SELECT run_id FROM head ORDER BY run_id DESC OFFSET $3 - 1 LIMIT 1), (
                SELECT last.run_id
                FROM densest AS head
                CROSS JOIN LATERAL (
                    SELECT run_id FROM :"schema".run_endings AS row
                    WHERE row.status = head.status AND row.definition = $5 AND row.namespace = head.namespace
                      AND row.run_id >= month.lower AND row.run_id < month.upper AND row.run_id >= $1 AND row.run_id < $2
                    ORDER BY row.run_id DESC OFFSET $3 - 1 LIMIT 1
                ) AS last
            )) AS id
        )
        SELECT ending.id
        FROM floor
        CROSS JOIN head
        CROSS JOIN LATERAL (
            SELECT run_id AS id FROM :"schema".run_endings AS row
            WHERE row.status = head.status AND row.definition = $5 AND row.namespace = head.namespace
              AND row.run_id >= month.lower AND row.run_id < month.upper AND row.run_id >= $1 AND row.run_id < $2
              AND row.run_id >= floor.id
            ORDER BY row.run_id DESC LIMIT $3
        ) AS ending
        ORDER BY ending.id DESC
        LIMIT $3
    ) AS found
    LIMIT $3
) AS newest

-- name: list_ended
-- Of every definition, in the same way; the months are $5 to $6.
SELECT string_agg(uuid_send(id), '') FROM (
    SELECT found.id
    FROM (
        SELECT * FROM unnest($5::uuid[], $6::uuid[]) AS month (lower, upper) WHERE month.lower < $2 AND month.upper > $1
    ) AS month
    CROSS JOIN LATERAL (
        WITH RECURSIVE place AS (
            SELECT wanted.status, first.namespace, first.definition
            FROM unnest($4::text[]) AS wanted (status)
            CROSS JOIN LATERAL (
                SELECT namespace, definition FROM :"schema".run_endings AS row
                WHERE row.status = wanted.status AND row.run_id >= month.lower AND row.run_id < month.upper
                ORDER BY row.namespace, row.definition LIMIT 1
            ) AS first
            UNION ALL
            SELECT place.status, next.namespace, next.definition
            FROM place
            CROSS JOIN LATERAL (
                SELECT namespace, definition FROM :"schema".run_endings AS row
                WHERE row.status = place.status AND (row.namespace, row.definition) > (place.namespace, place.definition)
                  AND row.run_id >= month.lower AND row.run_id < month.upper
                ORDER BY row.namespace, row.definition LIMIT 1
            ) AS next
        ), head AS (
            SELECT place.status, place.namespace, place.definition, newest.run_id
            FROM place
            CROSS JOIN LATERAL (
                SELECT run_id FROM :"schema".run_endings AS row
                WHERE row.status = place.status AND row.namespace = place.namespace AND row.definition = place.definition
                  AND row.run_id >= month.lower AND row.run_id < month.upper AND row.run_id >= $1 AND row.run_id < $2
                ORDER BY row.run_id DESC LIMIT 1
            ) AS newest
            ORDER BY newest.run_id DESC
            LIMIT $3
        ), densest AS (
            SELECT head.status, head.namespace, head.definition
            FROM (SELECT * FROM head WHERE $3 > 100 ORDER BY run_id DESC LIMIT 60) AS head
            CROSS JOIN LATERAL (
                SELECT run_id FROM :"schema".run_endings AS row
                WHERE row.status = head.status AND row.namespace = head.namespace AND row.definition = head.definition
                  AND row.run_id >= month.lower AND row.run_id < month.upper AND row.run_id >= $1 AND row.run_id < $2
                ORDER BY row.run_id DESC OFFSET 7 LIMIT 1
            ) AS eighth
            ORDER BY eighth.run_id DESC
            LIMIT 1
        ), floor AS (
            SELECT greatest($1, (SELECT run_id FROM head ORDER BY run_id DESC OFFSET $3 - 1 LIMIT 1), (
                SELECT last.run_id
                FROM densest AS head
                CROSS JOIN LATERAL (
                    SELECT run_id FROM :"schema".run_endings AS row
                    WHERE row.status = head.status AND row.namespace = head.namespace AND row.definition = head.definition
                      AND row.run_id >= month.lower AND row.run_id < month.upper AND row.run_id >= $1 AND row.run_id < $2
                    ORDER BY row.run_id DESC OFFSET $3 - 1 LIMIT 1
                ) AS last
            )) AS id
        )
        SELECT ending.id
        FROM floor
        CROSS JOIN head
        CROSS JOIN LATERAL (
            SELECT run_id AS id FROM :"schema".run_endings AS row
            WHERE row.status = head.status AND row.namespace = head.namespace AND row.definition = head.definition
              AND row.run_id >= month.lower AND row.run_id < month.upper AND row.run_id >= $1 AND row.run_id < $2
              AND row.run_id >= floor.id
            ORDER BY row.run_id DESC LIMIT $3
        ) AS ending
        ORDER BY ending.id DESC
        LIMIT $3
    ) AS found
    LIMIT $3
) AS newest

-- name: list_rows
-- Those runs of $1 that the filter takes, newest first, each read in its month; a filter that is null takes every run, but
-- without a parent ($8) no run of a subflow. Payloads are left where they are, long errors too: their reason is shown.
SELECT run.id, namespace, name, definition, version, status, stage, generation, revision, cr_generation, reason, priority,
       active, done, total, created_at, started_at, finished_at, deadline_at, started_by, cr_uid, idempotency_key, tags,
       attributes, CASE WHEN pg_column_size(error_json) <= 1000 THEN error_json END AS error_json,
       NULL::json AS output_json, NULL::json AS context_json, parent_id, parent_node, parent_index, parent_attempt,
       subflow, depth
FROM unnest($1::uuid[]) AS wanted (id)
CROSS JOIN LATERAL (SELECT * FROM :"schema".workflow_runs AS row WHERE row.id = wanted.id LIMIT 1) AS run
WHERE ($2::text IS NULL OR namespace = $2)
  AND ($3::text IS NULL OR definition = $3)
  AND ($4::text[] IS NULL OR status = ANY ($4))
  AND ($5::jsonb IS NULL OR tags @> $5)
  AND ($6::jsonb IS NULL OR attributes @> $6)
  AND ($7::text IS NULL OR started_by = $7)
  AND CASE WHEN $8::uuid IS NULL THEN subflow IS NULL ELSE parent_id = $8 END
ORDER BY run.id DESC

-- name: list_count
-- How many of these runs the filter takes.
SELECT count(*)
FROM unnest($1::uuid[]) AS wanted (id)
CROSS JOIN LATERAL (SELECT * FROM :"schema".workflow_runs AS row WHERE row.id = wanted.id LIMIT 1) AS run
WHERE ($2::text IS NULL OR namespace = $2)
  AND ($3::text IS NULL OR definition = $3)
  AND ($4::text[] IS NULL OR status = ANY ($4))
  AND ($5::jsonb IS NULL OR tags @> $5)
  AND ($6::jsonb IS NULL OR attributes @> $6)
  AND ($7::text IS NULL OR started_by = $7)
  AND CASE WHEN $8::uuid IS NULL THEN subflow IS NULL ELSE parent_id = $8 END

-- name: list_fill
-- Ends from before between $1 and $2, at most $3, newest first: who started the runs, and their labels. $1 and $2 are of
-- one month. Returns their ids.
WITH old AS MATERIALIZED (
    SELECT ending.status, ending.namespace, ending.definition, ending.run_id, ending.generation,
           coalesce(run.started_by, '') AS started_by, run.tags, run.attributes
    FROM (
        SELECT * FROM :"schema".run_endings
        WHERE started_by IS NULL AND run_id >= $1 AND run_id < $2 ORDER BY run_id DESC LIMIT $3
    ) AS ending
    LEFT JOIN LATERAL (
        SELECT started_by, tags, attributes FROM :"schema".workflow_runs AS row
        WHERE row.id = ending.run_id AND row.id >= $1 AND row.id < $2
        LIMIT 1
    ) AS run ON true
), labelled AS (
    INSERT INTO :"schema".run_labels (run_id, label, status, origin, labels)
    SELECT old.run_id, label.hash, old.status,
           ('x' || left(md5(old.namespace), 4) || left(md5(old.definition), 6) || left(md5(old.started_by), 6))::bit(64)::bigint,
           known.bits
    FROM old
    CROSS JOIN LATERAL (
        SELECT array_agg(hash) AS hashes,
               bit_or((1::bigint << (hash & 63)::int) | (1::bigint << (hash >> 6 & 63)::int)
                      | (1::bigint << (hash >> 12 & 63)::int) | (1::bigint << (hash >> 18 & 63)::int)) AS bits
        FROM (
            SELECT ('x' || left(md5('#' || tag), 16))::bit(64)::bigint AS hash
            FROM jsonb_array_elements_text(old.tags) AS tag
            UNION ALL
            SELECT ('x' || left(md5(key || '=' || value), 16))::bit(64)::bigint FROM jsonb_each_text(old.attributes)
        ) AS label
    ) AS known
    CROSS JOIN LATERAL unnest(known.hashes) AS label (hash)
)
UPDATE :"schema".run_endings AS ending SET started_by = old.started_by
FROM old
WHERE ending.status = old.status AND ending.namespace = old.namespace AND ending.definition = old.definition
  AND ending.run_id = old.run_id AND ending.generation = old.generation AND ending.run_id >= $1 AND ending.run_id < $2
RETURNING ending.run_id AS id

-- name: list_fill_open
-- The same for at most $1 unfinished runs.
WITH old AS MATERIALIZED (
    SELECT run.id, run.started_by, run.tags, run.attributes
    FROM (SELECT run_id FROM :"schema".open_runs WHERE started_by IS NULL ORDER BY run_id LIMIT $1) AS open
    CROSS JOIN LATERAL (
        SELECT id, started_by, tags, attributes FROM :"schema".workflow_runs AS row WHERE row.id = open.run_id LIMIT 1
    ) AS run
)
UPDATE :"schema".open_runs AS open
SET started_by = old.started_by, tags = old.tags, attributes = old.attributes
FROM old WHERE open.run_id = old.id
RETURNING open.run_id AS id

-- name: list_unknown
-- The newest run whose labels do not say what else lists ask for.
SELECT run_id FROM :"schema".run_labels AS row WHERE row.origin IS NULL ORDER BY row.run_id DESC LIMIT 1

-- name: list_fill_labels
-- Labels from before schema version 4 between $1 and $2, of about $3, newest first: what else lists ask for. $1 and $2 are of
-- one month. Returns the runs, once for each label.
WITH old AS MATERIALIZED (
    SELECT run_id FROM (
        SELECT run_id FROM :"schema".run_labels AS row
        WHERE row.origin IS NULL AND row.run_id >= $1 AND row.run_id < $2 ORDER BY row.run_id DESC LIMIT $3
    ) AS newest
    GROUP BY run_id
), known AS MATERIALIZED (
    SELECT old.run_id,
           ('x' || left(md5(coalesce(run.namespace, '')), 4) || left(md5(coalesce(run.definition, '')), 6)
            || left(md5(coalesce(run.started_by, '')), 6))::bit(64)::bigint AS origin, (
        SELECT coalesce(bit_or((1::bigint << (hash & 63)::int) | (1::bigint << (hash >> 6 & 63)::int)
                               | (1::bigint << (hash >> 12 & 63)::int) | (1::bigint << (hash >> 18 & 63)::int)), 0)
        FROM (
            SELECT ('x' || left(md5('#' || tag), 16))::bit(64)::bigint AS hash
            FROM jsonb_array_elements_text(run.tags) AS tag
            UNION ALL
            SELECT ('x' || left(md5(key || '=' || value), 16))::bit(64)::bigint FROM jsonb_each_text(run.attributes)
        ) AS label
    ) AS labels
    FROM old
    LEFT JOIN LATERAL (
        SELECT namespace, definition, started_by, tags, attributes FROM :"schema".workflow_runs AS row
        WHERE row.id = old.run_id AND row.id >= $1 AND row.id < $2
        LIMIT 1
    ) AS run ON true
)
UPDATE :"schema".run_labels AS label SET origin = known.origin, labels = known.labels
FROM known
WHERE label.run_id = known.run_id AND label.origin IS NULL AND label.run_id >= $1 AND label.run_id < $2
RETURNING label.run_id AS id
