-- Moving the unfinished runs of a month into tables of their own, which then take the month's place.

-- name: compaction_leftovers
-- Tables that a broken-off compaction has left: copies that were not used, or tables that were replaced.
SELECT c.relname::text AS name, substring(c.relname FROM '_([0-9]{6})_(?:new|old)$') AS month
FROM pg_partitioned_table pt
JOIN pg_class p ON p.oid = pt.partrelid
JOIN pg_namespace n ON n.oid = p.relnamespace
JOIN pg_class c ON c.relnamespace = n.oid AND c.relkind = 'r' AND NOT c.relispartition
               AND c.relname ~ ('^' || p.relname || '_[0-9]{6}_(new|old)$')
WHERE n.nspname = $1::text
ORDER BY p.relname = 'workflow_runs', c.relname

-- name: compaction_gain
-- Whether a month has a run that has ended.
SELECT EXISTS (
    SELECT FROM :"schema".workflow_runs AS run
    WHERE run.id >= $1 AND run.id < $2 AND NOT EXISTS (SELECT FROM :"schema".open_runs WHERE open_runs.run_id = run.id)
)

-- name: compaction_bound
-- utility: DDL
-- Proves the bounds of the partition-to-be, so that to attach it needs no scan.
ALTER TABLE :"schema".:"partition" ADD CONSTRAINT compaction_bounds CHECK (:"key" >= :'lower' AND :"key" < :'upper')

-- name: compaction_keyed
-- Tables of records in which the rows of a run are found by an index.
SELECT c.relname::text AS name
FROM pg_partitioned_table p
JOIN pg_class c ON c.oid = p.partrelid
JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = $1::text AND EXISTS (
    SELECT FROM pg_index AS key
    WHERE key.indrelid = c.oid AND key.indkey[0] = p.partattrs[0] AND key.indpred IS NULL AND key.indisvalid)

-- name: compaction_lock
-- Locks runs that are copied. Whoever locks or changes one of them later leaves his mark on its row (xmax, or a new one).
SELECT pg_current_xact_id()::xid::text FROM :"schema".workflow_runs
WHERE id = ANY ($1::uuid[]) AND id BETWEEN $2 AND $3
ORDER BY id
FOR NO KEY UPDATE

-- name: compaction_forget
-- utility: the table's name differs
DELETE FROM :"schema".:"partition" WHERE :"key" = ANY ($1::uuid[])

-- name: compaction_copy
-- utility: the tables' names differ
INSERT INTO :"schema".:"partition"
SELECT * FROM :"schema".:"parent" WHERE :"key" = ANY ($1::uuid[]) AND :"key" >= $2 AND :"key" < $3

-- name: compaction_changed
-- Which of the runs $1 somebody has locked or changed since the transaction $2 of each copied it.
SELECT copy.id, NOT EXISTS (SELECT FROM :"schema".open_runs WHERE run_id = copy.id) AS ended
FROM unnest($1::uuid[], $2::text[]) AS copy (id, xid)
CROSS JOIN LATERAL (
    SELECT run.xmax FROM :"schema".workflow_runs AS run WHERE run.id = copy.id AND run.id BETWEEN $3 AND $4 LIMIT 1
) AS now
WHERE now.xmax::text <> copy.xid

-- name: compaction_still
-- utility: LOCK
-- Ends an autovacuum of the table and lets no other begin; whoever reads or writes does not notice.
LOCK TABLE ONLY :"schema".:"partition" IN SHARE UPDATE EXCLUSIVE MODE

-- name: compaction_swap
-- utility: one DO statement, so that one statement_timeout bounds for how long others wait
-- Every transaction that changes a run locks workflow_runs first. Once that lock is had none is under way, and what is
-- left to copy are the few runs that were changed since they were copied; of one that goes on, only in tables that have an
-- index by run ("keyed"), as what the others hold is written by the end of a run.
DO $swap$
DECLARE
    copied  CONSTANT uuid[] := :'copied';
    marks   CONSTANT text[] := :'marks';
    low     CONSTANT uuid := :'lower';
    high    CONSTANT uuid := :'upper';
    changed uuid[];
    ended   bigint;
    parent  text;
    key     text;
    month   text;
BEGIN
    LOCK TABLE ONLY :"schema".workflow_runs IN ACCESS EXCLUSIVE MODE;
    FOREACH parent IN ARRAY :'tables'::text[] LOOP
        EXECUTE format('LOCK TABLE ONLY %I.%I IN ACCESS EXCLUSIVE MODE', :'schema', parent);
    END LOOP;
    IF EXISTS (SELECT FROM :"schema".open_runs WHERE run_id >= low AND run_id < high AND run_id <> ALL (copied)) THEN
        RAISE EXCEPTION 'a run was started meanwhile' USING ERRCODE = 'object_in_use';
    END IF;
    SELECT coalesce(array_agg(copy.id), '{}'),
           count(*) FILTER (WHERE NOT EXISTS (SELECT FROM :"schema".open_runs WHERE run_id = copy.id))
    INTO changed, ended
    FROM unnest(copied, marks) AS copy (id, mark)
    CROSS JOIN LATERAL (
        SELECT run.xmax FROM :"schema".workflow_runs AS run
        WHERE run.id = copy.id AND run.id >= low AND run.id < high LIMIT 1
    ) AS now
    WHERE now.xmax::text <> copy.mark;
    IF ended > 0 OR cardinality(changed) > :'most'::int THEN
        RAISE EXCEPTION '% runs were changed and % ended meanwhile', cardinality(changed), ended
            USING ERRCODE = 'object_in_use';
    END IF;
    FOREACH parent IN ARRAY :'tables'::text[] LOOP
        month := format('%s_%s', parent, :'suffix');
        key := CASE parent WHEN 'workflow_runs' THEN 'id' ELSE 'run_id' END;
        IF cardinality(changed) > 0 AND parent = ANY (:'keyed'::text[]) THEN
            EXECUTE format('DELETE FROM %I.%I WHERE %I = ANY ($1)', :'schema', month || '_new', key) USING changed;
            EXECUTE format('INSERT INTO %I.%I SELECT * FROM %1$I.%3$I WHERE %4$I = ANY ($1) AND %4$I >= $2 AND %4$I < $3',
                           :'schema', month || '_new', parent, key) USING changed, low, high;
        END IF;
        EXECUTE format('ALTER TABLE %1$I.%2$I DETACH PARTITION %1$I.%3$I', :'schema', parent, month);
        EXECUTE format('ALTER TABLE %I.%I RENAME TO %I', :'schema', month, month || '_old');
        EXECUTE format('ALTER TABLE %I.%I RENAME TO %I', :'schema', month || '_new', month);
        EXECUTE format('ALTER TABLE %1$I.%2$I ATTACH PARTITION %1$I.%3$I FOR VALUES FROM (%4$L) TO (%5$L)',
                       :'schema', parent, month, low, high);
        EXECUTE format('ALTER TABLE %I.%I DROP CONSTRAINT compaction_bounds', :'schema', month);
    END LOOP;
END
$swap$
