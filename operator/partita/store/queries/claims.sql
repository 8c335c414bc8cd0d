-- Claiming: rows move from ready_tasks to task_leases by SKIP LOCKED, without the lock of any run.

-- name: claim_tasks
-- hot: queue
-- Takes up to $5 tasks. $1 queues, $2 lanes, $3 priorities and $4 positions name the groups and where each one begins.
-- Candidates are read without locks, $6 of each group; they go round the lanes, within a lane oldest first, a level of
-- priority being worth 30 seconds of age; the first $5 that nobody else holds are locked, deleted and leased. Locking all
-- candidates instead would write to rows that are then left, and hide them from the other claimers.
-- $7 claim_id, $8 worker_id, $9 namespaces (null: all), $10 protocol. Nothing is handed out while the engine is paused.
-- $11: also tell the first candidate of each group, as [[queue, lane, priority, seq], …].
-- The answer has at least one row: candidates, open, obeyed, position and firsts stand in each, the rest is null when nothing was taken.
WITH state AS MATERIALIZED (
    SELECT NOT paused AND oldest_protocol <= $10 AS open, oldest_protocol <= $10 AS obeyed
    FROM :"schema".engine_state
),
candidate AS MATERIALIZED (
    SELECT found.place, start.queue, found.lane, found.priority, found.seq,
           found.enqueued_at - found.priority * interval '30 seconds' AS age
    FROM unnest($1::text[], $2::smallint[], $3::smallint[], $4::bigint[]) AS start (queue, lane, priority, position)
    CROSS JOIN LATERAL (
        SELECT ready.ctid AS place, ready.lane, ready.priority, ready.seq, ready.enqueued_at
        FROM :"schema".ready_tasks AS ready
        WHERE ready.queue = start.queue AND ready.lane = start.lane AND ready.priority = start.priority
          AND ready.seq >= start.position
          AND ($9::text[] IS NULL OR ready.namespace = ANY ($9::text[]))
          AND (ready.expires_at IS NULL OR ready.expires_at > clock_timestamp())
        ORDER BY ready.queue, ready.lane, ready.priority, ready.seq
        LIMIT $6::integer
    ) AS found
    WHERE (SELECT open FROM state)
),
ordered AS MATERIALIZED (
    SELECT place
    FROM (SELECT place, age, row_number() OVER (PARTITION BY lane ORDER BY age) AS turn FROM candidate) AS ranked
    ORDER BY turn, age
),
locked AS MATERIALIZED (
    SELECT ready.ctid AS place
    FROM ordered JOIN :"schema".ready_tasks AS ready ON ready.ctid = ordered.place
    LIMIT $5::integer
    FOR UPDATE OF ready SKIP LOCKED
),
taken AS (
    DELETE FROM :"schema".ready_tasks AS ready USING locked WHERE ready.ctid = locked.place
    RETURNING ready.*, gen_random_uuid() AS lease_id, clock_timestamp() AS claimed_at
),
leased AS (
    INSERT INTO :"schema".task_leases
        (run_id, lease_id, claim_id, claimed_at, deadline_at, index, attempt, generation, node, worker_id, queue, type)
    SELECT run_id, lease_id, $7::uuid, claimed_at, claimed_at + timeout_ms * interval '1 millisecond',
           index, attempt, generation, node, $8::text, queue, type
    FROM taken
)
SELECT seen.candidates, state.open, state.obeyed,
       (extract(epoch FROM statement_timestamp() - timestamptz '2024-01-01 00:00:00+00') * 1000000)::bigint << 12 AS position,
       CASE WHEN $11::boolean THEN (
           SELECT json_agg(json_build_array(queue, lane, priority, first))
           FROM (SELECT queue, lane, priority, min(seq) AS first FROM candidate GROUP BY queue, lane, priority) AS groups
       ) END AS firsts,
       taken.run_id, taken.node, taken.index, taken.generation, taken.attempt, taken.type, taken.queue,
       taken.namespace, taken.timeout_ms, taken.lane, taken.priority, taken.seq, taken.lease_id,
       taken.claimed_at + taken.timeout_ms * interval '1 millisecond' AS deadline_at
FROM (SELECT count(*) AS candidates FROM candidate) AS seen CROSS JOIN state LEFT JOIN taken ON true;

-- name: urgent_work
-- hot: queue
-- The first ready row of each group that has one: $1 queues, $2 lanes, $3 priorities, $4 positions where each one begins.
SELECT start.queue, start.lane, start.priority, first.seq, first.enqueued_at
FROM unnest($1::text[], $2::smallint[], $3::smallint[], $4::bigint[]) AS start (queue, lane, priority, position)
CROSS JOIN LATERAL (
    SELECT seq, enqueued_at FROM :"schema".ready_tasks AS row
    WHERE row.queue = start.queue AND row.lane = start.lane AND row.priority = start.priority
      AND row.seq >= start.position
    ORDER BY row.queue, row.lane, row.priority, row.seq
    LIMIT 1
) AS first;

-- name: claimed_inputs
-- hot: pruned
-- Inputs of tasks $1 run_ids, $2 nodes, $3 indexes, in that order; the run ids lie between $4 and $5.
SELECT found.input
FROM unnest($1::uuid[], $2::text[], $3::integer[]) WITH ORDINALITY AS wanted (run_id, node, index, place)
LEFT JOIN LATERAL (
    SELECT task.input
    FROM :"schema".task_instances AS task
    WHERE task.run_id = wanted.run_id AND task.node = wanted.node AND task.index = wanted.index
      AND task.run_id BETWEEN $4::uuid AND $5::uuid
    LIMIT 1
) AS found ON true
ORDER BY wanted.place;

-- name: find_claim
-- The leases of claim $1, for use after its commit had an unknown outcome.
-- Reads all leases: this happens after a lost connection only.
SELECT lease.run_id, lease.node, lease.index, lease.generation, lease.attempt, lease.type, lease.queue, run.namespace,
       (extract(epoch FROM lease.deadline_at - lease.claimed_at) * 1000)::bigint AS timeout_ms,
       lease.lease_id, lease.deadline_at
FROM :"schema".task_leases AS lease
CROSS JOIN LATERAL (
    SELECT namespace FROM :"schema".workflow_runs AS run WHERE run.id = lease.run_id LIMIT 1
) AS run
WHERE lease.claim_id = $1::uuid;
