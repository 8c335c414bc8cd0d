-- What a batch locks, fences and reads, in this order. Arrays carry the batch; $lo and $hi, the smallest and the largest
-- run id, let PostgreSQL skip the other months.

-- name: lock_runs
-- hot: pruned
-- Statement 1 of a batch (few reports: opening.sql): reads nothing else, as it sees what was true before it locked.
SELECT id FROM :"schema".workflow_runs
WHERE id = ANY ($1::uuid[]) AND id BETWEEN $2 AND $3
ORDER BY id
FOR NO KEY UPDATE SKIP LOCKED;

-- name: lock_runs_waiting
-- hot: pruned
-- The same for a run that was skipped too often; lock_timeout bounds the wait.
SELECT id FROM :"schema".workflow_runs
WHERE id = ANY ($1::uuid[]) AND id BETWEEN $2 AND $3
ORDER BY id
FOR NO KEY UPDATE;

-- name: load_runs
-- hot: pruned
-- First the clock and the engine's state, then the rows of the runs, each with its place, and last, without a run's id,
-- those of the definitions $4 ids, $5 versions, $6 named exactly, that may be started: not deleted, enabled, and deployed
-- unless named exactly.
SELECT clock_timestamp() AS now, pg_current_xact_id()::text AS xid, paused, oldest_protocol, retention_floor,
       NULL AS place, NULL AS id, NULL AS definition_id, NULL AS start_request_id, NULL AS created_at, NULL AS version,
       NULL AS priority, NULL AS total, NULL AS generation, NULL AS active, NULL AS done, NULL AS seq, NULL AS revision,
       NULL AS cr_generation, NULL AS started_at, NULL AS finished_at, NULL AS deadline_at,
       NULL AS deadline_remaining_ms, NULL AS applied_suspend, NULL AS applied_cancel, NULL AS status, NULL AS stage,
       NULL AS reason, NULL AS pending_outcome, NULL AS retry_counts, NULL AS error_json, NULL AS namespace,
       NULL AS name, NULL AS definition, NULL AS cr_uid, NULL AS applied_cancel_nodes, NULL AS parent_id,
       NULL AS parent_node, NULL AS parent_index, NULL AS parent_attempt, NULL AS mailbox_id, NULL AS depth,
       NULL AS subflow
FROM :"schema".engine_state
UNION ALL
SELECT NULL, NULL, NULL, NULL, NULL,
       ctid, id, definition_id, start_request_id, created_at, version, priority, total, generation, active, done, seq,
       revision, cr_generation, started_at, finished_at, deadline_at, deadline_remaining_ms, applied_suspend,
       applied_cancel, status, stage, reason, pending_outcome, retry_counts, error_json, namespace, name, definition,
       cr_uid, applied_cancel_nodes, parent_id, parent_node, parent_index, parent_attempt, mailbox_id, depth, subflow
FROM :"schema".workflow_runs
WHERE id = ANY ($1::uuid[]) AND id BETWEEN $2 AND $3
UNION ALL
SELECT NULL, NULL, NULL, NULL, NULL,
       NULL, NULL, wanted.id, NULL, NULL, wanted.version, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
       NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
       NULL, NULL, NULL
FROM (SELECT unnest($4::uuid[]) AS id, unnest($5::int[]) AS version, unnest($6::bool[]) AS exact) AS wanted
CROSS JOIN LATERAL (
    SELECT FROM :"schema".workflow_definitions AS row
    WHERE row.id = wanted.id AND row.version = wanted.version AND row.enabled AND row.deleted_at IS NULL
      AND (row.deployed OR wanted.exact)
    LIMIT 1
) AS startable;

-- name: fence_ready
-- hot: queue
-- Ready rows that nobody claimed in time.
DELETE FROM :"schema".ready_tasks WHERE ctid = ANY (ARRAY (
    SELECT ready.ctid
    FROM (
        SELECT unnest($1::uuid[]) AS run_id, unnest($2::text[]) AS node, unnest($3::int[]) AS index,
        unnest($4::int[]) AS attempt, unnest($5::text[]) AS queue, unnest($6::smallint[]) AS lane,
        unnest($7::smallint[]) AS priority, unnest($8::bigint[]) AS seq
    ) AS fence
    CROSS JOIN LATERAL (
        SELECT ctid FROM :"schema".ready_tasks AS row
        WHERE row.queue = fence.queue AND row.lane = fence.lane AND row.priority = fence.priority AND row.seq = fence.seq
          AND row.run_id = fence.run_id AND row.node = fence.node AND row.index = fence.index
          AND row.attempt = fence.attempt AND row.expires_at <= clock_timestamp()
        LIMIT 1
    ) AS ready
))
RETURNING run_id, node, index, attempt;

-- name: fence_leases
-- hot: queue
-- Leases that end. demand: 0 by their worker's word, 1 because the attempt's time is over, 2 because the worker is gone.
DELETE FROM :"schema".task_leases WHERE ctid = ANY (ARRAY (
    SELECT lease.ctid
    FROM (
        SELECT unnest($1::uuid[]) AS run_id, unnest($2::text[]) AS node, unnest($3::int[]) AS index,
        unnest($4::int[]) AS attempt, unnest($5::uuid[]) AS lease_id, unnest($6::smallint[]) AS demand
    ) AS fence
    CROSS JOIN LATERAL (
        SELECT ctid FROM :"schema".task_leases AS row
        WHERE row.run_id = fence.run_id AND row.node = fence.node AND row.index = fence.index
          AND row.attempt = fence.attempt AND row.lease_id = fence.lease_id
          AND CASE fence.demand
                WHEN 0 THEN true
                WHEN 1 THEN row.deadline_at <= clock_timestamp()
                ELSE NOT EXISTS (SELECT FROM :"schema".workers
                                 WHERE workers.id = row.worker_id AND workers.expires_at > clock_timestamp())
              END
        LIMIT 1
    ) AS lease
))
RETURNING run_id, node, index, lease_id, generation, worker_id, claimed_at;

-- name: fence_timers
-- hot: queue
DELETE FROM :"schema".timers WHERE ctid = ANY (ARRAY (
    SELECT timer.ctid
    FROM (
        SELECT unnest($1::uuid[]) AS run_id, unnest($2::text[]) AS kind, unnest($3::text[]) AS node,
        unnest($4::int[]) AS index
    ) AS fence
    CROSS JOIN LATERAL (
        SELECT ctid FROM :"schema".timers AS row
        WHERE row.run_id = fence.run_id AND row.kind = fence.kind AND row.node = fence.node AND row.index = fence.index
          AND row.fire_at <= clock_timestamp() AND row.remaining_ms IS NULL
        LIMIT 1
    ) AS timer
))
RETURNING run_id, kind, node, index;

-- name: fence_inbox
-- hot: queue
DELETE FROM :"schema".run_inbox WHERE id = ANY ($1::bigint[]) RETURNING id;

-- name: inbox_until
-- hot: queue
-- Messages to these runs up to number $2. What callers put into an inbox has no order.
SELECT message.id, run.id
FROM unnest($1::uuid[]) AS run (id)
CROSS JOIN LATERAL (
    SELECT id FROM :"schema".run_inbox AS row
    WHERE row.run_id = run.id AND row.id <= $2::bigint AND row.dead_at IS NULL AND row.kind NOT IN ('start', 'signal')
    OFFSET 0
) AS message;

-- name: recorded_attempts
-- hot: pruned
-- Which of these reports were recorded before, by this worker: as the attempt's end, or as a late result.
SELECT report.run_id, report.node, report.index, report.attempt, report.worker_id, recorded.late
FROM (
    SELECT unnest($1::uuid[]) AS run_id, unnest($2::int[]) AS generation, unnest($3::text[]) AS node,
    unnest($4::int[]) AS index, unnest($5::int[]) AS attempt, unnest($6::text[]) AS worker_id
) AS report
CROSS JOIN LATERAL (
    SELECT entry.event = 'LateResult' AS late FROM :"schema".run_history AS entry
    WHERE entry.run_id = report.run_id AND entry.run_id BETWEEN $7 AND $8
      AND entry.generation = report.generation AND entry.node = report.node AND entry.index = report.index
      AND entry.attempt = report.attempt AND entry.who = report.worker_id
      AND entry.event IN ('TaskCompleted', 'TaskFailed', 'LateResult')
    LIMIT 1
) AS recorded;

-- name: handed_on
-- hot: pruned
-- Tasks that an earlier sending of these reports already leased to their worker.
SELECT lease.run_id, lease.claim_id, lease.generation, lease.node, lease.index, lease.attempt, lease.lease_id,
       lease.type, lease.queue, lease.deadline_at, lease.claimed_at, task.input, run.namespace
FROM (SELECT unnest($1::uuid[]) AS run_id, unnest($2::uuid[]) AS request_id) AS report
CROSS JOIN LATERAL (
    SELECT * FROM :"schema".task_leases AS row
    WHERE row.run_id = report.run_id AND row.claim_id = report.request_id
    LIMIT 1
) AS lease
CROSS JOIN LATERAL (
    SELECT input FROM :"schema".task_instances AS row
    WHERE row.run_id = lease.run_id AND row.node = lease.node AND row.index = lease.index AND row.run_id BETWEEN $3 AND $4
    LIMIT 1
) AS task
CROSS JOIN LATERAL (
    SELECT namespace FROM :"schema".workflow_runs AS row WHERE row.id = lease.run_id AND row.id BETWEEN $3 AND $4 LIMIT 1
) AS run;

-- name: load_tasks
-- hot: pruned
-- Single task rows; their payloads where asked for.
SELECT task.run_id, task.place, task.node, task.index, task.kind, task.state, task.attempt, task.edges_settled, task.edges_live,
       task.fired, task.stepped_over, task.route, task.retries, task.first_failed_at, task.queue, task.ready_lane,
       task.ready_priority, task.ready_seq, task.queued_at, task.finished_at, task.last_error, task.detail,
       CASE WHEN wanted.payload THEN task.output END AS output,
       CASE WHEN wanted.payload THEN task.event END AS event,
       CASE WHEN wanted.payload THEN task.input END AS input
FROM (
    SELECT unnest($1::uuid[]) AS run_id, unnest($2::text[]) AS node, unnest($3::int[]) AS index,
    unnest($4::bool[]) AS payload
) AS wanted
CROSS JOIN LATERAL (
    SELECT *, ctid AS place FROM :"schema".task_instances AS row
    WHERE row.run_id = wanted.run_id AND row.node = wanted.node AND row.index = wanted.index AND row.run_id BETWEEN $5 AND $6
    LIMIT 1
) AS task;

-- name: load_whole_runs
-- hot: pruned
-- All task rows of runs, without their payloads. OFFSET 0 keeps the lookup a lookup, as in clear_leases.
SELECT task.run_id, task.place, task.node, task.index, task.kind, task.state, task.attempt, task.edges_settled, task.edges_live,
       task.fired, task.stepped_over, task.route, task.retries, task.first_failed_at, task.queue, task.ready_lane,
       task.ready_priority, task.ready_seq, task.queued_at, task.finished_at, task.last_error, task.detail,
       NULL::json AS output, NULL::json AS event, NULL::json AS input
FROM unnest($1::uuid[]) AS wanted (run_id)
CROSS JOIN LATERAL (
    SELECT *, ctid AS place FROM :"schema".task_instances AS row
    WHERE row.run_id = wanted.run_id AND row.run_id BETWEEN $2 AND $3
    OFFSET 0
) AS task;

-- name: load_inputs
-- hot: pruned
SELECT id, context_json -> 'input' AS input, output_json FROM :"schema".workflow_runs
WHERE id = ANY ($1::uuid[]) AND id BETWEEN $2 AND $3;

-- name: load_timers
-- hot: queue
SELECT run_id, kind, node, index, fire_at, remaining_ms FROM :"schema".timers WHERE run_id = ANY ($1::uuid[]);

-- name: load_waits
-- hot: queue
-- sorts: waits of the batch's runs, all of which are loaded
SELECT run_id, name, seq, node, index, since, child_id, subflow, alternative
FROM :"schema".waits WHERE run_id = ANY ($1::uuid[]) AND kind = 'signal'
ORDER BY run_id, name, seq;

-- name: load_leased
-- hot: queue
SELECT run_id, node, index FROM :"schema".task_leases WHERE run_id = ANY ($1::uuid[]);

-- name: load_signals
-- hot: pruned
-- sorts: signals that the batch's runs have not taken yet, all of which are loaded
-- Signals that nobody took yet, oldest first.
SELECT run_id, id, name, seq, payload, sender, created_at FROM :"schema".workflow_events
WHERE run_id = ANY ($1::uuid[]) AND run_id BETWEEN $2 AND $3 AND consumed_at IS NULL AND refused IS NULL
ORDER BY run_id, seq;

-- name: seen_signals
-- hot: pruned
SELECT sent.run_id, sent.id
FROM (SELECT unnest($1::uuid[]) AS run_id, unnest($2::text[]) AS id) AS sent
CROSS JOIN LATERAL (
    SELECT FROM :"schema".workflow_events AS row
    WHERE row.run_id = sent.run_id AND row.id = sent.id AND row.run_id BETWEEN $3 AND $4
    LIMIT 1
) AS recorded;

-- name: child_versions
-- hot: queue
-- Versions of definitions $1 namespaces, $2 names that may be started now: $3, or where that is null the deployed one;
-- 0 where there is none.
SELECT wanted.namespace, wanted.name, wanted.version, coalesce(found.version, 0)
FROM (SELECT unnest($1::text[]) AS namespace, unnest($2::text[]) AS name, unnest($3::int[]) AS version) AS wanted
LEFT JOIN LATERAL (
    SELECT version FROM :"schema".workflow_definitions AS row
    WHERE row.namespace = wanted.namespace AND row.name = wanted.name AND row.enabled AND row.deleted_at IS NULL
      AND CASE WHEN wanted.version IS NULL THEN row.deployed ELSE row.version = wanted.version END
    LIMIT 1
) AS found ON true;

-- name: timeline
-- Changes when a standby is promoted: transaction ids of before say nothing on the new timeline.
SELECT substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8);

-- name: transaction_outcome
-- How a transaction whose COMMIT was not answered ended, as far as this server knows, and the server's timeline.
SELECT pg_xact_status($1::text::xid8), substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8);
