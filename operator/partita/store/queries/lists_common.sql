-- Lists with several filters: entries of one filter, checked for the others (see common.py).
--
-- Each takes the filters in the same way: ended runs between $1 (included) and $2 (excluded), of the statuses $4, with the
-- labels $5, started by $6, in namespace $7, of definition $8; what is null is not asked for. Each list_…_fits looks at the
-- newest $3 entries of one filter until $9 fit, and gives the ids of these as lists.sql does, how many entries it looked
-- at, for how many of them it had to look elsewhere, and the reach: every id from there on that fits is among them. To look
-- elsewhere is one lookup, whatever else the other filter has: its index is asked for the run, with the status of the entry,
-- as the entries of one end are written together.

-- name: list_newest
-- The newest $3 entries of each filter: ids as lists.sql gives them.
SELECT wanted.label AS filter, (
    WITH first AS MATERIALIZED (
        SELECT run_id AS id FROM :"schema".run_labels AS row
        WHERE row.status = ($4::text[])[1] AND row.label = ('x' || left(md5(wanted.label), 16))::bit(64)::bigint
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
        CROSS JOIN unnest(($4::text[])[2:]) AS ended (status)
        CROSS JOIN LATERAL (
            SELECT run_id AS id FROM :"schema".run_labels AS row
            WHERE row.status = ended.status AND row.label = ('x' || left(md5(wanted.label), 16))::bit(64)::bigint
              AND row.run_id >= $1 AND row.run_id >= floor.id AND row.run_id < $2
            ORDER BY row.run_id DESC LIMIT $3
        ) AS rest
    ) AS found
) AS ids
FROM unnest($5::text[]) AS wanted (label)
UNION ALL
SELECT 'person', (
    WITH first AS MATERIALIZED (
        SELECT run_id AS id FROM :"schema".run_endings AS row
        WHERE row.status = ($4::text[])[1] AND row.started_by = $6::text AND row.started_by <> ''
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
        CROSS JOIN unnest(($4::text[])[2:]) AS ended (status)
        CROSS JOIN LATERAL (
            SELECT run_id AS id FROM :"schema".run_endings AS row
            WHERE row.status = ended.status AND row.started_by = $6::text AND row.started_by <> ''
              AND row.run_id >= $1 AND row.run_id >= floor.id AND row.run_id < $2
            ORDER BY row.run_id DESC LIMIT $3
        ) AS rest
    ) AS found
)
WHERE $6 IS NOT NULL
UNION ALL
SELECT 'place', (
    WITH first AS MATERIALIZED (
        SELECT run_id AS id FROM :"schema".run_endings AS row
        WHERE row.status = ($4::text[])[1] AND row.namespace = $7::text AND row.definition = $8::text
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
        CROSS JOIN unnest(($4::text[])[2:]) AS ended (status)
        CROSS JOIN LATERAL (
            SELECT run_id AS id FROM :"schema".run_endings AS row
            WHERE row.status = ended.status AND row.namespace = $7::text AND row.definition = $8::text
              AND row.run_id >= $1 AND row.run_id >= floor.id AND row.run_id < $2
            ORDER BY row.run_id DESC LIMIT $3
        ) AS rest
    ) AS found
)
WHERE $7 IS NOT NULL AND $8 IS NOT NULL

-- name: list_label_fits
-- Entries of the first label, which say by themselves what else the run has; of runs with so many labels that theirs say
-- little, labels are looked up, and of entries from before schema version 4 everything.
WITH label AS MATERIALIZED (
    SELECT ('x' || left(md5(text), 16))::bit(64)::bigint AS hash FROM unnest(($5::text[])[2:]) AS text
), asked AS MATERIALIZED (
    SELECT ('x' || CASE WHEN $7::text IS NULL THEN '0000' ELSE 'ffff' END
            || CASE WHEN $8::text IS NULL THEN '000000' ELSE 'ffffff' END
            || CASE WHEN $6::text IS NULL THEN '000000' ELSE 'ffffff' END)::bit(64)::bigint AS mask,
           ('x' || coalesce(left(md5($7), 4), '0000') || coalesce(left(md5($8), 6), '000000')
            || coalesce(left(md5($6), 6), '000000'))::bit(64)::bigint AS origin,
           (SELECT coalesce(bit_or((1::bigint << (hash & 63)::int) | (1::bigint << (hash >> 6 & 63)::int)
                                   | (1::bigint << (hash >> 12 & 63)::int) | (1::bigint << (hash >> 18 & 63)::int)), 0)
            FROM label) AS labels
), first AS MATERIALIZED (
    SELECT run_id AS id, status, origin, labels FROM :"schema".run_labels AS row
    WHERE row.status = ($4::text[])[1] AND row.label = ('x' || left(md5(($5::text[])[1]), 16))::bit(64)::bigint
      AND row.run_id >= $1 AND row.run_id < $2
    ORDER BY row.run_id DESC LIMIT $3
), floor AS MATERIALIZED (
    SELECT greatest($1, (SELECT id FROM first OFFSET $3 - 1 LIMIT 1)) AS id
), rest AS MATERIALIZED (
    SELECT rest.id, rest.status, rest.origin, rest.labels, rest.n
    FROM floor
    CROSS JOIN unnest(($4::text[])[2:]) AS wanted (status)
    CROSS JOIN LATERAL (
        SELECT id, status, origin, labels, row_number() OVER (ORDER BY id DESC) AS n
        FROM (
            SELECT run_id AS id, status, origin, labels FROM :"schema".run_labels AS row
            WHERE row.status = wanted.status AND row.label = ('x' || left(md5(($5::text[])[1]), 16))::bit(64)::bigint
              AND row.run_id >= $1 AND row.run_id >= floor.id AND row.run_id < $2
            ORDER BY row.run_id DESC LIMIT $3
        ) AS newest
    ) AS rest
), reach AS MATERIALIZED (
    SELECT greatest(floor.id, (SELECT id FROM rest WHERE n = $3 ORDER BY id DESC LIMIT 1)) AS id FROM floor
), entry AS MATERIALIZED (
    SELECT each.*
    FROM reach
    JOIN (SELECT id, status, origin, labels FROM first UNION ALL SELECT id, status, origin, labels FROM rest) AS each ON each.id >= reach.id
    ORDER BY each.id DESC
), fitting AS MATERIALIZED (
    SELECT entry.id
    FROM entry
    WHERE CASE
        WHEN entry.origin & (SELECT mask FROM asked) <> (SELECT origin FROM asked) THEN false
        WHEN entry.labels & (SELECT labels FROM asked) <> (SELECT labels FROM asked) THEN false
        WHEN (entry.labels IS NULL OR bit_count(entry.labels::bit(64)) > 24) AND EXISTS (
            SELECT FROM label WHERE (
                SELECT true FROM :"schema".run_labels AS row
                WHERE row.label = label.hash AND row.status = entry.status AND row.run_id = entry.id LIMIT 1
            ) IS NULL) THEN false
        WHEN entry.origin IS NOT NULL THEN true
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
SELECT uuid_send(bottom.id) AS reach, seen.looked_at, seen.looked_up,
       (SELECT string_agg(uuid_send(id), '') FROM fitting) AS ids
FROM bottom
CROSS JOIN LATERAL (
    SELECT count(*) AS looked_at, count(*) FILTER (WHERE entry.origin IS NULL) AS looked_up FROM entry WHERE entry.id >= bottom.id
) AS seen

-- name: list_person_fits
-- Entries of the person, which have the namespace and the definition; labels are looked up.
WITH label AS MATERIALIZED (
    SELECT ('x' || left(md5(text), 16))::bit(64)::bigint AS hash FROM unnest($5::text[]) AS text
), first AS MATERIALIZED (
    SELECT run_id AS id, status, ($7::text IS NULL OR namespace = $7) AND ($8::text IS NULL OR definition = $8) AS placed FROM :"schema".run_endings AS row
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
            SELECT run_id AS id, status, ($7::text IS NULL OR namespace = $7) AND ($8::text IS NULL OR definition = $8) AS placed FROM :"schema".run_endings AS row
            WHERE row.status = wanted.status AND row.started_by = $6::text AND row.started_by <> ''
              AND row.run_id >= $1 AND row.run_id >= floor.id AND row.run_id < $2
            ORDER BY row.run_id DESC LIMIT $3
        ) AS newest
    ) AS rest
), reach AS MATERIALIZED (
    SELECT greatest(floor.id, (SELECT id FROM rest WHERE n = $3 ORDER BY id DESC LIMIT 1)) AS id FROM floor
), entry AS MATERIALIZED (
    SELECT each.*
    FROM reach
    JOIN (SELECT id, status, placed FROM first UNION ALL SELECT id, status, placed FROM rest) AS each ON each.id >= reach.id
    ORDER BY each.id DESC
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
SELECT uuid_send(bottom.id) AS reach, seen.looked_at, seen.looked_up,
       (SELECT string_agg(uuid_send(id), '') FROM fitting) AS ids
FROM bottom
CROSS JOIN LATERAL (
    SELECT count(*) AS looked_at, count(*) FILTER (WHERE entry.placed AND cardinality($5) > 0) AS looked_up FROM entry WHERE entry.id >= bottom.id
) AS seen

-- name: list_place_fits
-- Entries of the definition in the namespace; what else they have is looked up.
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
            WHERE row.status = wanted.status AND row.namespace = $7::text AND row.definition = $8::text
              AND row.run_id >= $1 AND row.run_id >= floor.id AND row.run_id < $2
            ORDER BY row.run_id DESC LIMIT $3
        ) AS newest
    ) AS rest
), reach AS MATERIALIZED (
    SELECT greatest(floor.id, (SELECT id FROM rest WHERE n = $3 ORDER BY id DESC LIMIT 1)) AS id FROM floor
), entry AS MATERIALIZED (
    SELECT each.*
    FROM reach
    JOIN (SELECT id, status FROM first UNION ALL SELECT id, status FROM rest) AS each ON each.id >= reach.id
    ORDER BY each.id DESC
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
SELECT uuid_send(bottom.id) AS reach, seen.looked_at, seen.looked_up,
       (SELECT string_agg(uuid_send(id), '') FROM fitting) AS ids
FROM bottom
CROSS JOIN LATERAL (
    SELECT count(*) AS looked_at, count(*) FILTER (WHERE true) AS looked_up FROM entry WHERE entry.id >= bottom.id
) AS seen

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
