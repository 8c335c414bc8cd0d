-- The opening of a batch of reports in one statement: what lock_runs, load_runs, fence_leases and load_tasks do.

-- name: open_reports
-- hot: pruned
-- The whole statement sees the moment before it locked. What it saw of a run is true only if nobody has changed the run
-- between that moment and the lock: the version that was locked, the newest one, has to be the one that was seen. Every
-- transaction that changes a record of a run writes the run's row as well (Writes.add), so that its place tells. Leases
-- are ended, and tasks read, of such runs alone. Of the others "unmoved" says what is the matter: false, changed
-- meanwhile, and the lock is ours; null, somebody else holds it.
-- $1 runs. Leases: $4 run_ids, $5 nodes, $6 indexes, $7 attempts, $8 lease_ids. Tasks: $9 run_ids, $10 nodes,
-- $11 indexes, $12 with payloads. The state stands in each row, and each of the three parts has a row of nulls at least.
-- For a few reports only: the join to "locked" reads all of it for each run.
WITH locked AS MATERIALIZED (
    SELECT id, ctid AS place FROM :"schema".workflow_runs
    WHERE id = ANY ($1::uuid[]) AND id BETWEEN $2 AND $3
    ORDER BY id
    FOR NO KEY UPDATE SKIP LOCKED
),
seen AS MATERIALIZED (
    SELECT run.ctid AS place, run.id, run.definition_id, run.start_request_id, run.created_at, run.version, run.priority,
           run.total, run.generation, run.active, run.done, run.seq, run.revision, run.cr_generation, run.started_at,
           run.finished_at, run.deadline_at, run.deadline_remaining_ms, run.applied_suspend, run.applied_cancel,
           run.status, run.stage, run.reason, run.pending_outcome, run.retry_counts, run.error_json, run.namespace,
           run.name, run.definition, run.cr_uid, run.applied_cancel_nodes, run.parent_id, run.parent_node,
           run.parent_index, run.parent_attempt, run.mailbox_id, run.depth, run.subflow,
           run.ctid = locked.place AS unmoved
    FROM :"schema".workflow_runs AS run
    LEFT JOIN locked ON locked.id = run.id
    WHERE run.id = ANY ($1::uuid[]) AND run.id BETWEEN $2 AND $3
),
ended AS (
    DELETE FROM :"schema".task_leases WHERE ctid = ANY (ARRAY (
        SELECT lease.ctid
        FROM (
            SELECT unnest($4::uuid[]) AS run_id, unnest($5::text[]) AS node, unnest($6::int[]) AS index,
            unnest($7::int[]) AS attempt, unnest($8::uuid[]) AS lease_id
        ) AS fence
        JOIN seen ON seen.id = fence.run_id AND seen.unmoved
        CROSS JOIN LATERAL (
            SELECT ctid FROM :"schema".task_leases AS row
            WHERE row.run_id = fence.run_id AND row.node = fence.node AND row.index = fence.index
              AND row.attempt = fence.attempt AND row.lease_id = fence.lease_id
            LIMIT 1
        ) AS lease
    ))
    RETURNING run_id, node, index, lease_id, generation, worker_id, claimed_at
),
task AS MATERIALIZED (
    SELECT found.run_id, found.place, found.node, found.index, found.kind, found.state, found.attempt,
           found.edges_settled, found.edges_live, found.fired, found.stepped_over, found.route, found.retries,
           found.first_failed_at, found.queue, found.ready_lane, found.ready_priority, found.ready_seq,
           found.queued_at, found.finished_at, found.last_error, found.detail,
           CASE WHEN wanted.payload THEN found.output END AS output,
           CASE WHEN wanted.payload THEN found.event END AS event,
           CASE WHEN wanted.payload THEN found.input END AS input
    FROM (
        SELECT unnest($9::uuid[]) AS run_id, unnest($10::text[]) AS node, unnest($11::int[]) AS index,
        unnest($12::bool[]) AS payload
    ) AS wanted
    JOIN seen ON seen.id = wanted.run_id AND seen.unmoved
    CROSS JOIN LATERAL (
        SELECT *, ctid AS place FROM :"schema".task_instances AS row
        WHERE row.run_id = wanted.run_id AND row.node = wanted.node AND row.index = wanted.index
          AND row.run_id BETWEEN $2 AND $3
        LIMIT 1
    ) AS found
),
state AS MATERIALIZED (
    SELECT clock_timestamp() AS now, pg_current_xact_id()::text AS xid, paused, oldest_protocol, retention_floor
    FROM :"schema".engine_state
)
SELECT part.number, state.*, seen.*, ended.*, task.*
FROM state
CROSS JOIN (VALUES (1), (2), (3)) AS part (number)
LEFT JOIN seen ON part.number = 1
LEFT JOIN ended ON part.number = 2
LEFT JOIN task ON part.number = 3;
