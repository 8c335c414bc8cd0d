-- Lists with several filters: entries of one filter, checked for the others (see common.py).
--
-- Each takes the filters in the same way: ended runs between $1 (included) and $2 (excluded), of the statuses $4, with the
-- labels $5, started by $6, in namespace $7, of definition $8; what is null is not asked for. Each list_…_fits looks at the
-- newest $3 entries of each status of one filter, no further down than the first of them to reach so many, and gives the
-- newest $9 that may fit as lists.sql does, whether it is unsure of any, and the reach: every id from there on that fits is
-- among them. The reach is found first, so that entries are compared where they are read, and those that do not fit cost no
-- more. What they are unsure of is looked up by list_ids_fit: plans of 25 months take a while to begin, the larger the longer.

-- name: list_newest
-- The newest $3 entries of each filter, of the first status alone.
SELECT wanted.label AS filter, (
    SELECT string_agg(uuid_send(run_id), '') FROM (
        SELECT run_id FROM :"schema".run_labels AS row
        WHERE row.status = ($4::text[])[1] AND row.label = ('x' || left(md5(wanted.label), 16))::bit(64)::bigint
          AND row.run_id >= $1 AND row.run_id < $2
        ORDER BY row.run_id DESC LIMIT $3
    ) AS newest
) AS ids
FROM unnest($5::text[]) AS wanted (label)
UNION ALL
SELECT 'person', (
    SELECT string_agg(uuid_send(run_id), '') FROM (
        SELECT run_id FROM :"schema".run_endings AS row
        WHERE row.status = ($4::text[])[1] AND row.started_by = $6::text AND row.started_by <> ''
          AND row.run_id >= $1 AND row.run_id < $2
        ORDER BY row.run_id DESC LIMIT $3
    ) AS newest
) AS ids
WHERE $6 IS NOT NULL
UNION ALL
SELECT 'place', (
    SELECT string_agg(uuid_send(run_id), '') FROM (
        SELECT run_id FROM :"schema".run_endings AS row
        WHERE row.status = ($4::text[])[1] AND row.namespace = $7::text AND row.definition = $8::text
          AND row.run_id >= $1 AND row.run_id < $2
        ORDER BY row.run_id DESC LIMIT $3
    ) AS newest
) AS ids
WHERE $7 IS NOT NULL AND $8 IS NOT NULL

-- name: list_label_fits
-- Entries of the first label, which say by themselves what else the run has: unsure of those from before schema version 4,
-- and of the other labels of runs with so many that their bits say little.
WITH asked AS MATERIALIZED (
    SELECT ('x' || CASE WHEN $7::text IS NULL THEN '0000' ELSE 'ffff' END
            || CASE WHEN $8::text IS NULL THEN '000000' ELSE 'ffffff' END
            || CASE WHEN $6::text IS NULL THEN '000000' ELSE 'ffffff' END)::bit(64)::bigint AS mask,
           ('x' || coalesce(left(md5($7), 4), '0000') || coalesce(left(md5($8), 6), '000000')
            || coalesce(left(md5($6), 6), '000000'))::bit(64)::bigint AS origin,
           coalesce(bit_or((1::bigint << (hash & 63)::int) | (1::bigint << (hash >> 6 & 63)::int)
                           | (1::bigint << (hash >> 12 & 63)::int) | (1::bigint << (hash >> 18 & 63)::int)), 0) AS labels
    FROM (SELECT ('x' || left(md5(text), 16))::bit(64)::bigint AS hash FROM unnest(($5::text[])[2:]) AS text) AS label
), floor AS MATERIALIZED (
    SELECT greatest($1, (
        SELECT run_id FROM :"schema".run_labels AS row
        WHERE row.status = ($4::text[])[1] AND row.label = ('x' || left(md5(($5::text[])[1]), 16))::bit(64)::bigint
          AND row.run_id >= $1 AND row.run_id < $2
        ORDER BY row.run_id DESC OFFSET $3 - 1 LIMIT 1
    )) AS id
), reach AS MATERIALIZED (
    SELECT greatest(floor.id, (
        SELECT last.run_id
        FROM unnest(($4::text[])[2:]) AS ended (status)
        CROSS JOIN LATERAL (
            SELECT run_id FROM :"schema".run_labels AS row
            WHERE row.status = ended.status AND row.label = ('x' || left(md5(($5::text[])[1]), 16))::bit(64)::bigint
              AND row.run_id >= $1 AND row.run_id >= floor.id AND row.run_id < $2
            ORDER BY row.run_id DESC OFFSET $3 - 1 LIMIT 1
        ) AS last
        ORDER BY last.run_id DESC LIMIT 1
    )) AS id
    FROM floor
), fitting AS MATERIALIZED (
    SELECT entry.*
    FROM reach
    CROSS JOIN unnest($4::text[]) AS ended (status)
    CROSS JOIN LATERAL (
        SELECT run_id AS id,
               origin IS NULL OR ((SELECT labels FROM asked) <> 0 AND bit_count(labels::bit(64)) > 24) AS unsure
        FROM :"schema".run_labels AS row
        WHERE row.status = ended.status AND row.label = ('x' || left(md5(($5::text[])[1]), 16))::bit(64)::bigint
          AND row.run_id >= $1 AND row.run_id >= reach.id AND row.run_id < $2
          AND coalesce(row.origin & (SELECT mask FROM asked) = (SELECT origin FROM asked), true)
          AND coalesce(row.labels & (SELECT labels FROM asked) = (SELECT labels FROM asked), true)
        ORDER BY row.run_id DESC LIMIT $9
    ) AS entry
    ORDER BY entry.id DESC LIMIT $9
)
SELECT uuid_send(coalesce((SELECT id FROM fitting OFFSET $9 - 1 LIMIT 1), reach.id)) AS reach, found.*
FROM reach
CROSS JOIN (SELECT string_agg(uuid_send(id), '') AS ids, coalesce(bool_or(unsure), false) AS unsure FROM fitting) AS found

-- name: list_person_fits
-- Entries of the person, which have the namespace and the definition: unsure of labels.
WITH floor AS MATERIALIZED (
    SELECT greatest($1, (
        SELECT run_id FROM :"schema".run_endings AS row
        WHERE row.status = ($4::text[])[1] AND row.started_by = $6::text AND row.started_by <> ''
          AND row.run_id >= $1 AND row.run_id < $2
        ORDER BY row.run_id DESC OFFSET $3 - 1 LIMIT 1
    )) AS id
), reach AS MATERIALIZED (
    SELECT greatest(floor.id, (
        SELECT last.run_id
        FROM unnest(($4::text[])[2:]) AS ended (status)
        CROSS JOIN LATERAL (
            SELECT run_id FROM :"schema".run_endings AS row
            WHERE row.status = ended.status AND row.started_by = $6::text AND row.started_by <> ''
              AND row.run_id >= $1 AND row.run_id >= floor.id AND row.run_id < $2
            ORDER BY row.run_id DESC OFFSET $3 - 1 LIMIT 1
        ) AS last
        ORDER BY last.run_id DESC LIMIT 1
    )) AS id
    FROM floor
), fitting AS MATERIALIZED (
    SELECT entry.*
    FROM reach
    CROSS JOIN unnest($4::text[]) AS ended (status)
    CROSS JOIN LATERAL (
        SELECT run_id AS id, cardinality($5::text[]) > 0 AS unsure FROM :"schema".run_endings AS row
        WHERE row.status = ended.status AND row.started_by = $6::text AND row.started_by <> ''
          AND row.run_id >= $1 AND row.run_id >= reach.id AND row.run_id < $2
          AND ($7::text IS NULL OR row.namespace = $7) AND ($8::text IS NULL OR row.definition = $8)
        ORDER BY row.run_id DESC LIMIT $9
    ) AS entry
    ORDER BY entry.id DESC LIMIT $9
)
SELECT uuid_send(coalesce((SELECT id FROM fitting OFFSET $9 - 1 LIMIT 1), reach.id)) AS reach, found.*
FROM reach
CROSS JOIN (SELECT string_agg(uuid_send(id), '') AS ids, coalesce(bool_or(unsure), false) AS unsure FROM fitting) AS found

-- name: list_place_fits
-- Entries of the definition in the namespace: unsure of all else.
WITH floor AS MATERIALIZED (
    SELECT greatest($1, (
        SELECT run_id FROM :"schema".run_endings AS row
        WHERE row.status = ($4::text[])[1] AND row.namespace = $7::text AND row.definition = $8::text
          AND row.run_id >= $1 AND row.run_id < $2
        ORDER BY row.run_id DESC OFFSET $3 - 1 LIMIT 1
    )) AS id
), reach AS MATERIALIZED (
    SELECT greatest(floor.id, (
        SELECT last.run_id
        FROM unnest(($4::text[])[2:]) AS ended (status)
        CROSS JOIN LATERAL (
            SELECT run_id FROM :"schema".run_endings AS row
            WHERE row.status = ended.status AND row.namespace = $7::text AND row.definition = $8::text
              AND row.run_id >= $1 AND row.run_id >= floor.id AND row.run_id < $2
            ORDER BY row.run_id DESC OFFSET $3 - 1 LIMIT 1
        ) AS last
        ORDER BY last.run_id DESC LIMIT 1
    )) AS id
    FROM floor
), fitting AS MATERIALIZED (
    SELECT entry.*
    FROM reach
    CROSS JOIN unnest($4::text[]) AS ended (status)
    CROSS JOIN LATERAL (
        SELECT run_id AS id, cardinality($5::text[]) > 0 OR $6::text IS NOT NULL AS unsure FROM :"schema".run_endings AS row
        WHERE row.status = ended.status AND row.namespace = $7::text AND row.definition = $8::text
          AND row.run_id >= $1 AND row.run_id >= reach.id AND row.run_id < $2
        ORDER BY row.run_id DESC LIMIT $9
    ) AS entry
    ORDER BY entry.id DESC LIMIT $9
)
SELECT uuid_send(coalesce((SELECT id FROM fitting OFFSET $9 - 1 LIMIT 1), reach.id)) AS reach, found.*
FROM reach
CROSS JOIN (SELECT string_agg(uuid_send(id), '') AS ids, coalesce(bool_or(unsure), false) AS unsure FROM fitting) AS found

-- name: list_ids_fit
-- Of the runs $1 those that ended with one of the statuses $2, have the labels $3, were started by $4, in namespace $5, of
-- definition $6. To look something up is one lookup, whatever else a filter has, as its index is asked for the run.
WITH label AS MATERIALIZED (
    SELECT ('x' || left(md5(text), 16))::bit(64)::bigint AS hash FROM unnest($3::text[]) AS text
)
SELECT string_agg(uuid_send(entry.id), '')
FROM unnest($1::uuid[]) AS entry (id)
WHERE CASE
    WHEN EXISTS (
        SELECT FROM label WHERE (
            SELECT true FROM :"schema".run_labels AS row
            WHERE row.label = label.hash AND row.status = ANY ($2::text[]) AND row.run_id = entry.id LIMIT 1
        ) IS NULL) THEN false
    WHEN $4::text IS NOT NULL AND (
        SELECT true FROM :"schema".run_endings AS row
        WHERE row.started_by = $4 AND row.started_by <> '' AND row.status = ANY ($2) AND row.run_id = entry.id LIMIT 1
    ) IS NULL THEN false
    WHEN $5::text IS NULL AND $6::text IS NULL THEN true
    WHEN $5 IS NULL OR $6 IS NULL THEN (
        SELECT coalesce(row.namespace = $5, row.definition = $6) FROM :"schema".workflow_runs AS row
        WHERE row.id = entry.id LIMIT 1)
    ELSE (
        SELECT true FROM :"schema".run_endings AS row
        WHERE row.status = ANY ($2) AND row.namespace = $5 AND row.definition = $6 AND row.run_id = entry.id LIMIT 1)
  END
