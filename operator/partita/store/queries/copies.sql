-- Runs that begin like the run $1 of the same transaction. Its rows are read once; what a start leaves null is left out.

-- name: copy_runs
-- hot: pruned
INSERT INTO :"schema".workflow_runs
    (id, definition_id, start_request_id, created_at, version, priority, total, generation, active, done, seq, revision,
     cr_generation, started_at, deadline_at, deadline_remaining_ms, applied_suspend, applied_cancel, status, stage, reason,
     pending_outcome, namespace, name, definition, started_by, idempotency_key, tags, attributes, context_json)
SELECT new.id, run.definition_id, new.start_request_id, run.created_at, run.version, run.priority, run.total,
       run.generation, run.active, run.done, run.seq, run.revision, run.cr_generation, run.started_at, run.deadline_at,
       run.deadline_remaining_ms, run.applied_suspend, run.applied_cancel, run.status, run.stage, run.reason,
       run.pending_outcome, run.namespace, new.name, run.definition, run.started_by, new.idempotency_key, new.tags,
       new.attributes, new.context_json
FROM (SELECT * FROM :"schema".workflow_runs WHERE id = $1::uuid OFFSET 0) AS run
CROSS JOIN unnest($2::uuid[], $3::uuid[], $4::text[], $5::text[], $6::jsonb[], $7::jsonb[], $8::json[])
    AS new (id, start_request_id, name, idempotency_key, tags, attributes, context_json);

-- name: copy_open_runs
-- hot: queue
INSERT INTO :"schema".open_runs (run_id, namespace, definition, name, started_by, tags, attributes)
SELECT new.id, run.namespace, run.definition, new.name, run.started_by, new.tags, new.attributes
FROM (SELECT * FROM :"schema".open_runs WHERE run_id = $1::uuid OFFSET 0) AS run
CROSS JOIN unnest($2::uuid[], $3::text[], $4::jsonb[], $5::jsonb[]) AS new (id, name, tags, attributes);

-- name: copy_tasks
-- hot: pruned
-- sorts: what one run begins with, all of which is copied
-- Positions in the queue go on from $3, run by run, in the order of the first run's tasks.
INSERT INTO :"schema".task_instances
    (run_id, index, attempt, ready_lane, ready_priority, ready_seq, queued_at, fired, state, input, queue, kind, node)
SELECT new.id, task.index, task.attempt, task.ready_lane, task.ready_priority,
       $3::bigint + (new.place - 1) * task.number + task.place, task.queued_at, task.fired, task.state, task.input,
       task.queue, task.kind, task.node
FROM unnest($2::uuid[]) WITH ORDINALITY AS new (id, place)
CROSS JOIN (
    SELECT *, row_number() OVER (ORDER BY ready_seq) - 1 AS place, count(*) OVER () AS number
    FROM :"schema".task_instances WHERE run_id = $1::uuid OFFSET 0
) AS task;

-- name: copy_ready
-- hot: pruned
-- sorts: what one run begins with, all of which is copied
-- The same positions. The first run's rows are found by the key that its tasks keep.
INSERT INTO :"schema".ready_tasks
    (run_id, seq, enqueued_at, expires_at, timeout_ms, index, attempt, generation, lane, priority, queue, namespace, node,
     type)
SELECT new.id, $3::bigint + (new.place - 1) * ready.number + ready.place, ready.enqueued_at, ready.expires_at,
       ready.timeout_ms, ready.index, ready.attempt, ready.generation, ready.lane, ready.priority, ready.queue,
       ready.namespace, ready.node, ready.type
FROM unnest($2::uuid[]) WITH ORDINALITY AS new (id, place)
CROSS JOIN (
    SELECT found.*, row_number() OVER (ORDER BY found.seq) - 1 AS place, count(*) OVER () AS number
    FROM :"schema".task_instances AS task
    CROSS JOIN LATERAL (
        SELECT * FROM :"schema".ready_tasks AS row
        WHERE row.queue = task.queue AND row.lane = task.ready_lane AND row.priority = task.ready_priority
          AND row.seq = task.ready_seq AND row.run_id = $1::uuid
        LIMIT 1
    ) AS found
    WHERE task.run_id = $1::uuid OFFSET 0
) AS ready;

-- name: copy_timers
-- hot: queue
INSERT INTO :"schema".timers (run_id, fire_at, remaining_ms, index, kind, node)
SELECT new.id, timer.fire_at, timer.remaining_ms, timer.index, timer.kind, timer.node
FROM (SELECT * FROM :"schema".timers WHERE run_id = $1::uuid OFFSET 0) AS timer
CROSS JOIN unnest($2::uuid[]) AS new (id);
