-- Partita, schema version 2: child runs, loops, undo, and messages between runs.
--
-- Run it with `partita migrate`, or by hand:
--   psql -1 -v ON_ERROR_STOP=1 -v schema=partita -f V002__children_and_loops.sql
-- It may run while runs are in flight. Every new column is null in the ordinary case and has no default, so that nothing
-- is rewritten, an ordinary row is not a byte longer than before, and its updates stay HOT. Processes that speak the first
-- protocol stop: they can read neither a definition with a loop nor what such runs leave in these tables.

ALTER TABLE :"schema".workflow_runs
    ADD COLUMN parent_id            uuid,
    ADD COLUMN parent_index         integer,
    ADD COLUMN parent_attempt       integer,
    ADD COLUMN depth                integer,
    ADD COLUMN mailbox_id           uuid,
    ADD COLUMN parent_node          text,
    ADD COLUMN subflow              text,
    ADD COLUMN applied_cancel_nodes text[];
COMMENT ON COLUMN :"schema".workflow_runs.parent_id IS 'The run that waits for this one; null for a run of its own and for a detached child. Its month may be gone.';
COMMENT ON COLUMN :"schema".workflow_runs.parent_node IS 'With parent_index and parent_attempt the row of the parent that waits.';
COMMENT ON COLUMN :"schema".workflow_runs.depth IS 'Ancestors, detached ones included; null for none.';
COMMENT ON COLUMN :"schema".workflow_runs.mailbox_id IS 'Of a subflow''s run: the run that receives its signals and keeps its waits.';
COMMENT ON COLUMN :"schema".workflow_runs.subflow IS 'The subflow of the definition that this run executes. Such runs are in no list but their parent''s.';
COMMENT ON COLUMN :"schema".workflow_runs.applied_cancel_nodes IS 'Names of nodes that were ever cancelled by name, whoever asked: a name acts once.';
COMMENT ON COLUMN :"schema".workflow_runs.total IS 'Nodes of the definition, those of finally included; items of loops and undo rows do not count.';
COMMENT ON COLUMN :"schema".workflow_runs.done IS 'Settled nodes.';
COMMENT ON COLUMN :"schema".workflow_runs.active IS 'Rows that are Queued or Waiting, items of loops and undo rows included; the stage ends when it reaches 0.';
COMMENT ON COLUMN :"schema".workflow_runs.pending_outcome IS 'The end that is coming while the stage is undo or finally, or while independent branches finish.';

-- Partial, so that only children pay for it. A parent's children are found without reading a month.
CREATE INDEX workflow_runs_children ON :"schema".workflow_runs (parent_id, id) WHERE parent_id IS NOT NULL;

ALTER TABLE :"schema".task_instances ADD COLUMN detail json;
COMMENT ON COLUMN :"schema".task_instances.detail IS 'What only some rows have: loop (progress of a group row), child and version (of a workflow node), collected (of an iteration), order (of what can be undone), undo_next and undo_rest (of an undo row: which come after it).';
COMMENT ON COLUMN :"schema".task_instances.index IS '0 for a plain node, -1 for the row of a whole loop, from 0 for its items or iterations; of a row name~undo that of the row it reverses.';

ALTER TABLE :"schema".waits
    ADD COLUMN child_id    uuid,
    ADD COLUMN alternative integer,
    ADD COLUMN subflow     text;
COMMENT ON COLUMN :"schema".waits.child_id IS 'The run of a subflow that waits; null when it is the run itself. node and index are the waiting run''s.';
COMMENT ON COLUMN :"schema".waits.subflow IS 'The subflow that the child executes: with node and alternative it names the schema.';
COMMENT ON COLUMN :"schema".waits.alternative IS 'Which of the node''s anyOf this name belongs to; null for the first.';

ALTER TABLE :"schema".open_runs ADD COLUMN subflow text;
COMMENT ON COLUMN :"schema".open_runs.subflow IS 'Set for the runs of subflows, which lists leave out.';

ALTER TABLE :"schema".run_inbox
    DROP CONSTRAINT run_inbox_kind_check,
    ADD CONSTRAINT run_inbox_kind_check CHECK (kind IN (
        'start', 'signal',
        'ChildStart', 'ChildFinished', 'CancelRequested', 'SuspendRequested', 'ResumeRequested',
        'LoopContinued', 'ParkedReleased', 'UndoContinued', 'MailboxContinued',
        'WaitOpened', 'WaitClosed', 'WaitExpired', 'SignalGiven', 'WaitTimedOut'));
-- Messages to one run are applied in the order of their ids, whoever delivers them.
CREATE INDEX run_inbox_of_run ON :"schema".run_inbox (run_id, id);
COMMENT ON COLUMN :"schema".run_inbox.kind IS 'start and signal come from callers'' own transactions, the others from runs: what the run is to do or to know. A process leaves kinds that it does not know alone.';
COMMENT ON COLUMN :"schema".run_inbox.due_at IS 'A message is left for a moment to the process that sent it, which delivers it at once.';

-- The coming end names its status too: Failed/NodeFailed.
UPDATE :"schema".workflow_runs AS run SET pending_outcome = 'Failed/' || run.pending_outcome
FROM :"schema".open_runs AS open
WHERE open.run_id = run.id AND run.pending_outcome <> '' AND run.pending_outcome NOT LIKE '%/%';

UPDATE :"schema".engine_state SET oldest_protocol = greatest(oldest_protocol, 2);

INSERT INTO :"schema".schema_migrations (version, name, checksum) VALUES (2, 'children_and_loops', '');
