-- What the background duties read. They only find candidates: the coordinator locks the run, deletes the row and decides.

-- name: beat
-- One heartbeat: $1 worker, $2 lease in ms, $3 protocol, $4 slots, $5 draining, $6 idle, $7 namespaces, $8 queues,
-- $9 types, $10 host, $11 relaxed. HOT, as none of the columns is in an index. A lost heartbeat is harmless, so all but the
-- first one (relaxed) wait for no disk; without the first one, leases would have no worker after a crash of the server.
INSERT INTO :"schema".workers AS worker
    (id, started_at, heartbeat_at, expires_at, protocol, slots, draining, idle, namespaces, queues, types, host)
SELECT $1::text, clock_timestamp(), clock_timestamp(), clock_timestamp() + $2::bigint * interval '1 millisecond',
       $3::integer, $4::integer, $5::boolean, $6::boolean, $7::text[], $8::text[], $9::text[], $10::text
FROM (SELECT CASE WHEN $11::boolean THEN set_config('synchronous_commit', 'off', true) END) AS relaxed
ON CONFLICT (id) DO UPDATE SET heartbeat_at = excluded.heartbeat_at, expires_at = excluded.expires_at,
    draining = excluded.draining, idle = excluded.idle;

-- name: beat_answer
-- What worker $1 must know. $2 run_ids, $3 nodes, $4 indexes, $5 lease_ids: the attempts it holds. $6 ms: its own leases
-- that are older and not among them are forgotten ones (a claim whose answer was lost).
-- verdict: gone (the lease is no longer the worker's), forgotten (to be handed back).
SELECT 'gone' AS verdict, held.run_id, held.node, held.index, NULL::integer AS generation, NULL::integer AS attempt,
       held.lease_id, NULL::timestamptz AS claimed_at
FROM unnest($2::uuid[], $3::text[], $4::integer[], $5::uuid[]) AS held (run_id, node, index, lease_id)
WHERE NOT EXISTS (
    SELECT FROM :"schema".task_leases AS lease
    WHERE lease.run_id = held.run_id AND lease.node = held.node AND lease.index = held.index
      AND lease.lease_id = held.lease_id AND lease.worker_id = $1::text
)
UNION ALL
SELECT 'forgotten', lease.run_id, lease.node, lease.index, lease.generation, lease.attempt, lease.lease_id,
       lease.claimed_at
FROM :"schema".task_leases AS lease
WHERE lease.worker_id = $1::text AND lease.claimed_at < clock_timestamp() - $6::bigint * interval '1 millisecond'
  AND lease.lease_id <> ALL ($5::uuid[]);

-- name: set_idle
-- Worker $1 waits to be told of new work ($2 true), or no longer does. HOT, and waits for no disk.
UPDATE :"schema".workers SET idle = $2::boolean
FROM (SELECT set_config('synchronous_commit', 'off', true)) AS relaxed
WHERE id = $1::text;

-- name: wake_idle_workers
-- One notification on channel $1 saying $2, if a live worker of one of the queues $3 is idle, the workers $4 left out.
-- It is sent outside the transaction that enqueued: notifying transactions commit one after the other.
SELECT pg_notify($1::text, $2::text)
FROM :"schema".workers
WHERE idle AND NOT draining AND expires_at > clock_timestamp() AND queues && $3::text[] AND id <> ALL ($4::text[])
LIMIT 1;

-- name: remove_worker
-- Worker $1 has stopped in good order.
DELETE FROM :"schema".workers WHERE id = $1::text;

-- name: may_write
-- Whether this role has been granted what a worker writes; that a session is read-only says nothing about it.
SELECT has_table_privilege(':"schema".workers'::regclass, 'INSERT')
   AND has_table_privilege(':"schema".ready_tasks'::regclass, 'DELETE')
   AND has_table_privilege(':"schema".workflow_runs'::regclass, 'UPDATE') AS may_write;

-- name: take_turn
-- Whether this process has the turn at the duty with the key $1, until its transaction ends, or has done nothing for $2:
-- the turn of a process that is frozen, or whose machine is gone without a word, would last for hours.
SELECT pg_try_advisory_xact_lock($1::bigint), set_config('idle_in_transaction_session_timeout', $2::text, true);

-- name: lapsed_leases
-- Up to $1 leases whose worker went silent (verdict lost) or whose attempt is out of time (verdict timeout). Workers could
-- not be heard while the server was down, so after its start each has the length of its lease to be heard again.
SELECT CASE WHEN worker.id IS NULL THEN 'lost' ELSE 'timeout' END AS verdict,
       lease.run_id, lease.node, lease.index, lease.generation, lease.attempt, lease.lease_id
FROM :"schema".task_leases AS lease
LEFT JOIN :"schema".workers AS worker ON worker.id = lease.worker_id AND clock_timestamp() <
    greatest(worker.expires_at, pg_postmaster_start_time() + (worker.expires_at - worker.heartbeat_at))
WHERE worker.id IS NULL OR lease.deadline_at <= clock_timestamp()
LIMIT $1::integer;

-- name: expired_ready_tasks
-- Up to $1 ready tasks that no worker took within their scheduleToStart.
SELECT run_id, node, index, attempt, queue, lane, priority, seq FROM :"schema".ready_tasks
WHERE expires_at <= clock_timestamp()
LIMIT $1::integer;

-- name: due_timers
-- hot: queue
-- Up to $2 timers that are due and fire at or after $1, unless the engine is paused.
SELECT run_id, kind, node, index, fire_at FROM :"schema".timers
WHERE fire_at >= $1::timestamptz AND fire_at <= clock_timestamp()
  AND (SELECT NOT paused FROM :"schema".engine_state)
ORDER BY fire_at
LIMIT $2::integer;

-- name: next_timer
-- hot: queue
-- The database's clock, and seconds until the first timer that fires at or after $1 (negative: overdue; null: none).
SELECT clock_timestamp() AS clock, (
    SELECT extract(epoch FROM fire_at - clock_timestamp())::float8 FROM :"schema".timers
    WHERE fire_at >= $1::timestamptz AND fire_at < 'infinity'
      AND (SELECT NOT paused FROM :"schema".engine_state)
    ORDER BY fire_at LIMIT 1
) AS seconds;

-- name: due_inbox
-- Up to $2 deliveries to runs that are due, oldest first, of the kinds $1 that the process knows, from number $3 on. A
-- message behind one that is not due yet could not be applied.
SELECT id, run_id, kind, body, failures FROM :"schema".run_inbox AS row
WHERE id >= $3::bigint AND due_at <= clock_timestamp() AND dead_at IS NULL AND kind = ANY ($1::text[])
  AND (kind IN ('start', 'signal') OR NOT EXISTS (
      SELECT FROM :"schema".run_inbox AS earlier
      WHERE earlier.run_id = row.run_id AND earlier.id < row.id AND earlier.dead_at IS NULL
        AND earlier.due_at > clock_timestamp() AND earlier.kind NOT IN ('start', 'signal')))
ORDER BY id
LIMIT $2::integer;

-- name: inbox_beginning
-- Number of the first delivery that is still there; when none is, the last that was given out, as far as this role may
-- know it; else 0.
SELECT coalesce(
    (SELECT id FROM :"schema".run_inbox WHERE dead_at IS NULL ORDER BY id LIMIT 1),
    (SELECT CASE WHEN has_sequence_privilege(number, 'SELECT') THEN pg_sequence_last_value(number) END
     FROM (SELECT pg_get_serial_sequence(':"schema".run_inbox', 'id')::regclass AS number) AS sequence),
    0);

-- name: remove_silent_workers
-- Workers that went silent more than an hour ago and hold nothing.
DELETE FROM :"schema".workers AS worker
WHERE worker.expires_at < clock_timestamp() - interval '1 hour'
  AND NOT EXISTS (SELECT FROM :"schema".task_leases AS lease WHERE lease.worker_id = worker.id);

-- name: remove_expired_keys
-- Up to $1 idempotency keys whose time has passed.
DELETE FROM :"schema".run_keys
WHERE ctid IN (SELECT ctid FROM :"schema".run_keys WHERE expires_at < clock_timestamp() LIMIT $1::integer);
