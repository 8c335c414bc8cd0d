-- What people look at. These run on the pool, with the planner as the server sets it up.

-- name: run_by_id
-- hot: pruned
SELECT id, namespace, name, definition, version, status, stage, generation, revision, cr_generation, reason, priority,
       active, done, total, created_at, started_at, finished_at, deadline_at, started_by, cr_uid, idempotency_key, tags,
       attributes, error_json, output_json, context_json, parent_id, parent_node, parent_index, parent_attempt, subflow,
       depth, mailbox_id
FROM :"schema".workflow_runs
WHERE id = $1

-- name: run_nodes
-- hot: pruned
-- Nodes of a run in the order in which they began to matter: the first row of each, which of a loop is its group row, so
-- that no items are read. A Queued node with a lease is shown as Running.
WITH RECURSIVE place AS (
    (SELECT node, index FROM :"schema".task_instances WHERE run_id = $1 ORDER BY node, index LIMIT 1)
    UNION ALL
    SELECT next.node, next.index
    FROM place CROSS JOIN LATERAL (
        SELECT node, index FROM :"schema".task_instances AS row
        WHERE row.run_id = $1 AND row.node > place.node ORDER BY row.node, row.index LIMIT 1
    ) AS next
)
SELECT task.node, task.index, task.kind, CASE WHEN lease.run_id IS NULL THEN task.state ELSE 'Running' END AS state,
       task.attempt, task.queue, task.queued_at, lease.claimed_at, task.finished_at, lease.worker_id, task.input,
       task.output, task.last_error, task.event, task.detail
FROM place
CROSS JOIN LATERAL (
    SELECT * FROM :"schema".task_instances AS row
    WHERE row.run_id = $1 AND row.node = place.node AND row.index = place.index
    LIMIT 1
) AS task
LEFT JOIN LATERAL (
    SELECT run_id, worker_id, claimed_at FROM :"schema".task_leases
    WHERE run_id = $1 AND node = task.node AND index = task.index AND task.state = 'Queued'
    LIMIT 1
) AS lease ON true
ORDER BY task.queued_at NULLS LAST, task.finished_at NULLS LAST, task.node, task.index

-- name: run_items
-- hot: pruned
-- The rows of one node after index $3, without its group row: items, iterations, or what reverses them.
SELECT task.node, task.index, task.kind, CASE WHEN lease.run_id IS NULL THEN task.state ELSE 'Running' END AS state,
       task.attempt, task.queue, task.queued_at, lease.claimed_at, task.finished_at, lease.worker_id, task.input,
       task.output, task.last_error, task.event, task.detail
FROM (
    SELECT * FROM :"schema".task_instances AS row
    WHERE row.run_id = $1 AND row.node = $2 AND row.index > greatest($3::int, -1) ORDER BY row.index LIMIT $4
) AS task
LEFT JOIN LATERAL (
    SELECT run_id, worker_id, claimed_at FROM :"schema".task_leases
    WHERE run_id = $1 AND node = task.node AND index = task.index AND task.state = 'Queued'
    LIMIT 1
) AS lease ON true
ORDER BY task.index

-- name: loop_group
-- hot: pruned
-- The row of a whole loop.
SELECT input, output, detail FROM :"schema".task_instances WHERE run_id = $1 AND node = $2 AND index = -1

-- name: loop_outputs
-- hot: pruned
-- What the items of a loop after index $3 gave, where they Completed.
SELECT index, output, detail FROM :"schema".task_instances
WHERE run_id = $1 AND node = $2 AND index > greatest($3::int, -1) AND state = 'Completed' ORDER BY index LIMIT $4

-- name: run_children
-- Children of a run with ids between $2 and $3 (both excluded), oldest first. Their months are those from the run's on.
SELECT id, namespace, name, definition, version, status, stage, generation, revision, cr_generation, reason, priority,
       active, done, total, created_at, started_at, finished_at, deadline_at, started_by, cr_uid, idempotency_key, tags,
       attributes, error_json, NULL::json AS output_json, NULL::json AS context_json, parent_id, parent_node, parent_index,
       parent_attempt, subflow, depth
FROM :"schema".workflow_runs
WHERE parent_id = $1 AND id > $2 AND id < $3 ORDER BY id LIMIT $4

-- name: run_waits
-- hot: queue
-- sorts: what one run waits for, all of which is shown
-- Waits of run $1: those in its own mailbox, for its children too, or those that its mailbox's owner $2 keeps for it.
SELECT node, index, name, since, child_id AS child
FROM :"schema".waits WHERE run_id = $2 AND ($1 = $2 OR child_id = $1) ORDER BY seq, node, index

-- name: run_timers
-- hot: queue
-- sorts: timers of one run, all of which are shown
-- fire_at is infinity while the run is suspended and when applying the timer was given up.
-- OFFSET 0 keeps the sort away from the index on fire_at, which holds every run's timers.
SELECT kind, node, index, nullif(fire_at, 'infinity') AS fire_at, remaining_ms, failures, last_error
FROM (SELECT * FROM :"schema".timers WHERE run_id = $1 OFFSET 0) AS timer
ORDER BY timer.fire_at, kind, node, index

-- name: run_signals
-- hot: pruned
-- sorts: signals of one run, where a month without statistics makes them look few
SELECT id, name, sender, payload, created_at, consumed_at, consumed_by, refused
FROM :"schema".workflow_events WHERE run_id = $1 ORDER BY seq LIMIT $2

-- name: run_history_page
-- hot: pruned
-- sorts: history of one run, where a month without statistics makes it look short
-- Two lines have no row, as they would say what other rows say: the first one, and that the run succeeded.
(SELECT seq, generation, at, event, node, index, attempt, who, started_at, error, details
 FROM :"schema".run_history
 WHERE run_id = $1 AND seq > $2
 ORDER BY seq LIMIT $3)
UNION ALL
SELECT 1, 0, created_at, 'RunStarted', NULL, NULL, NULL, NULL, NULL, NULL, NULL
FROM :"schema".workflow_runs
WHERE id = $1 AND $2 < 1 AND NOT EXISTS (SELECT FROM :"schema".run_history WHERE run_id = $1 AND seq = 1)
UNION ALL
SELECT ending.seq, ending.generation, ending.finished_at, 'RunFinished', NULL, NULL, NULL, NULL, NULL, NULL,
       json_build_object('status', ending.status)
FROM :"schema".workflow_runs AS run
CROSS JOIN LATERAL (
    SELECT seq, generation, finished_at, status FROM :"schema".run_endings
    WHERE namespace = run.namespace AND definition = run.definition AND status = 'Succeeded' AND run_id = $1
    OFFSET 0) AS ending
WHERE run.id = $1 AND ending.seq > $2
ORDER BY seq LIMIT $3

-- name: waits_of_runs
-- hot: pruned
-- sorts: what one run waits for, of which 50 are shown
-- What runs wait for: signals, their children's too, timers that hold them up, and children; at most 50 of each a run.
-- $2 and $3 are the bounds of the ids.
SELECT wanted.id, wait.kind, wait.name, wait.node, wait.until, wait.child
FROM unnest($1::uuid[]) AS wanted (id)
CROSS JOIN LATERAL (
    (SELECT 'signal' AS kind, name, node, NULL::timestamptz AS until, child_id AS child
     FROM :"schema".waits WHERE run_id = wanted.id ORDER BY name, seq LIMIT 50)
    UNION ALL
    (SELECT kind, '', node, nullif(fire_at, 'infinity'), NULL
     FROM (SELECT * FROM :"schema".timers WHERE run_id = wanted.id OFFSET 0) AS timer
     WHERE kind IN ('wait', 'backoff', 'start', 'delay', 'drain') ORDER BY fire_at LIMIT 50)
    UNION ALL
    (WITH RECURSIVE place AS (
        (SELECT node, index FROM :"schema".task_instances AS row
         WHERE row.run_id = wanted.id AND row.run_id BETWEEN $2 AND $3 ORDER BY row.node, row.index LIMIT 1)
        UNION ALL
        SELECT next.node, next.index
        FROM place CROSS JOIN LATERAL (
            SELECT node, index FROM :"schema".task_instances AS row
            WHERE row.run_id = wanted.id AND row.run_id BETWEEN $2 AND $3 AND row.node > place.node
            ORDER BY row.node, row.index LIMIT 1
        ) AS next
     )
     SELECT 'child', coalesce(task.detail ->> 'child', ''), task.node, NULL, (task.detail ->> 'child')::uuid
     FROM place CROSS JOIN LATERAL (
         SELECT node, detail FROM :"schema".task_instances AS row
         WHERE row.run_id = wanted.id AND row.run_id BETWEEN $2 AND $3 AND row.node = place.node
           AND row.index = place.index AND row.kind = 'workflow' AND row.state = 'Waiting'
         LIMIT 1
     ) AS task
     LIMIT 50)
) AS wait

-- name: newest_run_named
-- The newest unfinished run of this name: that of its WorkflowRun object, or the one it was submitted with.
SELECT run_id FROM :"schema".open_runs WHERE namespace = $1 AND name = $2 ORDER BY run_id DESC LIMIT 1

-- name: newest_ending_named
-- The newest finished run of this name. Months are read one after the other, until there is one.
SELECT run_id FROM :"schema".run_endings WHERE namespace = $1 AND name = $2 AND name <> '' ORDER BY run_id DESC LIMIT 1

-- name: definitions_page
-- The newest version of each definition, with the deployed one's number; by namespace and name, after ($2, $3).
SELECT DISTINCT ON (d.namespace, d.name)
       d.namespace, d.name, d.version, d.content_hash, d.created_by, d.created_at, d.deleted_at, deployed.version AS deployed
FROM :"schema".workflow_definitions AS d
LEFT JOIN LATERAL (
    SELECT version FROM :"schema".workflow_definitions WHERE namespace = d.namespace AND name = d.name AND deployed LIMIT 1
) AS deployed ON true
WHERE ($1::text IS NULL OR d.namespace = $1) AND (d.namespace, d.name) > ($2::text, $3::text)
  AND ($5::boolean OR d.deleted_at IS NULL)
ORDER BY d.namespace, d.name, d.version DESC
LIMIT $4

-- name: queues
-- Depth and age of each queue, attempts that run, and the live workers that serve it.
SELECT queue,
       coalesce(ready.depth, 0) AS depth,
       ready.oldest_at,
       coalesce(extract(epoch FROM clock_timestamp() - ready.oldest_at), 0)::float8 AS oldest_seconds,
       coalesce(leased.running, 0) AS running,
       coalesce(serving.workers, 0) AS workers
FROM (SELECT queue, count(*) AS depth, min(enqueued_at) AS oldest_at FROM :"schema".ready_tasks GROUP BY queue) AS ready
FULL JOIN (SELECT queue, count(*) AS running FROM :"schema".task_leases GROUP BY queue) AS leased USING (queue)
FULL JOIN (
    SELECT unnest(queues) AS queue, count(*) AS workers FROM :"schema".workers
    WHERE expires_at > clock_timestamp() GROUP BY 1
) AS serving USING (queue)
ORDER BY queue

-- name: workers_page
-- Worker processes after $1 by id, with the attempts they hold.
SELECT id, host, started_at, heartbeat_at, expires_at > clock_timestamp() AS alive, protocol, slots, draining, namespaces,
       queues, types,
       (SELECT count(*) FROM :"schema".task_leases AS lease WHERE lease.worker_id = workers.id) AS held
FROM :"schema".workers AS workers
WHERE id > $1
ORDER BY id LIMIT $2
