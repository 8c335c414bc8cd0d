-- A lone transition as one statement that is its own transaction: proof, fence, and what is written. See direct.py. The
-- blocks of writes.sql and starts.sql that are sent with it write only where "proved" has a row.

-- name: run_proof
-- hot: pruned
-- The run's row is the version that this process wrote or read last ($1 place, $2 id, $3 the transaction that wrote it),
-- nobody else holds it, the engine works and understands this process's protocol ($4), and its clock says what the process
-- thinks ($5) to $6 ms. A place alone would not do: once a version is gone another one of the same run may stand there.
SELECT run.id
FROM :"schema".workflow_runs AS run
WHERE run.ctid = $1::tid AND run.id = $2::uuid AND run.xmin = $3::xid
  AND EXISTS (
      SELECT FROM :"schema".engine_state
      WHERE NOT paused AND oldest_protocol <= $4::int
        AND clock_timestamp() BETWEEN $5::timestamptz - $6::int * interval '1 ms' AND $5 + $6 * interval '1 ms')
FOR NO KEY UPDATE SKIP LOCKED;

-- name: lease_proof
-- utility: reads run_proof, with which it is sent
-- The attempt's lease ends by its worker's word.
DELETE FROM :"schema".task_leases
WHERE run_id = $1::uuid AND node = $2::text AND index = $3::int AND attempt = $4::int AND lease_id = $5::uuid
  AND EXISTS (SELECT FROM run_proof)
RETURNING 1;

-- name: start_proof
-- hot: queue scan
-- The engine works, understands this process's protocol ($1), its clock says what the process thinks ($2) to $3 ms, no
-- month has been dropped since ($4, the retention floor), and version $6 of the definition $5 may be started: named exactly
-- ($7), or deployed; or a run has decided on it ($8).
SELECT 1
FROM :"schema".engine_state
WHERE NOT paused AND oldest_protocol <= $1::int
  AND clock_timestamp() BETWEEN $2::timestamptz - $3::int * interval '1 ms' AND $2 + $3 * interval '1 ms'
  AND retention_floor = $4::timestamptz
  AND ($8::bool OR EXISTS (
      SELECT FROM :"schema".workflow_definitions AS row
      WHERE row.id = $5::uuid AND row.version = $6::int AND row.enabled AND row.deleted_at IS NULL
        AND (row.deployed OR $7::bool)));

-- name: direct_guard
-- hot: pruned
-- Reads nothing. That it names workflow_runs, first, takes the lock that every transaction on a month's own tables begins
-- with: relations are locked in the order of the WITH clauses, by parser, planner and executor.
SELECT FROM ONLY :"schema".workflow_runs WHERE false;
