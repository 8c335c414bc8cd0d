-- What a batch writes: one statement a table, however many events there are.
--
-- Updates of records find their rows in two steps: a LATERAL lookup by key, then the row at that place (ctid; nobody else
-- may change it, as the run is locked). Joined to the arrays directly, with the bounds that prune months, the planner
-- prefers to read every row between the smallest and the largest id, once or once a row: it cannot know that old runs
-- make that range a whole month. The bounds on the arrays themselves make it expect few rows, so that the lookup wins.

-- name: update_runs
-- hot: pruned
UPDATE :"schema".workflow_runs AS run
SET generation = new.generation, active = new.active, done = new.done, seq = new.seq, revision = new.revision,
    cr_generation = new.cr_generation, started_at = new.started_at, finished_at = new.finished_at,
    deadline_at = new.deadline_at, deadline_remaining_ms = new.deadline_remaining_ms,
    applied_suspend = new.applied_suspend, applied_cancel = new.applied_cancel,
    applied_cancel_nodes = string_to_array(new.applied_cancel_nodes, ','), status = new.status, stage = new.stage,
    reason = new.reason, pending_outcome = new.pending_outcome, retry_counts = new.retry_counts,
    error_json = new.error_json, output_json = coalesce(new.output_json, run.output_json)
FROM unnest(
    $1::uuid[], $2::int[], $3::int[], $4::int[], $5::int[], $6::bigint[], $7::bigint[], $8::timestamptz[],
    $9::timestamptz[], $10::timestamptz[], $11::bigint[], $12::bool[], $13::bool[], $14::text[], $15::text[], $16::text[],
    $17::text[], $18::text[], $19::jsonb[], $20::json[], $21::json[])
    AS new (id, generation, active, done, seq, revision, cr_generation, started_at, finished_at, deadline_at,
            deadline_remaining_ms, applied_suspend, applied_cancel, applied_cancel_nodes, status, stage, reason,
            pending_outcome, retry_counts, error_json, output_json)
CROSS JOIN LATERAL (
    SELECT ctid AS place FROM :"schema".workflow_runs AS row
    WHERE row.id = new.id AND row.id BETWEEN $22 AND $23
    LIMIT 1
) AS found
WHERE run.ctid = found.place AND run.id = new.id AND run.id BETWEEN $22 AND $23 AND new.id BETWEEN $22 AND $23;

-- name: update_tasks
-- hot: pruned
-- Payloads that a decision did not set keep their value: it may never have read them.
UPDATE :"schema".task_instances AS task
SET attempt = new.attempt, edges_settled = new.edges_settled, edges_live = new.edges_live, ready_lane = new.ready_lane,
    ready_priority = new.ready_priority, ready_seq = new.ready_seq, queued_at = new.queued_at,
    first_failed_at = new.first_failed_at, finished_at = new.finished_at, fired = new.fired,
    stepped_over = new.stepped_over, state = new.state, retries = new.retries, route = string_to_array(new.route, ','),
    output = coalesce(new.output, task.output), last_error = new.last_error, event = coalesce(new.event, task.event),
    input = coalesce(new.input, task.input), detail = new.detail, queue = coalesce(new.queue, task.queue)
FROM unnest(
    $1::uuid[], $2::int[], $3::int[], $4::smallint[], $5::smallint[], $6::smallint[], $7::smallint[], $8::bigint[],
    $9::timestamptz[], $10::timestamptz[], $11::timestamptz[], $12::bool[], $13::bool[], $14::text[], $15::jsonb[],
    $16::text[], $17::json[], $18::json[], $19::json[], $20::json[], $21::json[], $22::text[], $23::text[], $24::text[])
    AS new (run_id, index, attempt, edges_settled, edges_live, ready_lane, ready_priority, ready_seq, queued_at,
            first_failed_at, finished_at, fired, stepped_over, state, retries, route, output, last_error, event, input,
            detail, queue, kind, node)
CROSS JOIN LATERAL (
    SELECT ctid AS place FROM :"schema".task_instances AS row
    WHERE row.run_id = new.run_id AND row.node = new.node AND row.index = new.index AND row.run_id BETWEEN $25 AND $26
    LIMIT 1
) AS found
WHERE task.ctid = found.place AND task.run_id = new.run_id AND task.node = new.node AND task.index = new.index
  AND task.run_id BETWEEN $25 AND $26 AND new.run_id BETWEEN $25 AND $26;

-- name: insert_tasks
INSERT INTO :"schema".task_instances
    (run_id, index, attempt, edges_settled, edges_live, ready_lane, ready_priority, ready_seq, queued_at,
     first_failed_at, finished_at, fired, stepped_over, state, retries, route, output, last_error, event, input, detail,
     queue, kind, node)
SELECT run_id, index, attempt, edges_settled, edges_live, ready_lane, ready_priority, ready_seq, queued_at,
       first_failed_at, finished_at, fired, stepped_over, state, retries, string_to_array(route, ','), output,
       last_error, event, input, detail, queue, kind, node
FROM unnest(
    $1::uuid[], $2::int[], $3::int[], $4::smallint[], $5::smallint[], $6::smallint[], $7::smallint[], $8::bigint[],
    $9::timestamptz[], $10::timestamptz[], $11::timestamptz[], $12::bool[], $13::bool[], $14::text[], $15::jsonb[],
    $16::text[], $17::json[], $18::json[], $19::json[], $20::json[], $21::json[], $22::text[], $23::text[], $24::text[])
    AS new (run_id, index, attempt, edges_settled, edges_live, ready_lane, ready_priority, ready_seq, queued_at,
            first_failed_at, finished_at, fired, stepped_over, state, retries, route, output, last_error, event, input,
            detail, queue, kind, node);

-- name: clear_ready
-- hot: queue
-- First of the four clears. Each is a statement of its own: a claim that was under way when this one began moves its
-- row to task_leases, where only a statement that begins after it has committed sees it.
DELETE FROM :"schema".ready_tasks WHERE ctid = ANY (ARRAY (
    SELECT ready.ctid
    FROM unnest($1::uuid[], $2::text[], $3::int[], $4::text[], $5::smallint[], $6::smallint[], $7::bigint[])
         AS key (run_id, node, index, queue, lane, priority, seq)
    CROSS JOIN LATERAL (
        SELECT ctid FROM :"schema".ready_tasks AS row
        WHERE row.queue = key.queue AND row.lane = key.lane AND row.priority = key.priority AND row.seq = key.seq
          AND row.run_id = key.run_id AND row.node = key.node AND row.index = key.index
        LIMIT 1
    ) AS ready
));

-- name: clear_leases
-- hot: queue
-- node null: all of the run. OFFSET 0 keeps the lookup a lookup: merged into the join, it may become a scan.
DELETE FROM :"schema".task_leases WHERE ctid = ANY (ARRAY (
    SELECT lease.ctid
    FROM unnest($1::uuid[], $2::text[], $3::int[]) AS key (run_id, node, index)
    CROSS JOIN LATERAL (
        SELECT ctid FROM :"schema".task_leases AS row
        WHERE row.run_id = key.run_id AND (key.node IS NULL OR (row.node = key.node AND row.index = key.index))
        OFFSET 0
    ) AS lease
));

-- name: clear_timers
-- hot: queue
-- kind null: all of the run.
DELETE FROM :"schema".timers WHERE ctid = ANY (ARRAY (
    SELECT timer.ctid
    FROM unnest($1::uuid[], $2::text[], $3::text[], $4::int[]) AS key (run_id, kind, node, index)
    CROSS JOIN LATERAL (
        SELECT ctid FROM :"schema".timers AS row
        WHERE row.run_id = key.run_id
          AND (key.kind IS NULL OR (row.kind = key.kind AND row.node = key.node AND row.index = key.index))
        OFFSET 0
    ) AS timer
));

-- name: clear_waits
-- hot: queue
-- node null: all of the run, those it keeps for children too. A node's are the run's own, or those of one child.
DELETE FROM :"schema".waits WHERE ctid = ANY (ARRAY (
    SELECT wait.ctid
    FROM unnest($1::uuid[], $2::text[], $3::int[], $4::uuid[]) AS key (run_id, node, index, child_id)
    CROSS JOIN LATERAL (
        SELECT ctid FROM :"schema".waits AS row
        WHERE row.run_id = key.run_id
          AND (key.node IS NULL
               OR (row.node = key.node AND row.index = key.index AND row.child_id IS NOT DISTINCT FROM key.child_id))
        OFFSET 0
    ) AS wait
));

-- name: insert_ready
INSERT INTO :"schema".ready_tasks
    (run_id, seq, enqueued_at, expires_at, timeout_ms, index, attempt, generation, lane, priority, queue, namespace, node,
     type)
SELECT * FROM unnest(
    $1::uuid[], $2::bigint[], $3::timestamptz[], $4::timestamptz[], $5::bigint[], $6::int[], $7::int[], $8::int[],
    $9::smallint[], $10::smallint[], $11::text[], $12::text[], $13::text[], $14::text[]);

-- name: insert_leases
-- Tasks that are handed on to the worker whose report made them ready.
INSERT INTO :"schema".task_leases
    (run_id, lease_id, claim_id, claimed_at, deadline_at, index, attempt, generation, node, worker_id, queue, type)
SELECT * FROM unnest(
    $1::uuid[], $2::uuid[], $3::uuid[], $4::timestamptz[], $5::timestamptz[], $6::int[], $7::int[], $8::int[], $9::text[],
    $10::text[], $11::text[], $12::text[]);

-- name: put_timers
-- hot: queue
INSERT INTO :"schema".timers AS timer (run_id, fire_at, remaining_ms, index, kind, node)
SELECT * FROM unnest($1::uuid[], $2::timestamptz[], $3::bigint[], $4::int[], $5::text[], $6::text[])
ON CONFLICT (run_id, kind, node, index) DO UPDATE
    SET fire_at = excluded.fire_at, remaining_ms = excluded.remaining_ms, failures = 0, dead_at = NULL, last_error = NULL;

-- name: insert_waits
INSERT INTO :"schema".waits (run_id, since, seq, index, name, node, child_id, subflow, alternative)
SELECT * FROM unnest(
    $1::uuid[], $2::timestamptz[], $3::int[], $4::int[], $5::text[], $6::text[], $7::uuid[], $8::text[], $9::int[]);

-- name: insert_messages
-- Numbered in the order of the arrays, which is the order in which a run applies them. $4: how long, in ms, they are left
-- to the process that sends them.
INSERT INTO :"schema".run_inbox (run_id, kind, body, due_at)
SELECT run_id, kind, body, clock_timestamp() + $4::bigint * interval '1 millisecond'
FROM unnest($1::uuid[], $2::text[], $3::json[]) WITH ORDINALITY AS new (run_id, kind, body, place)
ORDER BY place
RETURNING id;

-- name: insert_signals
INSERT INTO :"schema".workflow_events
    (run_id, seq, created_at, consumed_at, consumed_by, refused, id, name, sender, payload)
SELECT * FROM unnest(
    $1::uuid[], $2::int[], $3::timestamptz[], $4::timestamptz[], $5::text[], $6::text[], $7::text[], $8::text[],
    $9::text[], $10::json[]);

-- name: consume_signals
-- hot: pruned
-- Taken by a node, or refused by its wait (then without a time of consumption).
UPDATE :"schema".workflow_events AS signal
SET consumed_at = CASE WHEN taken.refused IS NULL THEN $5::timestamptz END, consumed_by = taken.node, refused = taken.refused
FROM unnest($1::uuid[], $2::text[], $3::text[], $4::text[]) AS taken (run_id, id, node, refused)
CROSS JOIN LATERAL (
    SELECT ctid AS place FROM :"schema".workflow_events AS row
    WHERE row.run_id = taken.run_id AND row.id = taken.id AND row.run_id BETWEEN $6 AND $7
    LIMIT 1
) AS found
WHERE signal.ctid = found.place AND signal.run_id = taken.run_id AND signal.id = taken.id
  AND signal.run_id BETWEEN $6 AND $7 AND taken.run_id BETWEEN $6 AND $7;

-- name: insert_history
INSERT INTO :"schema".run_history
    (run_id, seq, generation, at, started_at, index, attempt, event, node, who, error, details)
SELECT * FROM unnest(
    $1::uuid[], $2::int[], $3::int[], $4::timestamptz[], $5::timestamptz[], $6::int[], $7::int[], $8::text[], $9::text[],
    $10::text[], $11::json[], $12::json[]);

-- name: insert_endings
-- hot: pruned
-- What lists look for is copied from the run's own row, which is not read otherwise; a row a label, as readers make it.
WITH new AS (
    SELECT ended.*, run.started_by, run.tags, run.attributes
    FROM unnest(
        $1::uuid[], $2::timestamptz[], $3::int[], $4::int[], $5::text[], $6::text[], $7::text[], $8::text[], $9::text[])
        AS ended (run_id, finished_at, generation, seq, status, namespace, definition, name, reason)
    CROSS JOIN LATERAL (
        SELECT started_by, tags, attributes FROM :"schema".workflow_runs AS row
        WHERE row.id = ended.run_id AND row.id BETWEEN $10 AND $11
        LIMIT 1
    ) AS run
    WHERE ended.run_id BETWEEN $10 AND $11
), labelled AS (
    INSERT INTO :"schema".run_labels (run_id, label, status)
    SELECT new.run_id, ('x' || left(md5(label.text), 16))::bit(64)::bigint, new.status
    FROM new
    CROSS JOIN LATERAL (
        SELECT '#' || tag AS text FROM jsonb_array_elements_text(new.tags) AS tag
        UNION ALL
        SELECT key || '=' || value FROM jsonb_each_text(new.attributes)
    ) AS label
    WHERE new.tags IS NOT NULL OR new.attributes IS NOT NULL
)
INSERT INTO :"schema".run_endings
    (run_id, finished_at, generation, seq, status, namespace, definition, name, reason, started_by)
SELECT run_id, finished_at, generation, seq, status, namespace, definition, name, reason, started_by FROM new;

-- name: delete_open_runs
-- hot: queue
DELETE FROM :"schema".open_runs WHERE run_id = ANY ($1::uuid[]);

-- name: queue_projection
-- hot: queue
-- The newest revision must win: with DO NOTHING a change that comes while an older one is being written would be lost.
INSERT INTO :"schema".projection_queue AS queued (run_id, revision, due_at)
SELECT * FROM unnest($1::uuid[], $2::bigint[], $3::timestamptz[])
ON CONFLICT (run_id) DO UPDATE SET revision = excluded.revision, due_at = least(queued.due_at, excluded.due_at);

-- name: fail_timer
-- hot: queue
-- Applying it failed: later again, and given up after $6 failures.
UPDATE :"schema".timers
SET failures = failures + 1, last_error = $5,
    dead_at = CASE WHEN failures + 1 >= $6 THEN clock_timestamp() END,
    fire_at = CASE WHEN failures + 1 >= $6 THEN 'infinity'::timestamptz
                   ELSE clock_timestamp() + least(2 ^ failures, 3600) * interval '1 second' END
WHERE run_id = $1 AND kind = $2 AND node = $3 AND index = $4
RETURNING dead_at IS NOT NULL AS dead;

-- name: drop_undeliverable
-- hot: pruned
-- A message to a run that neither exists nor is about to start goes; both are looked at in one moment, as the start
-- of a run deletes its row and inserts the run together.
DELETE FROM :"schema".run_inbox AS message
WHERE message.id = $1::bigint
  AND NOT EXISTS (SELECT FROM :"schema".workflow_runs AS run WHERE run.id = $2::uuid)
  AND NOT EXISTS (SELECT FROM :"schema".run_inbox AS start
                  WHERE start.run_id = $2::uuid AND start.kind IN ('start', 'ChildStart'))
RETURNING id;

-- name: fail_inbox
-- hot: queue
UPDATE :"schema".run_inbox
SET failures = failures + 1, last_error = $2,
    dead_at = CASE WHEN failures + 1 >= $3 THEN clock_timestamp() END,
    due_at = clock_timestamp() + least(2 ^ failures, 3600) * interval '1 second'
WHERE id = $1
RETURNING dead_at IS NOT NULL AS dead;

-- name: show_given_up
-- hot: pruned
-- The status of the run that stands still because of it is to say so, which takes a new revision.
WITH run AS (
    UPDATE :"schema".workflow_runs SET revision = revision + 1
    WHERE id = $1::uuid AND cr_uid IS NOT NULL RETURNING id, revision
)
INSERT INTO :"schema".projection_queue AS queued (run_id, revision, due_at)
SELECT id, revision, clock_timestamp() FROM run
ON CONFLICT (run_id) DO UPDATE SET revision = excluded.revision, due_at = least(queued.due_at, excluded.due_at)
RETURNING run_id;
