-- Starting runs: insert-only, so that no start waits for a run.

-- name: start_keys
-- hot: queue
-- The runs that hold these keys.
SELECT wanted.scope, wanted.namespace, wanted.key, held.run_id, held.input_hash
FROM unnest($1::text[], $2::text[], $3::text[]) AS wanted (scope, namespace, key)
CROSS JOIN LATERAL (
    SELECT run_id, input_hash FROM :"schema".run_keys AS row
    WHERE row.scope = wanted.scope AND row.namespace = wanted.namespace AND row.key = wanted.key
      AND (row.expires_at IS NULL OR row.expires_at > clock_timestamp())
    LIMIT 1
) AS held;

-- name: start_key_runs
-- hot: pruned
-- What became of the runs that hold keys; none where the run's month is gone.
SELECT id, status, cr_uid FROM :"schema".workflow_runs WHERE id = ANY ($1::uuid[]) AND id BETWEEN $2 AND $3;

-- name: start_versions
-- hot: queue
-- Which of these versions may be started: not deleted, enabled, and deployed unless named exactly.
SELECT wanted.id, wanted.version
FROM unnest($1::uuid[], $2::int[], $3::bool[]) AS wanted (id, version, exact)
CROSS JOIN LATERAL (
    SELECT FROM :"schema".workflow_definitions AS row
    WHERE row.id = wanted.id AND row.version = wanted.version AND row.enabled AND row.deleted_at IS NULL
      AND (row.deployed OR wanted.exact)
    LIMIT 1
) AS found;

-- name: insert_keys
-- hot: queue
-- A key that expired is taken over. Keys that another transaction took meanwhile are not returned.
INSERT INTO :"schema".run_keys AS held (scope, namespace, key, run_id, input_hash, expires_at)
SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::uuid[], $5::text[], $6::timestamptz[])
ON CONFLICT (scope, namespace, key) DO UPDATE
    SET run_id = excluded.run_id, input_hash = excluded.input_hash, expires_at = excluded.expires_at
    WHERE held.expires_at <= clock_timestamp()
RETURNING scope, namespace, key;

-- name: insert_runs
-- Fails when another transaction started one of them meanwhile. Not ON CONFLICT DO NOTHING: a speculative insertion
-- costs a second WAL record for each run.
INSERT INTO :"schema".workflow_runs
    (id, definition_id, start_request_id, created_at, version, priority, total, generation, active, done, seq, revision,
     cr_generation, started_at, finished_at, deadline_at, deadline_remaining_ms, applied_suspend, applied_cancel,
     applied_cancel_nodes, status, stage, reason, pending_outcome, retry_counts, error_json, output_json, namespace, name,
     definition, started_by, cluster_uid, engine_id, cr_uid, idempotency_key, tags, attributes, context_json, parent_id,
     parent_node, parent_index, parent_attempt, mailbox_id, depth, subflow)
SELECT id, definition_id, start_request_id, created_at, version, priority, total, generation, active, done, seq, revision,
       cr_generation, started_at, finished_at, deadline_at, deadline_remaining_ms, applied_suspend, applied_cancel,
       string_to_array(applied_cancel_nodes, ','), status, stage, reason, pending_outcome, retry_counts, error_json,
       output_json, namespace, name, definition, started_by, cluster_uid, engine_id, cr_uid, idempotency_key, tags,
       attributes, context_json, parent_id, parent_node, parent_index, parent_attempt, mailbox_id, depth, subflow
FROM unnest(
    $1::uuid[], $2::uuid[], $3::uuid[], $4::timestamptz[], $5::int[], $6::smallint[], $7::int[], $8::int[], $9::int[],
    $10::int[], $11::int[], $12::bigint[], $13::bigint[], $14::timestamptz[], $15::timestamptz[], $16::timestamptz[],
    $17::bigint[], $18::bool[], $19::bool[], $20::text[], $21::text[], $22::text[], $23::text[], $24::text[],
    $25::jsonb[], $26::json[], $27::json[], $28::text[], $29::text[], $30::text[], $31::text[], $32::text[], $33::text[],
    $34::text[], $35::text[], $36::jsonb[], $37::jsonb[], $38::json[], $39::uuid[], $40::text[], $41::int[], $42::int[],
    $43::uuid[], $44::int[], $45::text[])
    AS new
    (id, definition_id, start_request_id, created_at, version, priority, total, generation, active, done, seq, revision,
     cr_generation, started_at, finished_at, deadline_at, deadline_remaining_ms, applied_suspend, applied_cancel,
     applied_cancel_nodes, status, stage, reason, pending_outcome, retry_counts, error_json, output_json, namespace, name,
     definition, started_by, cluster_uid, engine_id, cr_uid, idempotency_key, tags, attributes, context_json, parent_id,
     parent_node, parent_index, parent_attempt, mailbox_id, depth, subflow);

-- name: insert_open_runs
INSERT INTO :"schema".open_runs
    (run_id, namespace, definition, name, cluster_uid, engine_id, cr_uid, subflow, started_by, tags, attributes)
SELECT * FROM unnest(
    $1::uuid[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[], $9::text[],
    $10::jsonb[], $11::jsonb[]);

-- name: insert_inbox
-- One row for the inbox of a run, in whatever transaction the caller has open.
INSERT INTO :"schema".run_inbox (run_id, kind, body) VALUES ($1, $2, $3::json) RETURNING id;
