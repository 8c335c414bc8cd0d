-- name: partitioned_tables
-- The tables of records, from the catalog, so that a table added by a migration gets its months too. Runs come last:
-- what depends on them is detached and dropped before them.
SELECT c.relname::text AS name
FROM pg_partitioned_table p
JOIN pg_class c ON c.oid = p.partrelid
JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = $1::text AND p.partstrat = 'r' AND p.partnatts = 1
ORDER BY c.relname = 'workflow_runs', c.relname

-- name: partition_tables
-- Every month's table, attached or not, with its size and the planner's idea of its rows.
SELECT p.relname::text AS parent,
       c.relname::text AS name,
       right(c.relname, 6) AS month,
       i.inhparent IS NOT NULL AS attached,
       coalesce(i.inhdetachpending, false) AS pending,
       pg_total_relation_size(c.oid) AS bytes,
       greatest(coalesce(s.n_live_tup, 0), c.reltuples::bigint, 0) AS rows
FROM pg_partitioned_table pt
JOIN pg_class p ON p.oid = pt.partrelid
JOIN pg_namespace n ON n.oid = p.relnamespace
JOIN pg_class c ON c.relnamespace = n.oid AND c.relkind = 'r' AND c.relname ~ ('^' || p.relname || '_[0-9]{6}$')
LEFT JOIN pg_inherits i ON i.inhrelid = c.oid AND i.inhparent = p.oid
LEFT JOIN pg_stat_user_tables s ON s.relid = c.oid
WHERE n.nspname = $1::text
ORDER BY p.relname = 'workflow_runs', p.relname, c.relname

-- name: partitions_pending
-- Tables whose detach was begun and not finished; a table of records has one at a time.
SELECT c.relname::text AS name
FROM pg_inherits i
JOIN pg_class c ON c.oid = i.inhrelid
JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE i.inhdetachpending AND n.nspname = $1::text

-- name: partition_state
-- Whether the detach of the table $1 is pending; no row for a table that is attached to nothing.
SELECT inhdetachpending FROM pg_inherits WHERE inhrelid = to_regclass($1::text)

-- name: month_guard
-- utility: LOCK
-- What transactions on the tables of one month begin with; see months.py. It conflicts with nothing but the exclusive mode.
-- A transaction that is one statement has direct_guard.
LOCK TABLE ONLY :"schema".workflow_runs IN ACCESS SHARE MODE

-- name: retention_floor
SELECT retention_floor, clock_timestamp() AS now FROM :"schema".engine_state

-- name: retention_floor_raise
-- The floor only rises. From its commit on, no run below it is started or retried.
UPDATE :"schema".engine_state SET retention_floor = $1 WHERE retention_floor < $1

-- name: open_runs_between
-- hot: queue
-- Unfinished runs of a month, up to a limit.
SELECT run_id FROM :"schema".open_runs WHERE run_id >= $1 AND run_id < $2 ORDER BY run_id LIMIT $3

-- name: open_runs_below
-- hot: queue
-- sorts: what compaction has left in months that are gone, at most 1,000 runs each
-- Unfinished runs of months below the retention floor: these months are still written to.
SELECT run_id FROM :"schema".open_runs WHERE run_id < $1 ORDER BY run_id

-- name: partition_create
-- utility: DDL
CREATE TABLE :"schema".:"partition" (LIKE :"schema".:"parent" INCLUDING ALL)

-- name: partition_fillfactor
-- utility: DDL
-- Room on the page for the updates that follow an insert, so that they are HOT.
ALTER TABLE :"schema".:"partition" SET (fillfactor = :'fillfactor')

-- name: partition_rights
-- utility: one DO statement, since the names of roles are identifiers
-- What roles may do with the parent they may do with the month, so that statements may name it; the parent's owner too,
-- where somebody else of that role makes the month.
DO $rights$
DECLARE
    name CONSTANT text := format('%I.%I', :'schema', :'partition');
    mine CONSTANT oid := (SELECT relowner FROM pg_class WHERE oid = name::regclass);
    held record;
BEGIN
    FOR held IN
        SELECT acl.privilege_type AS kind, coalesce(quote_ident(role.rolname), 'PUBLIC') AS role
        FROM pg_class AS parent
        CROSS JOIN LATERAL aclexplode(coalesce(parent.relacl, acldefault('r', parent.relowner))) AS acl
        LEFT JOIN pg_roles AS role ON role.oid = acl.grantee
        WHERE parent.oid = format('%I.%I', :'schema', :'parent')::regclass AND acl.grantee <> mine
    LOOP
        EXECUTE format('GRANT %s ON TABLE %s TO %s', held.kind, name, held.role);
    END LOOP;
END
$rights$

-- name: partition_attach
-- utility: DDL
ALTER TABLE :"schema".:"parent" ATTACH PARTITION :"schema".:"partition" FOR VALUES FROM (:'lower') TO (:'upper')

-- name: partition_detach
-- utility: DDL, and refused inside a transaction
ALTER TABLE :"schema".:"parent" DETACH PARTITION :"schema".:"partition" CONCURRENTLY

-- name: partition_finalize
-- utility: DDL
ALTER TABLE :"schema".:"parent" DETACH PARTITION :"schema".:"partition" FINALIZE

-- name: partition_drop
-- utility: DDL
DROP TABLE :"schema".:"partition"

-- name: table_sizes
-- Bytes on disk, with indexes, of those of the tables $2 that there are.
SELECT c.relname::text AS name, coalesce(pg_total_relation_size(c.oid), 0) AS bytes
FROM pg_class c
JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = $1::text AND c.relkind = 'r' AND c.relname = ANY ($2::text[])

-- name: tables_left
-- Whether one of the tables $2 is still there.
SELECT EXISTS (
    SELECT FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE n.nspname = $1::text AND c.relname = ANY ($2::text[]))

-- name: stale_statistics
-- Partitioned parents that were never analysed, or whose months, which autovacuum analyses, have changed by this share of
-- rows, $2, since.
SELECT p.relname::text AS name
FROM pg_partitioned_table pt
JOIN pg_class p ON p.oid = pt.partrelid
JOIN pg_namespace n ON n.oid = p.relnamespace
CROSS JOIN LATERAL (
    SELECT coalesce(sum(CASE WHEN c.reltuples >= 0 THEN c.reltuples ELSE s.n_live_tup END), 0)::float8 AS rows
    FROM pg_inherits i
    JOIN pg_class c ON c.oid = i.inhrelid
    LEFT JOIN pg_stat_user_tables s ON s.relid = c.oid
    WHERE i.inhparent = p.oid
) AS months
WHERE n.nspname = $1::text AND p.relkind = 'p'
  AND (p.reltuples < 0 OR abs(months.rows - p.reltuples) > $2::float8 * greatest(p.reltuples, 1000))
ORDER BY p.relname

-- name: analyze_parent
-- utility: ANALYZE is no statement that can be prepared
-- Analyses its months too. What autovacuum is at is left out instead of being waited for.
ANALYZE (SKIP_LOCKED) :"schema".:"table"

-- name: analyze_only
-- utility: as above
ANALYZE (SKIP_LOCKED) ONLY :"schema".:"table"
