-- Partita, schema version 4: lists with several filters.
--
-- Run it with `partita migrate`, or by hand:
--   psql -1 -v ON_ERROR_STOP=1 -v schema=partita -f V004__labels.sql
-- It may run while runs are in flight: processes of the version before go on, and what they write is found as well.
-- Runs do not end, and lists by labels wait, while the indexes are built, which takes seconds for each million labels
-- and named runs. Where that is too long, add the columns by hand before, and build those of each month with
--   CREATE INDEX CONCURRENTLY ON run_labels_<month> (label, status, run_id) INCLUDE (origin, labels)
--   CREATE INDEX CONCURRENTLY ON run_endings_<month> (started_by, status, run_id) INCLUDE (namespace, definition)
--     WHERE started_by <> ''
--   CREATE INDEX CONCURRENTLY ON run_labels_<month> (run_id) WHERE origin IS NULL
-- What exists already is taken over instead of being built.
--
-- A list with several filters reads the entries of the rarest one. Whether an entry has the others is to be seen in the
-- entry itself: a look at another place for each of a thousand entries is a thousand reads from all over the disk.
-- Therefore the indexes carry what else lists ask for, as short as it will go, since every label pays for it.

ALTER TABLE :"schema".run_labels ADD COLUMN IF NOT EXISTS origin bigint, ADD COLUMN IF NOT EXISTS labels bigint;
COMMENT ON COLUMN :"schema".run_labels.origin IS 'First 16, 24 and 24 bits of the MD5 of the run''s namespace, definition and who started it. Null: written by a process of schema version 3, and not yet filled in.';
COMMENT ON COLUMN :"schema".run_labels.labels IS 'Four bits for each label of the run, which the label''s last 24 bits name; who has the bits of a label may have the label.';

CREATE INDEX run_labels_known ON :"schema".run_labels (label, status, run_id) INCLUDE (origin, labels);
DROP INDEX :"schema".run_labels_label;
-- What is still to be filled in, which `partita migrate` and the upkeep do; empty after that.
CREATE INDEX run_labels_unknown ON :"schema".run_labels (run_id) WHERE origin IS NULL;
CREATE INDEX run_endings_starter ON :"schema".run_endings (started_by, status, run_id) INCLUDE (namespace, definition)
    WHERE started_by <> '';
DROP INDEX :"schema".run_endings_person;

INSERT INTO :"schema".schema_migrations (version, name, checksum) VALUES (4, 'labels', '');
