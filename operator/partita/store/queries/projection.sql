-- What the operator reads and writes: statuses to show, refused objects, its term, and the comparison with the cluster.

-- name: projection_due
-- The current epoch (always one row) and the runs whose status is due, the longest due first.
-- It reads the whole queue, a few narrow rows for each run that is under way; an index on due_at would cost every
-- transaction that queues a status more than this costs the one process that asks.
-- $1 = most rows.
SELECT s.epoch, q.run_id, q.revision
FROM :"schema".engine_state s
LEFT JOIN LATERAL (
    SELECT run_id, revision
    FROM :"schema".projection_queue
    WHERE due_at <= clock_timestamp()
    ORDER BY due_at
    LIMIT $1::int
) q ON true;

-- name: projection_runs
-- Run rows of one batch. $1 = run ids, $2 and $3 = their bounds, $4 = largest output in bytes.
-- hot: pruned
SELECT r.id, r.revision, r.engine_id, r.cr_uid, r.namespace, r.name, r.cr_generation, r.definition, r.version,
       r.status, r.stage, r.reason, r.done, r.total, r.applied_suspend, r.created_at, r.started_at, r.finished_at,
       r.error_json ->> 'type' AS error_type, left(r.error_json ->> 'message', 3000) AS error_message,
       CASE WHEN r.status = 'Succeeded' AND octet_length(r.output_json::text) <= $4::int THEN r.output_json END AS output,
       clock_timestamp() AS now
FROM :"schema".workflow_runs r
WHERE r.id = ANY ($1::uuid[]) AND r.id BETWEEN $2::uuid AND $3::uuid;

-- name: projection_nodes
-- The nodes that people look for first, at most $4 a run. $1 = run ids, $2 and $3 = their bounds. Only the first row of
-- each node is looked at, which of a loop is its group row: no items are read, however many there are.
-- hot: pruned 2
SELECT r.id AS run_id, t.*
FROM unnest($1::uuid[]) AS r (id)
CROSS JOIN LATERAL (
    WITH RECURSIVE place AS (
        (SELECT node, index FROM :"schema".task_instances AS row
         WHERE row.run_id = r.id AND row.run_id BETWEEN $2::uuid AND $3::uuid ORDER BY row.node, row.index LIMIT 1)
        UNION ALL
        SELECT next.node, next.index
        FROM place CROSS JOIN LATERAL (
            SELECT node, index FROM :"schema".task_instances AS row
            WHERE row.run_id = r.id AND row.run_id BETWEEN $2::uuid AND $3::uuid AND row.node > place.node
            ORDER BY row.node, row.index LIMIT 1
        ) AS next
    )
    SELECT t.node, t.index, t.attempt, t.finished_at, t.last_error ->> 'type' AS error_type,
           left(t.last_error ->> 'message', 1024) AS error_message, t.detail,
           CASE WHEN t.state = 'Queued' AND l.run_id IS NOT NULL THEN 'Running' ELSE t.state END AS state
    FROM place
    CROSS JOIN LATERAL (
        SELECT * FROM :"schema".task_instances AS row
        WHERE row.run_id = r.id AND row.run_id BETWEEN $2::uuid AND $3::uuid AND row.node = place.node
          AND row.index = place.index
        LIMIT 1
    ) AS t
    LEFT JOIN :"schema".task_leases l ON l.run_id = t.run_id AND l.node = t.node AND l.index = t.index AND t.state = 'Queued'
    ORDER BY CASE t.state WHEN 'Failed' THEN 0 WHEN 'Queued' THEN 1 WHEN 'Waiting' THEN 2 WHEN 'Cancelled' THEN 3
                          WHEN 'Completed' THEN 4 WHEN 'Pending' THEN 5 ELSE 6 END,
             t.finished_at DESC NULLS LAST, t.node, t.index
    LIMIT $4::int
) t;

-- name: projection_waiting
-- What each run waits for: signals (kind signal), those of its children's nodes too, timers, and children (kind child,
-- named by their id; of a loop without a name), at most 50 of each a run. $1 = run ids, $2 and $3 = their bounds.
-- A child is dead if its start, or the news of its end, was given up; these are looked for only if a child is waited for.
-- hot: pruned
-- sorts: what one run waits for, of which 50 are shown
WITH dead AS MATERIALIZED (
    SELECT coalesce((body -> 'parent' ->> 0)::uuid, run_id) AS run_id,
           coalesce(body ->> 'node', body -> 'parent' ->> 1) AS node, coalesce(last_error, '') AS error
    FROM :"schema".run_inbox
    WHERE dead_at IS NOT NULL AND kind IN ('ChildStart', 'ChildFinished')
)
SELECT r.id AS run_id, w.*
FROM unnest($1::uuid[]) AS r (id)
CROSS JOIN LATERAL (
    (SELECT 'signal' AS kind, name, node, index, NULL::timestamptz AS until, NULL::text AS dead, child_id AS child
     FROM :"schema".waits WHERE run_id = r.id ORDER BY name, seq LIMIT 50)
    UNION ALL
    (SELECT kind, '', node, index, CASE WHEN isfinite(fire_at) THEN fire_at END,
            CASE WHEN dead_at IS NOT NULL THEN coalesce(last_error, '') END, NULL
     FROM :"schema".timers WHERE run_id = r.id ORDER BY kind, node, index LIMIT 50)
    UNION ALL
    (WITH RECURSIVE place AS (
        (SELECT node, index FROM :"schema".task_instances AS row
         WHERE row.run_id = r.id AND row.run_id BETWEEN $2::uuid AND $3::uuid ORDER BY row.node, row.index LIMIT 1)
        UNION ALL
        SELECT next.node, next.index
        FROM place CROSS JOIN LATERAL (
            SELECT node, index FROM :"schema".task_instances AS row
            WHERE row.run_id = r.id AND row.run_id BETWEEN $2::uuid AND $3::uuid AND row.node > place.node
            ORDER BY row.node, row.index LIMIT 1
        ) AS next
    )
     SELECT 'child', coalesce(task.child, ''), task.node, task.index, NULL,
            (SELECT dead.error FROM dead WHERE dead.run_id = r.id AND dead.node = task.node LIMIT 1), task.child::uuid
     FROM place CROSS JOIN LATERAL (
         SELECT node, index, detail ->> 'child' AS child FROM :"schema".task_instances AS row
         WHERE row.run_id = r.id AND row.run_id BETWEEN $2::uuid AND $3::uuid AND row.node = place.node
           AND row.index = place.index AND row.kind = 'workflow' AND row.state = 'Waiting'
         LIMIT 1
     ) AS task
     LIMIT 50)
) w;

-- name: projection_signals
-- The newest $4 signals of each run, and those that are still in its object's spec ($5 = run ids, $6 = signal ids).
-- $1 = run ids, $2 and $3 = their bounds.
-- hot: pruned 2
-- sorts: signals of one run, where a month without statistics makes them look few
SELECT r.id AS run_id, e.id, e.seq, e.consumed_by, left(e.refused, 1024) AS refused, e.listed
FROM unnest($1::uuid[]) AS r (id)
CROSS JOIN LATERAL (
    (SELECT id, seq, consumed_by, refused, false AS listed
     FROM :"schema".workflow_events
     WHERE run_id = r.id AND run_id BETWEEN $2::uuid AND $3::uuid
     ORDER BY seq DESC
     LIMIT $4::int)
    UNION ALL
    SELECT s.id, s.seq, s.consumed_by, s.refused, true
    FROM unnest($5::uuid[], $6::text[]) AS l (run_id, id)
    JOIN :"schema".workflow_events s ON s.run_id = l.run_id AND s.id = l.id
    WHERE l.run_id = r.id AND s.run_id BETWEEN $2::uuid AND $3::uuid
) e;

-- name: projection_suspensions
-- When each run was last suspended or resumed. $1 = run ids, $2 and $3 = their bounds, $4 = names of the history events.
-- hot: pruned
SELECT r.id AS run_id, h.at
FROM unnest($1::uuid[]) AS r (id)
CROSS JOIN LATERAL (
    SELECT at
    FROM :"schema".run_history
    WHERE run_id = r.id AND run_id BETWEEN $2::uuid AND $3::uuid AND event = ANY ($4::text[])
    ORDER BY seq DESC
    LIMIT 1
) h;

-- name: projection_done
-- Forget the revisions that were shown; a newer one stays. $1 = run ids, $2 = revisions, $3 = epoch.
-- hot: queue
DELETE FROM :"schema".projection_queue q
WHERE q.run_id = ANY ($1::uuid[])
  AND (q.run_id, q.revision) IN (SELECT run_id, revision FROM unnest($1::uuid[], $2::bigint[]) AS d (run_id, revision))
  AND EXISTS (SELECT 1 FROM :"schema".engine_state s WHERE s.epoch = $3::bigint);

-- name: projection_postpone
-- Try again later what could not be shown now. $1 = run ids, $2 = milliseconds.
-- hot: queue
UPDATE :"schema".projection_queue
SET due_at = clock_timestamp() + $2::bigint * interval '1 millisecond'
WHERE run_id = ANY ($1::uuid[]);

-- name: projection_requeue
-- Queue the runs whose object shows an older revision than the record. $1 = run ids, $2 = revisions shown,
-- $3 and $4 = bounds of the ids.
-- hot: pruned
INSERT INTO :"schema".projection_queue (run_id, revision, due_at)
SELECT r.id, r.revision, clock_timestamp()
FROM :"schema".workflow_runs r
JOIN unnest($1::uuid[], $2::bigint[]) AS shown (id, revision) ON shown.id = r.id
WHERE r.id = ANY ($1::uuid[]) AND r.id BETWEEN $3::uuid AND $4::uuid
  AND r.revision > shown.revision AND r.cr_uid IS NOT NULL
ON CONFLICT (run_id) DO NOTHING;

-- name: run_object
-- The object that a run belongs to. $1 = run id.
-- hot: pruned
SELECT cr_uid, namespace, name FROM :"schema".workflow_runs WHERE id = $1::uuid AND cr_uid IS NOT NULL;

-- name: run_adopt
-- Another object takes the run of one that is gone; its controls are then applied from its first generation on.
-- $1 = run id, $2 = uid of the object that is gone, $3 = uid, $4 = name.
-- hot: pruned
WITH moved AS (
    UPDATE :"schema".workflow_runs
    SET cr_uid = $3::text, name = $4::text, cr_generation = 0
    WHERE id = $1::uuid AND cr_uid = $2::text
    RETURNING id, namespace, status, definition
), opened AS (
    UPDATE :"schema".open_runs SET cr_uid = $3::text, name = $4::text
    WHERE run_id = $1::uuid AND EXISTS (SELECT FROM moved)
), ended AS (
    UPDATE :"schema".run_endings e SET name = $4::text
    FROM moved m
    WHERE e.run_id = $1::uuid AND e.namespace = m.namespace AND e.status = m.status
      AND e.definition = m.definition AND e.name <> $4::text
)
SELECT id FROM moved;

-- name: refusal_record
-- Remember why an object has no run; a refusal that says the same as before is not shown again.
-- $1 = engine id, $2 = cr uid, $3 = cr generation, $4 = waiting, $5 = namespace, $6 = name, $7 = definition, $8 = reason,
-- $9 = message.
INSERT INTO :"schema".run_refusals AS f
    (engine_id, cr_uid, cr_generation, due_at, waiting, cr_namespace, cr_name, definition, reason, message)
VALUES ($1::text, $2::text, $3::bigint, clock_timestamp(), $4::bool, $5::text, $6::text, $7::text, $8::text, $9::text)
ON CONFLICT (engine_id, cr_uid) DO UPDATE
SET cr_generation = excluded.cr_generation, due_at = clock_timestamp(), waiting = excluded.waiting,
    definition = excluded.definition, reason = excluded.reason, message = excluded.message
WHERE (f.cr_generation, f.waiting, f.reason, f.message)
      IS DISTINCT FROM (excluded.cr_generation, excluded.waiting, excluded.reason, excluded.message);

-- name: refusal_forget
-- The object has a run now, or is gone. $1 = engine id, $2 = cr uids.
DELETE FROM :"schema".run_refusals WHERE engine_id = $1::text AND cr_uid = ANY ($2::text[]);

-- name: refusals_due
-- Refusals whose object does not show them yet. $1 = engine id, $2 = most rows.
SELECT cr_uid, cr_generation, created_at, waiting, cr_namespace, cr_name, definition, reason, message,
       clock_timestamp() AS now
FROM :"schema".run_refusals
WHERE engine_id = $1::text AND due_at <= clock_timestamp()
ORDER BY due_at
LIMIT $2::int;

-- name: refusal_shown
-- $1 = engine id, $2 = cr uids, $3 = cr generations, $4 = reasons; another refusal in the meantime stays due.
UPDATE :"schema".run_refusals f
SET due_at = NULL
FROM unnest($2::text[], $3::bigint[], $4::text[]) AS d (cr_uid, cr_generation, reason)
WHERE f.engine_id = $1::text AND f.cr_uid = d.cr_uid AND f.cr_generation = d.cr_generation AND f.reason = d.reason;

-- name: refusal_postpone
-- $1 = engine id, $2 = cr uids, $3 = milliseconds.
UPDATE :"schema".run_refusals
SET due_at = clock_timestamp() + $3::bigint * interval '1 millisecond'
WHERE engine_id = $1::text AND cr_uid = ANY ($2::text[]) AND due_at IS NOT NULL;

-- name: refusals_waiting
-- Objects that wait for a definition. $1 = engine id, $2 = namespace, $3 = definition.
SELECT cr_uid, cr_namespace, cr_name
FROM :"schema".run_refusals
WHERE engine_id = $1::text AND waiting AND cr_namespace = $2::text AND definition = $3::text;

-- name: refusals_recorded
-- Every refused object of an engine. $1 = engine id.
SELECT cr_uid, cr_namespace, cr_name, waiting FROM :"schema".run_refusals WHERE engine_id = $1::text;

-- name: engine_read
SELECT engine_id, epoch, paused FROM :"schema".engine_state;

-- name: engine_claim
-- Begin a new term; no row if the schema belongs to another engine. $1 = engine id.
UPDATE :"schema".engine_state
SET epoch = epoch + 1, engine_id = $1::text
WHERE engine_id IS NULL OR engine_id = $1::text
RETURNING epoch;

-- name: engine_pause
-- $1 = paused, $2 = epoch.
UPDATE :"schema".engine_state SET paused = $1::bool WHERE epoch = $2::bigint AND paused <> $1::bool;

-- name: resync_open_runs
-- Unfinished runs that WorkflowRun objects ordered. $1 = cluster uid, $2 = engine id.
SELECT run_id, cr_uid, namespace, name
FROM :"schema".open_runs
WHERE cluster_uid = $1::text AND engine_id = $2::text AND cr_uid IS NOT NULL;

-- name: resync_definitions
-- Deployed definitions that came from objects. $1 = what created_by begins with.
SELECT namespace, name FROM :"schema".workflow_definitions WHERE deployed AND starts_with(created_by, $1::text);

-- name: operator_counts
-- Statuses to write, unfinished runs and dead letters, none counted beyond its limit. $1 = most rows, $2 = most dead.
SELECT (SELECT count(*) FROM (SELECT FROM :"schema".projection_queue LIMIT $1::int) row) AS projection_rows,
       (SELECT count(*) FROM (SELECT FROM :"schema".open_runs LIMIT $1::int) row) AS open_runs,
       (SELECT count(*) FROM (SELECT FROM :"schema".run_inbox WHERE dead_at IS NOT NULL LIMIT $2::int) row)
       + (SELECT count(*) FROM (
            SELECT FROM :"schema".timers WHERE fire_at = 'infinity' AND dead_at IS NOT NULL LIMIT $2::int
         ) row) AS dead_letters;

-- name: operator_queues
-- The fullest queues, of at most $1 waiting and $1 running tasks, with the live workers that serve them. $2 = most queues.
WITH ready AS (
    SELECT queue, count(*) AS ready, min(enqueued_at) AS oldest_at
    FROM (SELECT queue, enqueued_at FROM :"schema".ready_tasks LIMIT $1::int) row GROUP BY queue
), leased AS (
    SELECT queue, count(*) AS running
    FROM (SELECT queue FROM :"schema".task_leases LIMIT $1::int) row GROUP BY queue
), serving AS (
    SELECT unnest(queues) AS queue, count(*) AS workers FROM :"schema".workers
    WHERE expires_at > clock_timestamp() GROUP BY 1
)
SELECT queue, coalesce(ready, 0) AS ready, coalesce(running, 0) AS running, coalesce(workers, 0) AS workers,
       greatest(coalesce(extract(epoch FROM clock_timestamp() - oldest_at), 0), 0)::float8 AS oldest_seconds
FROM ready FULL JOIN leased USING (queue) FULL JOIN serving USING (queue)
ORDER BY coalesce(ready, 0) + coalesce(running, 0) DESC, queue
LIMIT $2::int;

-- name: database_now
SELECT clock_timestamp();
