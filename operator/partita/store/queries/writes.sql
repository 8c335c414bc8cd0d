-- What a batch writes: one statement a table, however many events there are; for records two, since most changes are
-- those of an ordinary step, which touch a few columns of a row whose place (ctid) the same transaction has read, or an
-- earlier one of this process has left it at (direct.py).
--
-- A place stays valid until the transaction ends: nobody else changes a row of a locked run, and the locks that reading
-- it took keep its table from being rewritten. The id is compared as well: another month has the same places. One that
-- is remembered is compared with what stands there.
--
-- The wide updates find their rows in two steps: a LATERAL lookup by key, then the row at that place. Joined to the
-- arrays directly, with the bounds that prune months, the planner prefers to read every row between the smallest and
-- the largest id, once or once a row: it cannot know that old runs make that range a whole month. The bounds on the
-- arrays themselves make it expect few rows, so that the lookup wins.
--
-- Arrays are unnested side by side in a select list, which pads the shorter ones with nulls as FROM unnest(a, b, …)
-- does. In FROM each array has a tuplestore of its own: a fifth of a statement's time.

-- name: advance_runs
-- hot: pruned
-- An ordinary step: only these columns differ from what was read.
UPDATE :"schema".workflow_runs AS run
SET active = new.active, done = new.done, seq = new.seq, revision = new.revision, finished_at = new.finished_at,
    status = new.status, output_json = coalesce(new.output_json, run.output_json)
FROM (
    SELECT unnest($1::uuid[]) AS id, unnest($2::tid[]) AS place, unnest($3::int[]) AS active, unnest($4::int[]) AS done,
    unnest($5::int[]) AS seq, unnest($6::bigint[]) AS revision, unnest($7::timestamptz[]) AS finished_at,
    unnest($8::text[]) AS status, unnest($9::json[]) AS output_json
) AS new
WHERE run.ctid = new.place AND run.id = new.id AND run.id BETWEEN $10 AND $11 AND new.id BETWEEN $10 AND $11 /* AND proved */;

-- name: settle_tasks
-- hot: pruned
-- A task has its end: only these columns differ from what was read.
UPDATE :"schema".task_instances AS task
SET finished_at = new.finished_at, state = new.state, output = coalesce(new.output, task.output)
FROM (
    SELECT unnest($1::uuid[]) AS run_id, unnest($2::tid[]) AS place, unnest($3::text[]) AS node,
    unnest($4::int[]) AS index, unnest($5::timestamptz[]) AS finished_at, unnest($6::text[]) AS state,
    unnest($7::json[]) AS output
) AS new
WHERE task.ctid = new.place AND task.run_id = new.run_id AND task.node = new.node AND task.index = new.index
  AND task.run_id BETWEEN $8 AND $9 AND new.run_id BETWEEN $8 AND $9 /* AND proved */;

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
FROM (
    SELECT unnest($1::uuid[]) AS id, unnest($2::int[]) AS generation, unnest($3::int[]) AS active,
    unnest($4::int[]) AS done, unnest($5::int[]) AS seq, unnest($6::bigint[]) AS revision,
    unnest($7::bigint[]) AS cr_generation, unnest($8::timestamptz[]) AS started_at,
    unnest($9::timestamptz[]) AS finished_at, unnest($10::timestamptz[]) AS deadline_at,
    unnest($11::bigint[]) AS deadline_remaining_ms, unnest($12::bool[]) AS applied_suspend,
    unnest($13::bool[]) AS applied_cancel, unnest($14::text[]) AS applied_cancel_nodes, unnest($15::text[]) AS status,
    unnest($16::text[]) AS stage, unnest($17::text[]) AS reason, unnest($18::text[]) AS pending_outcome,
    unnest($19::jsonb[]) AS retry_counts, unnest($20::json[]) AS error_json, unnest($21::json[]) AS output_json
) AS new
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
FROM (
    SELECT unnest($1::uuid[]) AS run_id, unnest($2::int[]) AS index, unnest($3::int[]) AS attempt,
    unnest($4::smallint[]) AS edges_settled, unnest($5::smallint[]) AS edges_live,
    unnest($6::smallint[]) AS ready_lane, unnest($7::smallint[]) AS ready_priority, unnest($8::bigint[]) AS ready_seq,
    unnest($9::timestamptz[]) AS queued_at, unnest($10::timestamptz[]) AS first_failed_at,
    unnest($11::timestamptz[]) AS finished_at, unnest($12::bool[]) AS fired, unnest($13::bool[]) AS stepped_over,
    unnest($14::text[]) AS state, unnest($15::jsonb[]) AS retries, unnest($16::text[]) AS route,
    unnest($17::json[]) AS output, unnest($18::json[]) AS last_error, unnest($19::json[]) AS event,
    unnest($20::json[]) AS input, unnest($21::json[]) AS detail, unnest($22::text[]) AS queue,
    unnest($23::text[]) AS kind, unnest($24::text[]) AS node
) AS new
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
FROM (
    SELECT unnest($1::uuid[]) AS run_id, unnest($2::int[]) AS index, unnest($3::int[]) AS attempt,
    unnest($4::smallint[]) AS edges_settled, unnest($5::smallint[]) AS edges_live,
    unnest($6::smallint[]) AS ready_lane, unnest($7::smallint[]) AS ready_priority, unnest($8::bigint[]) AS ready_seq,
    unnest($9::timestamptz[]) AS queued_at, unnest($10::timestamptz[]) AS first_failed_at,
    unnest($11::timestamptz[]) AS finished_at, unnest($12::bool[]) AS fired, unnest($13::bool[]) AS stepped_over,
    unnest($14::text[]) AS state, unnest($15::jsonb[]) AS retries, unnest($16::text[]) AS route,
    unnest($17::json[]) AS output, unnest($18::json[]) AS last_error, unnest($19::json[]) AS event,
    unnest($20::json[]) AS input, unnest($21::json[]) AS detail, unnest($22::text[]) AS queue,
    unnest($23::text[]) AS kind, unnest($24::text[]) AS node
) AS new /* WHERE proved */;

-- name: clear_ready
-- hot: queue
-- First of the four clears. Each is a statement of its own: a claim that was under way when this one began moves its
-- row to task_leases, where only a statement that begins after it has committed sees it.
DELETE FROM :"schema".ready_tasks WHERE ctid = ANY (ARRAY (
    SELECT ready.ctid
    FROM (
        SELECT unnest($1::uuid[]) AS run_id, unnest($2::text[]) AS node, unnest($3::int[]) AS index,
        unnest($4::text[]) AS queue, unnest($5::smallint[]) AS lane, unnest($6::smallint[]) AS priority,
        unnest($7::bigint[]) AS seq
    ) AS key
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
    FROM (SELECT unnest($1::uuid[]) AS run_id, unnest($2::text[]) AS node, unnest($3::int[]) AS index) AS key
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
    FROM (
        SELECT unnest($1::uuid[]) AS run_id, unnest($2::text[]) AS kind, unnest($3::text[]) AS node,
        unnest($4::int[]) AS index
    ) AS key
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
    FROM (
        SELECT unnest($1::uuid[]) AS run_id, unnest($2::text[]) AS node, unnest($3::int[]) AS index,
        unnest($4::uuid[]) AS child_id
    ) AS key
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
SELECT unnest($1::uuid[]), unnest($2::bigint[]), unnest($3::timestamptz[]), unnest($4::timestamptz[]),
    unnest($5::bigint[]), unnest($6::int[]), unnest($7::int[]), unnest($8::int[]), unnest($9::smallint[]),
    unnest($10::smallint[]), unnest($11::text[]), unnest($12::text[]), unnest($13::text[]), unnest($14::text[])
/* WHERE proved */;

-- name: insert_leases
-- Tasks that are handed on to the worker whose report made them ready.
INSERT INTO :"schema".task_leases
    (run_id, lease_id, claim_id, claimed_at, deadline_at, index, attempt, generation, node, worker_id, queue, type)
SELECT unnest($1::uuid[]), unnest($2::uuid[]), unnest($3::uuid[]), unnest($4::timestamptz[]),
    unnest($5::timestamptz[]), unnest($6::int[]), unnest($7::int[]), unnest($8::int[]), unnest($9::text[]),
    unnest($10::text[]), unnest($11::text[]), unnest($12::text[])
/* WHERE proved */;

-- name: put_timers
-- hot: queue
INSERT INTO :"schema".timers AS timer (run_id, fire_at, remaining_ms, index, kind, node)
SELECT unnest($1::uuid[]), unnest($2::timestamptz[]), unnest($3::bigint[]), unnest($4::int[]), unnest($5::text[]),
    unnest($6::text[])
ON CONFLICT (run_id, kind, node, index) DO UPDATE
    SET fire_at = excluded.fire_at, remaining_ms = excluded.remaining_ms, failures = 0, dead_at = NULL, last_error = NULL;

-- name: insert_waits
INSERT INTO :"schema".waits (run_id, since, seq, index, name, node, child_id, subflow, alternative)
SELECT unnest($1::uuid[]), unnest($2::timestamptz[]), unnest($3::int[]), unnest($4::int[]), unnest($5::text[]),
    unnest($6::text[]), unnest($7::uuid[]), unnest($8::text[]), unnest($9::int[]);

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
SELECT unnest($1::uuid[]), unnest($2::int[]), unnest($3::timestamptz[]), unnest($4::timestamptz[]), unnest($5::text[]),
    unnest($6::text[]), unnest($7::text[]), unnest($8::text[]), unnest($9::text[]), unnest($10::json[]);

-- name: consume_signals
-- hot: pruned
-- Taken by a node, or refused by its wait (then without a time of consumption).
UPDATE :"schema".workflow_events AS signal
SET consumed_at = CASE WHEN taken.refused IS NULL THEN $5::timestamptz END, consumed_by = taken.node, refused = taken.refused
FROM (
    SELECT unnest($1::uuid[]) AS run_id, unnest($2::text[]) AS id, unnest($3::text[]) AS node,
    unnest($4::text[]) AS refused
) AS taken
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
SELECT unnest($1::uuid[]), unnest($2::int[]), unnest($3::int[]), unnest($4::timestamptz[]), unnest($5::timestamptz[]),
    unnest($6::int[]), unnest($7::int[]), unnest($8::text[]), unnest($9::text[]), unnest($10::text[]), unnest($11::json[]),
    unnest($12::json[])
/* WHERE proved */;

-- name: ended_runs
-- hot: pruned
-- What lists look for is copied from the run's own row, which is not read otherwise, to the two that follow.
SELECT ended.*, run.started_by, run.tags, run.attributes
FROM (
    SELECT unnest($1::uuid[]) AS run_id, unnest($2::timestamptz[]) AS finished_at, unnest($3::int[]) AS generation,
    unnest($4::int[]) AS seq, unnest($5::text[]) AS status, unnest($6::text[]) AS namespace,
    unnest($7::text[]) AS definition, unnest($8::text[]) AS name, unnest($9::text[]) AS reason
) AS ended
CROSS JOIN LATERAL (
    SELECT started_by, tags, attributes FROM :"schema".workflow_runs AS row
    WHERE row.id = ended.run_id AND row.id BETWEEN $10 AND $11
    LIMIT 1
) AS run
WHERE ended.run_id BETWEEN $10 AND $11 /* AND proved */;

-- name: insert_labels
-- utility: reads ended_runs, with which it is sent
-- A row a label, as readers make it, with what else lists ask for (see V004).
INSERT INTO :"schema".run_labels (run_id, label, status, origin, labels)
SELECT run.run_id, label.hash, run.status,
       ('x' || left(md5(run.namespace), 4) || left(md5(run.definition), 6) || left(md5(run.started_by), 6))::bit(64)::bigint,
       known.bits
FROM ended_runs AS run
CROSS JOIN LATERAL (
    SELECT array_agg(hash) AS hashes,
           bit_or((1::bigint << (hash & 63)::int) | (1::bigint << (hash >> 6 & 63)::int)
                  | (1::bigint << (hash >> 12 & 63)::int) | (1::bigint << (hash >> 18 & 63)::int)) AS bits
    FROM (
        SELECT ('x' || left(md5('#' || tag), 16))::bit(64)::bigint AS hash
        FROM jsonb_array_elements_text(run.tags) AS tag
        UNION ALL
        SELECT ('x' || left(md5(key || '=' || value), 16))::bit(64)::bigint FROM jsonb_each_text(run.attributes)
    ) AS label
) AS known
CROSS JOIN LATERAL unnest(known.hashes) AS label (hash)
WHERE run.tags IS NOT NULL OR run.attributes IS NOT NULL;

-- name: insert_endings
-- utility: reads ended_runs, with which it is sent
INSERT INTO :"schema".run_endings
    (run_id, finished_at, generation, seq, status, namespace, definition, name, reason, started_by)
SELECT run_id, finished_at, generation, seq, status, namespace, definition, name, reason, started_by FROM ended_runs;

-- name: delete_open_runs
-- hot: queue
DELETE FROM :"schema".open_runs WHERE run_id = ANY ($1::uuid[]) /* AND proved */;

-- name: queue_projection
-- hot: queue
-- The newest revision must win: with DO NOTHING a change that comes while an older one is being written would be lost.
INSERT INTO :"schema".projection_queue AS queued (run_id, revision, due_at)
SELECT unnest($1::uuid[]), unnest($2::bigint[]), unnest($3::timestamptz[])
/* WHERE proved */
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
