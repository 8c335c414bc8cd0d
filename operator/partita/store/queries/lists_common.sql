-- Lists with several filters: entries of the rarest one, checked for the others (see common.py).
--
-- Each takes the filters in the same way: ended runs between $1 (included) and $2 (excluded), of the statuses $4, with the
-- labels $5, started by $6, in namespace $7, of definition $8; what is null is not asked for. Each list_…_fits looks at the
-- newest $3 entries of one filter until $9 fit, and gives the ids of these as lists.sql does, how many entries it looked
-- at, and the reach: every id from there on that fits is among them. A check is one lookup, whatever else the other filter has: its
-- index is asked for the run, with the status of the entry, as the entries of one end are written together.

-- name: list_newest
-- The newest $3 entries of each filter, of each status: ids as lists.sql gives them.
SELECT wanted.label AS filter, (
    SELECT string_agg(uuid_send(newest.id), '')
    FROM unnest($4::text[]) AS ended (status)
    CROSS JOIN LATERAL (
        SELECT run_id AS id FROM :"schema".run_labels AS row
        WHERE row.status = ended.status AND row.label = ('x' || left(md5(wanted.label), 16))::bit(64)::bigint
          AND row.run_id >= $1 AND row.run_id < $2
        ORDER BY row.run_id DESC LIMIT $3
    ) AS newest
) AS ids
FROM unnest($5::text[]) AS wanted (label)
UNION ALL
SELECT 'person', (
    SELECT string_agg(uuid_send(newest.id), '')
    FROM unnest($4::text[]) AS ended (status)
    CROSS JOIN LATERAL (
        SELECT run_id AS id FROM :"schema".run_endings AS row
        WHERE row.status = ended.status AND row.started_by = $6::text AND row.started_by <> ''
          AND row.run_id >= $1 AND row.run_id < $2
        ORDER BY row.run_id DESC LIMIT $3
    ) AS newest
)
WHERE $6 IS NOT NULL
UNION ALL
SELECT 'place', (
    SELECT string_agg(uuid_send(newest.id), '')
    FROM unnest($4::text[]) AS ended (status)
    CROSS JOIN LATERAL (
        SELECT run_id AS id FROM :"schema".run_endings AS row
        WHERE row.status = ended.status AND row.namespace = $7::text AND row.definition = $8::text
          AND row.run_id >= $1 AND row.run_id < $2
        ORDER BY row.run_id DESC LIMIT $3
    ) AS newest
)
WHERE $7 IS NOT NULL AND $8 IS NOT NULL

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
), near AS MATERIALIZED (
    SELECT near.id, near.status
    FROM reach
    CROSS JOIN unnest($4::text[]) AS wanted (status)
    CROSS JOIN LATERAL (
        SELECT run_id AS id, status FROM :"schema".run_labels AS row
        WHERE row.status = wanted.status AND row.label = ('x' || left(md5($10::text), 16))::bit(64)::bigint
          AND row.run_id >= reach.id AND row.run_id < $2
        ORDER BY row.run_id DESC LIMIT 10 * $3
    ) AS near
    UNION ALL
    SELECT near.id, near.status
    FROM reach
    CROSS JOIN unnest($4::text[]) AS wanted (status)
    CROSS JOIN LATERAL (
        SELECT run_id AS id, status FROM :"schema".run_endings AS row
        WHERE row.status = wanted.status AND row.started_by = $11::text AND row.started_by <> ''
          AND row.run_id >= reach.id AND row.run_id < $2
        ORDER BY row.run_id DESC LIMIT 10 * $3
    ) AS near
    LIMIT 10 * $3
), crossed AS MATERIALIZED (
    SELECT coalesce($10, $11) IS NOT NULL AND count(*) < 10 * $3 AS so FROM near
), looked_at AS MATERIALIZED (
    SELECT each.*
    FROM reach
    JOIN (SELECT id, status FROM first UNION ALL SELECT id, status FROM rest) AS each ON each.id >= reach.id
), entry AS MATERIALIZED (
    SELECT id, status FROM looked_at WHERE NOT (SELECT so FROM crossed)
    UNION ALL
    (SELECT id, status FROM looked_at WHERE (SELECT so FROM crossed) INTERSECT SELECT id, status FROM near)
    ORDER BY id DESC
), fitting AS MATERIALIZED (
    SELECT entry.id
    FROM entry
    WHERE CASE
        WHEN EXISTS (
            SELECT FROM label WHERE (
                SELECT true FROM :"schema".run_labels AS row
                WHERE row.label = label.hash AND row.status = entry.status AND row.run_id = entry.id LIMIT 1
            ) IS NULL) THEN false
        WHEN $6::text IS NOT NULL AND (
            SELECT true FROM :"schema".run_endings AS row
            WHERE row.started_by = $6 AND row.started_by <> '' AND row.status = entry.status AND row.run_id = entry.id LIMIT 1
        ) IS NULL THEN false
        WHEN $7::text IS NULL AND $8::text IS NULL THEN true
        WHEN $7 IS NULL OR $8 IS NULL THEN (
            SELECT coalesce(row.namespace = $7, row.definition = $8) FROM :"schema".workflow_runs AS row
            WHERE row.id = entry.id LIMIT 1)
        ELSE (
            SELECT true FROM :"schema".run_endings AS row
            WHERE row.status = entry.status AND row.namespace = $7 AND row.definition = $8 AND row.run_id = entry.id LIMIT 1)
      END
    LIMIT $9
), bottom AS MATERIALIZED (
    SELECT coalesce((SELECT id FROM fitting OFFSET $9 - 1 LIMIT 1), reach.id) AS id FROM reach
)
SELECT uuid_send(bottom.id) AS reach, (SELECT count(*) FROM looked_at WHERE looked_at.id >= bottom.id) AS looked_at,
       (SELECT string_agg(uuid_send(id), '') FROM fitting) AS ids
FROM bottom

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
), near AS MATERIALIZED (
    SELECT near.id, near.status
    FROM reach
    CROSS JOIN unnest($4::text[]) AS wanted (status)
    CROSS JOIN LATERAL (
        SELECT run_id AS id, status FROM :"schema".run_labels AS row
        WHERE row.status = wanted.status AND row.label = ('x' || left(md5($10::text), 16))::bit(64)::bigint
          AND row.run_id >= reach.id AND row.run_id < $2
        ORDER BY row.run_id DESC LIMIT 10 * $3
    ) AS near
    LIMIT 10 * $3
), crossed AS MATERIALIZED (
    SELECT $10 IS NOT NULL AND $11::text IS NULL AND count(*) < 10 * $3 AS so FROM near
), looked_at AS MATERIALIZED (
    SELECT each.*
    FROM reach
    JOIN (SELECT id, status, placed FROM first UNION ALL SELECT id, status, placed FROM rest) AS each ON each.id >= reach.id
), entry AS MATERIALIZED (
    SELECT id, status, placed FROM looked_at WHERE NOT (SELECT so FROM crossed)
    UNION ALL
    (SELECT id, status, placed FROM looked_at WHERE (SELECT so FROM crossed) INTERSECT SELECT id, status, true FROM near)
    ORDER BY id DESC
), fitting AS MATERIALIZED (
    SELECT entry.id
    FROM entry
    WHERE CASE
        WHEN NOT entry.placed THEN false
        WHEN EXISTS (
            SELECT FROM label WHERE (
                SELECT true FROM :"schema".run_labels AS row
                WHERE row.label = label.hash AND row.status = entry.status AND row.run_id = entry.id LIMIT 1
            ) IS NULL) THEN false
        ELSE true
      END
    LIMIT $9
), bottom AS MATERIALIZED (
    SELECT coalesce((SELECT id FROM fitting OFFSET $9 - 1 LIMIT 1), reach.id) AS id FROM reach
)
SELECT uuid_send(bottom.id) AS reach, (SELECT count(*) FROM looked_at WHERE looked_at.id >= bottom.id) AS looked_at,
       (SELECT string_agg(uuid_send(id), '') FROM fitting) AS ids
FROM bottom

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
), near AS MATERIALIZED (
    SELECT near.id, near.status
    FROM reach
    CROSS JOIN unnest($4::text[]) AS wanted (status)
    CROSS JOIN LATERAL (
        SELECT run_id AS id, status FROM :"schema".run_labels AS row
        WHERE row.status = wanted.status AND row.label = ('x' || left(md5($10::text), 16))::bit(64)::bigint
          AND row.run_id >= reach.id AND row.run_id < $2
        ORDER BY row.run_id DESC LIMIT 10 * $3
    ) AS near
    UNION ALL
    SELECT near.id, near.status
    FROM reach
    CROSS JOIN unnest($4::text[]) AS wanted (status)
    CROSS JOIN LATERAL (
        SELECT run_id AS id, status FROM :"schema".run_endings AS row
        WHERE row.status = wanted.status AND row.started_by = $11::text AND row.started_by <> ''
          AND row.run_id >= reach.id AND row.run_id < $2
        ORDER BY row.run_id DESC LIMIT 10 * $3
    ) AS near
    LIMIT 10 * $3
), crossed AS MATERIALIZED (
    SELECT coalesce($10, $11) IS NOT NULL AND count(*) < 10 * $3 AS so FROM near
), looked_at AS MATERIALIZED (
    SELECT each.*
    FROM reach
    JOIN (SELECT id, status FROM first UNION ALL SELECT id, status FROM rest) AS each ON each.id >= reach.id
), entry AS MATERIALIZED (
    SELECT id, status FROM looked_at WHERE NOT (SELECT so FROM crossed)
    UNION ALL
    (SELECT id, status FROM looked_at WHERE (SELECT so FROM crossed) INTERSECT SELECT id, status FROM near)
    ORDER BY id DESC
), fitting AS MATERIALIZED (
    SELECT entry.id
    FROM entry
    WHERE CASE
        WHEN EXISTS (
            SELECT FROM label WHERE (
                SELECT true FROM :"schema".run_labels AS row
                WHERE row.label = label.hash AND row.status = entry.status AND row.run_id = entry.id LIMIT 1
            ) IS NULL) THEN false
        WHEN $6::text IS NOT NULL AND (
            SELECT true FROM :"schema".run_endings AS row
            WHERE row.started_by = $6 AND row.started_by <> '' AND row.status = entry.status AND row.run_id = entry.id LIMIT 1
        ) IS NULL THEN false
        ELSE true
      END
    LIMIT $9
), bottom AS MATERIALIZED (
    SELECT coalesce((SELECT id FROM fitting OFFSET $9 - 1 LIMIT 1), reach.id) AS id FROM reach
)
SELECT uuid_send(bottom.id) AS reach, (SELECT count(*) FROM looked_at WHERE looked_at.id >= bottom.id) AS looked_at,
       (SELECT string_agg(uuid_send(id), '') FROM fitting) AS ids
FROM bottom

-- name: list_ids_fit
-- Of the runs $1 those that ended with one of the statuses $2, have the labels $3 and were started by $4.
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
    ELSE true
  END
