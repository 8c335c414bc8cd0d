-- Lists with several filters: entries of the rarest one, checked for the others (see common.py).
--
-- Each takes the filters in the same way: ended runs between $1 (included) and $2 (excluded), of the statuses $4, with the
-- labels $5, started by $6, in namespace $7, of definition $8; what is null is not asked for. Each list_…_fits looks at the
-- newest $3 entries of one filter, and gives the ids that fit as lists.sql does, how many entries it looked at, and the
-- reach: every id from there on that fits is among them. A check is one lookup, whatever else the other filter has: its
-- index is asked for the run, with the status of the entry, as the entries of one end are written together.

-- name: list_edges
-- How far back the newest $3 entries of each filter reach, going by the status that has most of them; null: to the end.
SELECT wanted.label AS filter, uuid_send(edge.id) AS edge
FROM unnest($5::text[]) AS wanted (label)
LEFT JOIN LATERAL (
    SELECT nth.id
    FROM unnest($4::text[]) AS ended (status)
    CROSS JOIN LATERAL (
        SELECT run_id AS id FROM :"schema".run_labels AS row
        WHERE row.status = ended.status AND row.label = ('x' || left(md5(wanted.label), 16))::bit(64)::bigint
          AND row.run_id >= $1 AND row.run_id < $2
        ORDER BY row.run_id DESC OFFSET $3 - 1 LIMIT 1
    ) AS nth
    ORDER BY nth.id DESC LIMIT 1
) AS edge ON true
UNION ALL
SELECT 'person', (
    SELECT uuid_send(nth.id)
    FROM unnest($4::text[]) AS ended (status)
    CROSS JOIN LATERAL (
        SELECT run_id AS id FROM :"schema".run_endings AS row
        WHERE row.status = ended.status AND row.started_by = $6::text AND row.started_by <> ''
          AND row.run_id >= $1 AND row.run_id < $2
        ORDER BY row.run_id DESC OFFSET $3 - 1 LIMIT 1
    ) AS nth
    ORDER BY nth.id DESC LIMIT 1
)
UNION ALL
SELECT 'place', (
    SELECT uuid_send(nth.id)
    FROM unnest($4::text[]) AS ended (status)
    CROSS JOIN LATERAL (
        SELECT run_id AS id FROM :"schema".run_endings AS row
        WHERE row.status = ended.status AND row.namespace = $7::text AND row.definition = $8::text
          AND row.run_id >= $1 AND row.run_id < $2
        ORDER BY row.run_id DESC OFFSET $3 - 1 LIMIT 1
    ) AS nth
    ORDER BY nth.id DESC LIMIT 1
)

-- name: list_label_fits
-- Entries of the first label. A namespace or a definition alone is looked up in the run's own row.
WITH label AS MATERIALIZED (
    SELECT ('x' || left(md5(text), 16))::bit(64)::bigint AS hash FROM unnest(($5::text[])[2:]) AS text
), first AS MATERIALIZED (
    SELECT run_id AS id, status FROM :"schema".run_labels AS row
    WHERE row.status = ($4::text[])[1] AND row.label = ('x' || left(md5(($5::text[])[1]), 16))::bit(64)::bigint
      AND row.run_id >= $1 AND row.run_id < $2
    ORDER BY row.run_id DESC LIMIT $3
), floor AS MATERIALIZED (
    SELECT greatest($1, (SELECT id FROM first OFFSET $3 - 1 LIMIT 1)) AS id
), rest AS MATERIALIZED (
    SELECT rest.id, rest.status, rest.n
    FROM floor
    CROSS JOIN unnest(($4::text[])[2:]) AS wanted (status)
    CROSS JOIN LATERAL (
        SELECT id, status, row_number() OVER (ORDER BY id DESC) AS n
        FROM (
            SELECT run_id AS id, status FROM :"schema".run_labels AS row
            WHERE row.status = wanted.status AND row.label = ('x' || left(md5(($5::text[])[1]), 16))::bit(64)::bigint
              AND row.run_id >= $1 AND row.run_id >= floor.id AND row.run_id < $2
            ORDER BY row.run_id DESC LIMIT $3
        ) AS newest
    ) AS rest
), reach AS MATERIALIZED (
    SELECT greatest(floor.id, (SELECT id FROM rest WHERE n = $3 ORDER BY id DESC LIMIT 1)) AS id FROM floor
)
SELECT uuid_send(reach.id) AS reach, (SELECT count(*) FROM first) + (SELECT count(*) FROM rest) AS looked_at, (
    SELECT string_agg(uuid_send(entry.id), '')
    FROM (SELECT id, status FROM first UNION ALL SELECT id, status FROM rest) AS entry
    WHERE entry.id >= reach.id
      AND NOT EXISTS (
        SELECT FROM label WHERE (
            SELECT true FROM :"schema".run_labels AS row
            WHERE row.label = label.hash AND row.status = entry.status AND row.run_id = entry.id LIMIT 1
        ) IS NULL)
      AND ($6::text IS NULL OR (
            SELECT true FROM :"schema".run_endings AS row
            WHERE row.started_by = $6 AND row.started_by <> '' AND row.status = entry.status AND row.run_id = entry.id LIMIT 1))
      AND CASE
        WHEN $7::text IS NULL AND $8::text IS NULL THEN true
        WHEN $7 IS NULL OR $8 IS NULL THEN (
            SELECT coalesce(row.namespace = $7, row.definition = $8) FROM :"schema".workflow_runs AS row
            WHERE row.id = entry.id LIMIT 1)
        ELSE (
            SELECT true FROM :"schema".run_endings AS row
            WHERE row.status = entry.status AND row.namespace = $7 AND row.definition = $8 AND row.run_id = entry.id LIMIT 1)
      END
) AS ids
FROM reach

-- name: list_person_fits
-- Entries of the person; their rows have the namespace and the definition.
WITH label AS MATERIALIZED (
    SELECT ('x' || left(md5(text), 16))::bit(64)::bigint AS hash FROM unnest($5::text[]) AS text
), first AS MATERIALIZED (
    SELECT run_id AS id, status, ($7::text IS NULL OR namespace = $7) AND ($8::text IS NULL OR definition = $8) AS placed
    FROM :"schema".run_endings AS row
    WHERE row.status = ($4::text[])[1] AND row.started_by = $6::text AND row.started_by <> ''
      AND row.run_id >= $1 AND row.run_id < $2
    ORDER BY row.run_id DESC LIMIT $3
), floor AS MATERIALIZED (
    SELECT greatest($1, (SELECT id FROM first OFFSET $3 - 1 LIMIT 1)) AS id
), rest AS MATERIALIZED (
    SELECT rest.id, rest.status, rest.placed, rest.n
    FROM floor
    CROSS JOIN unnest(($4::text[])[2:]) AS wanted (status)
    CROSS JOIN LATERAL (
        SELECT id, status, placed, row_number() OVER (ORDER BY id DESC) AS n
        FROM (
            SELECT run_id AS id, status,
                   ($7::text IS NULL OR namespace = $7) AND ($8::text IS NULL OR definition = $8) AS placed
            FROM :"schema".run_endings AS row
            WHERE row.status = wanted.status AND row.started_by = $6 AND row.started_by <> ''
              AND row.run_id >= $1 AND row.run_id >= floor.id AND row.run_id < $2
            ORDER BY row.run_id DESC LIMIT $3
        ) AS newest
    ) AS rest
), reach AS MATERIALIZED (
    SELECT greatest(floor.id, (SELECT id FROM rest WHERE n = $3 ORDER BY id DESC LIMIT 1)) AS id FROM floor
)
SELECT uuid_send(reach.id) AS reach, (SELECT count(*) FROM first) + (SELECT count(*) FROM rest) AS looked_at, (
    SELECT string_agg(uuid_send(entry.id), '')
    FROM (SELECT id, status, placed FROM first UNION ALL SELECT id, status, placed FROM rest) AS entry
    WHERE entry.id >= reach.id AND entry.placed
      AND NOT EXISTS (
        SELECT FROM label WHERE (
            SELECT true FROM :"schema".run_labels AS row
            WHERE row.label = label.hash AND row.status = entry.status AND row.run_id = entry.id LIMIT 1
        ) IS NULL)
) AS ids
FROM reach

-- name: list_place_fits
-- Entries of the definition in the namespace.
WITH label AS MATERIALIZED (
    SELECT ('x' || left(md5(text), 16))::bit(64)::bigint AS hash FROM unnest($5::text[]) AS text
), first AS MATERIALIZED (
    SELECT run_id AS id, status FROM :"schema".run_endings AS row
    WHERE row.status = ($4::text[])[1] AND row.namespace = $7::text AND row.definition = $8::text
      AND row.run_id >= $1 AND row.run_id < $2
    ORDER BY row.run_id DESC LIMIT $3
), floor AS MATERIALIZED (
    SELECT greatest($1, (SELECT id FROM first OFFSET $3 - 1 LIMIT 1)) AS id
), rest AS MATERIALIZED (
    SELECT rest.id, rest.status, rest.n
    FROM floor
    CROSS JOIN unnest(($4::text[])[2:]) AS wanted (status)
    CROSS JOIN LATERAL (
        SELECT id, status, row_number() OVER (ORDER BY id DESC) AS n
        FROM (
            SELECT run_id AS id, status FROM :"schema".run_endings AS row
            WHERE row.status = wanted.status AND row.namespace = $7 AND row.definition = $8
              AND row.run_id >= $1 AND row.run_id >= floor.id AND row.run_id < $2
            ORDER BY row.run_id DESC LIMIT $3
        ) AS newest
    ) AS rest
), reach AS MATERIALIZED (
    SELECT greatest(floor.id, (SELECT id FROM rest WHERE n = $3 ORDER BY id DESC LIMIT 1)) AS id FROM floor
)
SELECT uuid_send(reach.id) AS reach, (SELECT count(*) FROM first) + (SELECT count(*) FROM rest) AS looked_at, (
    SELECT string_agg(uuid_send(entry.id), '')
    FROM (SELECT id, status FROM first UNION ALL SELECT id, status FROM rest) AS entry
    WHERE entry.id >= reach.id
      AND NOT EXISTS (
        SELECT FROM label WHERE (
            SELECT true FROM :"schema".run_labels AS row
            WHERE row.label = label.hash AND row.status = entry.status AND row.run_id = entry.id LIMIT 1
        ) IS NULL)
      AND ($6::text IS NULL OR (
            SELECT true FROM :"schema".run_endings AS row
            WHERE row.started_by = $6 AND row.started_by <> '' AND row.status = entry.status AND row.run_id = entry.id LIMIT 1))
) AS ids
FROM reach

-- name: list_ids_fit
-- Of the runs $1 those that ended with one of the statuses $2, have the labels $3 and were started by $4.
WITH label AS MATERIALIZED (
    SELECT ('x' || left(md5(text), 16))::bit(64)::bigint AS hash FROM unnest($3::text[]) AS text
)
SELECT string_agg(uuid_send(entry.id), '')
FROM unnest($1::uuid[]) AS entry (id)
WHERE NOT EXISTS (
        SELECT FROM label WHERE (
            SELECT true FROM :"schema".run_labels AS row
            WHERE row.label = label.hash AND row.status = ANY ($2::text[]) AND row.run_id = entry.id LIMIT 1
        ) IS NULL)
  AND ($4::text IS NULL OR (
        SELECT true FROM :"schema".run_endings AS row
        WHERE row.started_by = $4 AND row.started_by <> '' AND row.status = ANY ($2) AND row.run_id = entry.id LIMIT 1))
