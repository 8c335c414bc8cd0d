-- Dead letters: messages to runs and timers that were given up after too many failures, until someone drives them again.

-- name: dead_letters
-- The ones given up longest ago, of run $1 or of all (null), at most $2. A dead timer stands at infinity, by which the
-- index finds it; the inbox is small by its nature.
(SELECT 'message' AS kind, run_id, id AS message, kind AS what, '' AS node, 0 AS index, created_at, dead_at, failures,
        coalesce(last_error, '') AS error
 FROM :"schema".run_inbox
 WHERE dead_at IS NOT NULL AND ($1::uuid IS NULL OR run_id = $1) ORDER BY dead_at LIMIT $2)
UNION ALL
(SELECT 'timer', run_id, 0, kind, node, index, NULL, dead_at, failures, coalesce(last_error, '')
 FROM :"schema".timers
 WHERE fire_at = 'infinity' AND dead_at IS NOT NULL AND ($1::uuid IS NULL OR run_id = $1) ORDER BY dead_at LIMIT $2)
ORDER BY dead_at
LIMIT $2;

-- name: retry_messages
-- hot: queue
-- Drive these messages again, from now on with a new account of failures. What is not dead stays as it is.
UPDATE :"schema".run_inbox SET dead_at = NULL, failures = 0, due_at = clock_timestamp()
WHERE id = ANY ($1::bigint[]) AND dead_at IS NOT NULL
RETURNING id;

-- name: delete_messages
-- hot: queue
-- Forget these messages.
DELETE FROM :"schema".run_inbox WHERE id = ANY ($1::bigint[]) AND dead_at IS NOT NULL RETURNING id;

-- name: retry_timers
-- Let these timers fire now; those of a suspended run stay frozen until it is resumed.
UPDATE :"schema".timers AS timer
SET dead_at = NULL, failures = 0,
    fire_at = CASE WHEN timer.remaining_ms IS NULL THEN clock_timestamp() ELSE timer.fire_at END
FROM unnest($1::uuid[], $2::text[], $3::text[], $4::int[]) AS wanted (run_id, kind, node, index)
WHERE timer.run_id = wanted.run_id AND timer.kind = wanted.kind AND timer.node = wanted.node
  AND timer.index = wanted.index AND timer.dead_at IS NOT NULL
RETURNING timer.run_id, timer.kind, timer.node, timer.index;
