-- Partita, schema version 3: lists with a filter.
--
-- Run it with `partita migrate`, or by hand:
--   psql -1 -v ON_ERROR_STOP=1 -v schema=partita -f V003__lists.sql
-- It may run while runs are in flight: processes of the version before go on, and what they write is found as well.
-- Runs do not end while the new indexes of run_endings are built, which takes seconds for each million ends. Where that is
-- too long, build the index of each month before, with CREATE UNIQUE INDEX CONCURRENTLY ON run_endings_<month> (status,
-- namespace, definition, run_id, generation): what exists already is taken over instead of being built.
--
-- A list takes its runs from an index that names the filter first and the run last, so that the newest fifty that fit
-- are fifty entries side by side, whatever the table holds. Every index costs every run write-ahead log, therefore:
--   * Finished runs are found by rows that are inserted once, at the end, when everything that is filtered by is known.
--     Unfinished ones are read from open_runs, which is small and has no index but its key.
--   * The key of run_endings gains the definition instead of there being an index on it. Lists of a whole namespace, or
--     by a status alone, merge the newest of each definition.
--   * Tags and attributes are rows of a table of their own: only runs that have some pay for them.

ALTER TABLE :"schema".run_endings ADD COLUMN started_by text;
COMMENT ON COLUMN :"schema".run_endings.started_by IS 'Who started the run, empty for nobody. Null: written by a process of schema version 2, and not yet filled in with its labels.';

CREATE UNIQUE INDEX run_endings_place ON :"schema".run_endings (status, namespace, definition, run_id, generation);
ALTER TABLE :"schema".run_endings DROP CONSTRAINT run_endings_pkey;
-- Partial, so that a run that nobody is named for, or that has no object, does not pay for them.
CREATE INDEX run_endings_person ON :"schema".run_endings (started_by, status, run_id) WHERE started_by <> '';
CREATE INDEX run_endings_name ON :"schema".run_endings (namespace, name, run_id) WHERE name <> '';
-- What lists still have to look at row by row, newest first; empty once the rows from before are filled in.
CREATE INDEX run_endings_unlisted ON :"schema".run_endings (run_id) WHERE started_by IS NULL;

CREATE TABLE :"schema".run_labels (
    run_id uuid   NOT NULL,
    label  bigint NOT NULL,
    status text   NOT NULL
) PARTITION BY RANGE (run_id);
-- Not unique: a run that failed twice has its labels twice, and readers do not mind.
CREATE INDEX run_labels_label ON :"schema".run_labels (label, status, run_id);
COMMENT ON TABLE :"schema".run_labels IS 'Insert-only: one row a tag and an attribute of a run that has ended, for lists.';
COMMENT ON COLUMN :"schema".run_labels.label IS 'First 64 bits of the MD5 of #tag or of name=value; lists compare the run''s own row, since two may be alike.';

ALTER TABLE :"schema".open_runs
    ADD COLUMN started_by text,
    ADD COLUMN tags       jsonb,
    ADD COLUMN attributes jsonb;
COMMENT ON COLUMN :"schema".open_runs.started_by IS 'As in run_endings: null when a process of schema version 2 has started the run; tags and attributes then say nothing.';
CREATE INDEX open_runs_unlisted ON :"schema".open_runs (run_id) WHERE started_by IS NULL;

-- The months that exist. psql puts no variable into a quoted body, therefore the setting.
SELECT set_config('partita.migrated_schema', :'schema', true);
DO $months$
DECLARE
    place text := current_setting('partita.migrated_schema');
    month record;
BEGIN
    FOR month IN
        SELECT right(c.relname, 6) AS suffix, pg_get_expr(c.relpartbound, c.oid) AS bounds
        FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
        WHERE i.inhparent = to_regclass(format('%I.run_endings', place))
    LOOP
        EXECUTE format('CREATE TABLE %1$I.%2$I PARTITION OF %1$I.run_labels %3$s',
                       place, 'run_labels_' || month.suffix, month.bounds);
    END LOOP;
END
$months$;

INSERT INTO :"schema".schema_migrations (version, name, checksum) VALUES (3, 'lists', '');
