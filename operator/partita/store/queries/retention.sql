-- name: outwait_autovacuum
-- Waits for locks of this session last $1 ms longer than it takes until an autovacuum that is in the way is ended.
SELECT set_config('lock_timeout', (setting::bigint + $1::bigint)::text, false)
FROM pg_settings WHERE name = 'deadlock_timeout'

-- name: transactions_on
-- Transactions, by virtual id, that have locked one of the tables $1, as everything does that reads or writes them. They
-- may go by what they have read, such as the retention floor, until they end.
SELECT DISTINCT held.virtualtransaction
FROM pg_locks AS held
WHERE held.locktype = 'relation' AND held.relation = ANY ($1::text[]::regclass[]) AND held.granted
  AND held.database = (SELECT oid FROM pg_database WHERE datname = current_database())
  AND held.pid IS DISTINCT FROM pg_backend_pid()

-- name: transactions_of_users
-- All transactions of this database but those of the server's own processes.
SELECT DISTINCT held.virtualtransaction
FROM pg_locks AS held
JOIN pg_stat_activity AS session ON session.pid = held.pid
WHERE held.locktype = 'virtualxid' AND held.mode = 'ExclusiveLock' AND session.datname = current_database()
  AND session.usesysid IS NOT NULL AND held.pid <> pg_backend_pid()

-- name: transactions_left
-- One of these transactions that has not ended, in words; the one that began first, as far as this role may know it.
SELECT format('a transaction of pid %s%s%s', held.pid, ', ' || nullif(session.application_name, ''),
              ', has been open since ' || to_char(session.xact_start AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS "UTC"'))
       AS words
FROM pg_locks AS held
LEFT JOIN pg_stat_activity AS session ON session.pid = held.pid
WHERE held.virtualtransaction = ANY ($1::text[])
ORDER BY session.xact_start NULLS LAST
LIMIT 1
