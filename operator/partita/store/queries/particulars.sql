-- What people ask of one node: its attempts, and how far undo has come.

-- name: node_attempts
-- hot: pruned
-- sorts: history of one run, where a month without statistics makes it look short
-- The newest attempts of node $2 that have ended, of one index ($3) or of all (null), at most $4.
SELECT index, attempt, outcome, worker_id, started_at, finished_at, error
FROM (
    SELECT seq, coalesce(index, 0) AS index, attempt, who AS worker_id, started_at, at AS finished_at, error,
           CASE event WHEN 'TaskCompleted' THEN 'Completed' WHEN 'TaskFailed' THEN 'Failed'
                      WHEN 'LeaseLost' THEN 'Lost' ELSE 'TimedOut' END AS outcome
    FROM :"schema".run_history
    WHERE run_id = $1 AND node = $2 AND event IN ('TaskCompleted', 'TaskFailed', 'LeaseLost', 'AttemptTimedOut')
      AND ($3::int IS NULL OR coalesce(index, 0) = $3)
    ORDER BY seq DESC LIMIT $4
) AS newest
ORDER BY seq DESC

-- name: run_undone
-- hot: pruned
-- sorts: rows of one run; the answer has one row for each of its nodes and states
-- Of run $1, each node that is undone (its name ends with $2) with how many of its rows are in each state.
SELECT node, state, count(*) AS rows FROM :"schema".task_instances
WHERE run_id = $1 AND right(node, length($2::text)) = $2::text
GROUP BY node, state ORDER BY node, state
