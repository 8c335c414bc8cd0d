-- Starting runs: insert-only, so that no start waits for a run.

-- name: start_keys
-- hot: queue
-- The runs that hold these keys.
SELECT wanted.scope, wanted.namespace, wanted.key, held.run_id, held.input_hash
FROM (SELECT unnest($1::text[]) AS scope, unnest($2::text[]) AS namespace, unnest($3::text[]) AS key) AS wanted
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

-- name: insert_keys
-- hot: queue
-- A key that expired is taken over. Keys that another transaction took meanwhile are not returned.
INSERT INTO :"schema".run_keys AS held (scope, namespace, key, run_id, input_hash, expires_at)
SELECT unnest($1::text[]), unnest($2::text[]), unnest($3::text[]), unnest($4::uuid[]), unnest($5::text[]),
    unnest($6::timestamptz[])
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
FROM (
    SELECT unnest($1::uuid[]) AS id, unnest($2::uuid[]) AS definition_id, unnest($3::uuid[]) AS start_request_id,
    unnest($4::timestamptz[]) AS created_at, unnest($5::int[]) AS version, unnest($6::smallint[]) AS priority,
    unnest($7::int[]) AS total, unnest($8::int[]) AS generation, unnest($9::int[]) AS active,
    unnest($10::int[]) AS done, unnest($11::int[]) AS seq, unnest($12::bigint[]) AS revision,
    unnest($13::bigint[]) AS cr_generation, unnest($14::timestamptz[]) AS started_at,
    unnest($15::timestamptz[]) AS finished_at, unnest($16::timestamptz[]) AS deadline_at,
    unnest($17::bigint[]) AS deadline_remaining_ms, unnest($18::bool[]) AS applied_suspend,
    unnest($19::bool[]) AS applied_cancel, unnest($20::text[]) AS applied_cancel_nodes, unnest($21::text[]) AS status,
    unnest($22::text[]) AS stage, unnest($23::text[]) AS reason, unnest($24::text[]) AS pending_outcome,
    unnest($25::jsonb[]) AS retry_counts, unnest($26::json[]) AS error_json, unnest($27::json[]) AS output_json,
    unnest($28::text[]) AS namespace, unnest($29::text[]) AS name, unnest($30::text[]) AS definition,
    unnest($31::text[]) AS started_by, unnest($32::text[]) AS cluster_uid, unnest($33::text[]) AS engine_id,
    unnest($34::text[]) AS cr_uid, unnest($35::text[]) AS idempotency_key, unnest($36::jsonb[]) AS tags,
    unnest($37::jsonb[]) AS attributes, unnest($38::json[]) AS context_json, unnest($39::uuid[]) AS parent_id,
    unnest($40::text[]) AS parent_node, unnest($41::int[]) AS parent_index, unnest($42::int[]) AS parent_attempt,
    unnest($43::uuid[]) AS mailbox_id, unnest($44::int[]) AS depth, unnest($45::text[]) AS subflow
) AS new /* WHERE proved */;

-- name: insert_open_runs
INSERT INTO :"schema".open_runs
    (run_id, namespace, definition, name, cluster_uid, engine_id, cr_uid, subflow, started_by, tags, attributes)
SELECT unnest($1::uuid[]), unnest($2::text[]), unnest($3::text[]), unnest($4::text[]), unnest($5::text[]),
    unnest($6::text[]), unnest($7::text[]), unnest($8::text[]), unnest($9::text[]), unnest($10::jsonb[]),
    unnest($11::jsonb[])
/* WHERE proved */;

-- name: insert_inbox
-- One row for the inbox of a run, in whatever transaction the caller has open.
INSERT INTO :"schema".run_inbox (run_id, kind, body) VALUES ($1, $2, $3::json) RETURNING id;
