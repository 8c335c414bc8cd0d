-- name: migrations_table_exists
-- Whether any migration has ever been applied; text, so that it can be asked before there is a schema.
SELECT to_regclass(format('%I.schema_migrations', $1::text)) IS NOT NULL

-- name: migrations_applied
SELECT version, name, checksum, applied_at
FROM :"schema".schema_migrations
ORDER BY version

-- name: migration_seal
-- A migration records itself by its last statement, without a checksum; the runner adds it. So one that was run with
-- psql is recognised, and sealed when the runner first sees it.
UPDATE :"schema".schema_migrations
SET checksum = $2
WHERE version = $1 AND checksum = ''

-- name: oldest_protocol
-- The oldest engine protocol that may still work on this schema.
SELECT oldest_protocol FROM :"schema".engine_state
