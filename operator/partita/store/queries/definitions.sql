-- Definitions and their versions.

-- name: lock_definition
-- Serialises deployments of one definition until the transaction ends.
SELECT pg_advisory_xact_lock(hashtextextended('partita/definition/' || $1::text || '/' || $2::text, 0));

-- name: definition_versions
-- All versions of a definition, newest first.
SELECT id, version, content_hash, deployed, deleted_at FROM :"schema".workflow_definitions
WHERE namespace = $1 AND name = $2 ORDER BY version DESC;

-- name: withdraw_definition
UPDATE :"schema".workflow_definitions SET deployed = false
WHERE namespace = $1 AND name = $2 AND deployed AND version IS DISTINCT FROM $3;

-- name: insert_definition
INSERT INTO :"schema".workflow_definitions
    (id, version, namespace, name, spec_json, content_hash, created_by, deployed, deployed_at)
VALUES ($1, $2, $3, $4, $5::json, $6, $7, true, clock_timestamp());

-- name: redeploy_definition
UPDATE :"schema".workflow_definitions SET deployed = true, deployed_at = clock_timestamp()
WHERE namespace = $1 AND name = $2 AND version = $3 AND NOT deployed;

-- name: revive_definition
UPDATE :"schema".workflow_definitions SET deleted_at = NULL WHERE namespace = $1 AND name = $2 AND deleted_at IS NOT NULL;

-- name: delete_definition
UPDATE :"schema".workflow_definitions SET deployed = false, deleted_at = clock_timestamp()
WHERE namespace = $1 AND name = $2 AND deleted_at IS NULL
RETURNING version;

-- name: resolve_definition
-- The deployed version, or an exact one.
SELECT id, version, deployed, enabled FROM :"schema".workflow_definitions
WHERE namespace = $1 AND name = $2 AND deleted_at IS NULL AND CASE WHEN $3::int IS NULL THEN deployed ELSE version = $3 END;

-- name: exact_definition
-- The id of version $3, deleted ones too.
SELECT id FROM :"schema".workflow_definitions WHERE namespace = $1 AND name = $2 AND version = $3;

-- name: load_definitions
-- Specs of exact versions, deleted ones too: their runs go on.
SELECT row.id, row.version, row.namespace, row.name, row.content_hash, row.spec_json
FROM unnest($1::uuid[], $2::int[]) AS wanted (id, version)
CROSS JOIN LATERAL (
    SELECT * FROM :"schema".workflow_definitions AS row
    WHERE row.id = wanted.id AND row.version = wanted.version
    LIMIT 1
) AS row;
