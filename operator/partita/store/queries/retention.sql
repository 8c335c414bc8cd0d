-- name: partition_lock
-- utility: LOCK
-- Waits for every start that is in flight; their runs are visible to the next statement.
LOCK TABLE :"schema".:"partition" IN SHARE MODE
