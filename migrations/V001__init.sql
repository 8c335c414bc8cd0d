-- Partita, schema version 1.
--
-- Run it with `partita migrate`, or by hand:  psql -1 -v ON_ERROR_STOP=1 -v schema=partita -f V001__init.sql
-- It creates no partition: `partita partitions ensure` (part of `partita migrate`) does, and again every day.
--
-- Records are partitioned by month of the run id, which is a UUIDv7: its first 48 bits are the milliseconds since 1970,
-- so that `run_id >= lower AND run_id < upper` names the months, and retention is DROP TABLE instead of DELETE.
--   * There is no DEFAULT partition: with one, attaching a month has to scan it under an exclusive lock.
--   * There is no foreign key between partitioned tables: with one, a month can no longer be dropped.
--   * A partitioned table takes no storage parameters. `partitions ensure` gives each month of workflow_runs fillfactor
--     30 and of task_instances 45: their rows are updated in the minutes after their insert, and with that much of the
--     page free at least 95 % of these updates are HOT (at fillfactor 70 only 40 to 79 %; runs at 45: 89 to 100 %).
--   * No changing column of a record is in an index or in the predicate of one, because that too would end HOT.
-- Scheduling tables (ready_tasks, task_leases, timers, waits, run_inbox) hold narrow rows that are inserted and
-- deleted, never updated on the common path. They stay small, and autovacuum must look at them all the time.
-- Payloads are json, not jsonb: they are stored and returned far more often than they are looked into.

CREATE SCHEMA IF NOT EXISTS :"schema";

CREATE TABLE IF NOT EXISTS :"schema".schema_migrations (
    version    integer     PRIMARY KEY,
    name       text        NOT NULL,
    checksum   text        NOT NULL,
    applied_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
COMMENT ON TABLE :"schema".schema_migrations IS 'Migrations that were applied; the checksum is that of the file.';

CREATE TABLE :"schema".engine_state (
    only_row         boolean     PRIMARY KEY DEFAULT true CHECK (only_row),
    engine_id        text,
    epoch            bigint      NOT NULL DEFAULT 0,
    paused           boolean     NOT NULL DEFAULT false,
    oldest_protocol  integer     NOT NULL DEFAULT 1,
    retention_floor  timestamptz NOT NULL DEFAULT '1970-01-01 00:00:00+00'
);
COMMENT ON TABLE  :"schema".engine_state IS 'The one row that every process of this installation obeys.';
COMMENT ON COLUMN :"schema".engine_state.engine_id IS 'Kubernetes cluster uid and namespace of the installation that owns this schema; another one is refused.';
COMMENT ON COLUMN :"schema".engine_state.epoch IS 'Grows with every change of leader; fences the projection of status to Kubernetes.';
COMMENT ON COLUMN :"schema".engine_state.paused IS 'No task is handed out and no timer fires; reports and starts are still recorded.';
COMMENT ON COLUMN :"schema".engine_state.oldest_protocol IS 'Processes that speak an older engine protocol stop working.';
COMMENT ON COLUMN :"schema".engine_state.retention_floor IS 'Runs whose id is older are never started: their month is dropped, or about to be.';
INSERT INTO :"schema".engine_state DEFAULT VALUES;

-- Definitions -----------------------------------------------------------------------------------------------------

CREATE TABLE :"schema".workflow_definitions (
    id           uuid        NOT NULL,
    version      integer     NOT NULL CHECK (version > 0),
    namespace    text        NOT NULL,
    name         text        NOT NULL,
    spec_json    json        NOT NULL,
    content_hash text        NOT NULL,
    created_by   text        NOT NULL DEFAULT '',
    enabled      boolean     NOT NULL DEFAULT true,
    webhook_url  text,
    deployed     boolean     NOT NULL DEFAULT false,
    deployed_at  timestamptz,
    deleted_at   timestamptz,
    created_at   timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (id, version)
);
CREATE UNIQUE INDEX workflow_definitions_version_key  ON :"schema".workflow_definitions (namespace, name, version);
CREATE UNIQUE INDEX workflow_definitions_content_key  ON :"schema".workflow_definitions (namespace, name, content_hash);
CREATE UNIQUE INDEX workflow_definitions_deployed_key ON :"schema".workflow_definitions (namespace, name) WHERE deployed;
COMMENT ON TABLE  :"schema".workflow_definitions IS 'Immutable versions; all versions of a (namespace, name) share one id.';
COMMENT ON COLUMN :"schema".workflow_definitions.content_hash IS 'SHA-256 of the parsed spec; the same spec again redeploys its version instead of adding one.';
COMMENT ON COLUMN :"schema".workflow_definitions.deployed IS 'The version that a start without a version takes; none when the definition is deleted.';
COMMENT ON COLUMN :"schema".workflow_definitions.deleted_at IS 'Set when the definition was deleted; its runs go on.';

-- Records, by month -----------------------------------------------------------------------------------------------
-- Columns that change together stand together, since an update logs the bytes from the first to the last that differ.

CREATE TABLE :"schema".workflow_runs (
    id                    uuid        NOT NULL,
    definition_id         uuid        NOT NULL,
    start_request_id      uuid        NOT NULL,
    created_at            timestamptz NOT NULL,
    version               integer     NOT NULL,
    priority              smallint    NOT NULL DEFAULT 0 CHECK (priority BETWEEN -2 AND 2),
    total                 integer     NOT NULL,
    -- changing from here
    generation            integer     NOT NULL DEFAULT 0,
    active                integer     NOT NULL DEFAULT 0,
    done                  integer     NOT NULL DEFAULT 0,
    seq                   integer     NOT NULL DEFAULT 0,
    revision              bigint      NOT NULL DEFAULT 0,
    cr_generation         bigint      NOT NULL DEFAULT 0,
    started_at            timestamptz,
    finished_at           timestamptz,
    deadline_at           timestamptz,
    deadline_remaining_ms bigint,
    applied_suspend       boolean     NOT NULL DEFAULT false,
    applied_cancel        boolean     NOT NULL DEFAULT false,
    status                text        NOT NULL CHECK (status IN ('Pending', 'Running', 'Suspended', 'Succeeded', 'Failed', 'Cancelled')),
    stage                 text        NOT NULL DEFAULT 'main' CHECK (stage IN ('main', 'undo', 'finally')),
    reason                text        NOT NULL DEFAULT '',
    pending_outcome       text        NOT NULL DEFAULT '',
    retry_counts          jsonb,
    error_json            json,
    output_json           json,
    -- constant again
    namespace             text        NOT NULL,
    name                  text        NOT NULL,
    definition            text        NOT NULL,
    started_by            text        NOT NULL DEFAULT '',
    cluster_uid           text,
    engine_id             text,
    cr_uid                text,
    idempotency_key       text,
    tags                  jsonb,
    attributes            jsonb,
    context_json          json        NOT NULL,
    PRIMARY KEY (id)
) PARTITION BY RANGE (id);
COMMENT ON TABLE  :"schema".workflow_runs IS 'One row a run. Its lock orders everything that happens to the run; lists come from open_runs and run_endings.';
COMMENT ON COLUMN :"schema".workflow_runs.id IS 'UUIDv7: minted by the starter, or derived from the creation time and uid of the WorkflowRun object.';
COMMENT ON COLUMN :"schema".workflow_runs.start_request_id IS 'The same start sent again is recognised by it; another start of this id is a conflict.';
COMMENT ON COLUMN :"schema".workflow_runs.generation IS 'Retry round; part of every fence.';
COMMENT ON COLUMN :"schema".workflow_runs.active IS 'Nodes that are Queued or Waiting; the run ends when it reaches 0.';
COMMENT ON COLUMN :"schema".workflow_runs.seq IS 'Last sequence number used in run_history.';
COMMENT ON COLUMN :"schema".workflow_runs.revision IS 'Grows with every change that people can see; the status of the WorkflowRun object carries it.';
COMMENT ON COLUMN :"schema".workflow_runs.cr_generation IS 'metadata.generation of the WorkflowRun object that was last applied.';
COMMENT ON COLUMN :"schema".workflow_runs.deadline_remaining_ms IS 'What was left of the deadline when the run was suspended.';
COMMENT ON COLUMN :"schema".workflow_runs.name IS 'Name of the WorkflowRun object; empty for a run without one, which is called by its id.';
COMMENT ON COLUMN :"schema".workflow_runs.started_by IS 'Who started the run.';
COMMENT ON COLUMN :"schema".workflow_runs.context_json IS 'What expressions see as input and config; the only copy of the input.';

CREATE TABLE :"schema".task_instances (
    run_id          uuid        NOT NULL,
    index           integer     NOT NULL DEFAULT 0,
    -- changing from here
    attempt         integer     NOT NULL DEFAULT 0,
    edges_settled   smallint    NOT NULL DEFAULT 0,
    edges_live      smallint    NOT NULL DEFAULT 0,
    ready_lane      smallint,
    ready_priority  smallint,
    ready_seq       bigint,
    queued_at       timestamptz,
    first_failed_at timestamptz,
    finished_at     timestamptz,
    fired           boolean     NOT NULL DEFAULT false,
    stepped_over    boolean     NOT NULL DEFAULT false,
    state           text        NOT NULL CHECK (state IN ('Pending', 'Queued', 'Waiting', 'Completed', 'Failed', 'Skipped', 'Cancelled')),
    retries         jsonb,
    route           text[],
    output          json,
    last_error      json,
    event           json,
    input           json,
    queue           text,
    -- constant again
    kind            text        NOT NULL,
    node            text        NOT NULL,
    PRIMARY KEY (run_id, node, index)
) PARTITION BY RANGE (run_id);
COMMENT ON TABLE  :"schema".task_instances IS 'One row for each node of a run that has begun to matter: an edge to it settled, or it fired.';
COMMENT ON COLUMN :"schema".task_instances.state IS 'Running is never stored: it is Queued with a row in task_leases, so that claiming a task writes no record.';
COMMENT ON COLUMN :"schema".task_instances.attempt IS 'Attempts begun; each is one line of run_history, see the view task_attempts.';
COMMENT ON COLUMN :"schema".task_instances.ready_seq IS 'With queue, ready_lane and ready_priority the key of its row in ready_tasks, which has no index on run_id.';
COMMENT ON COLUMN :"schema".task_instances.stepped_over IS 'Skipped by its own when: what follows it runs.';
COMMENT ON COLUMN :"schema".task_instances.input IS 'Evaluated once, before the first attempt.';
COMMENT ON COLUMN :"schema".task_instances.event IS 'Envelope of the signal that ended a waitForEvent.';

CREATE TABLE :"schema".workflow_events (
    run_id      uuid        NOT NULL,
    seq         integer     NOT NULL,
    created_at  timestamptz NOT NULL,
    consumed_at timestamptz,
    consumed_by text,
    refused     text,
    id          text        NOT NULL,
    name        text        NOT NULL,
    sender      text        NOT NULL DEFAULT '',
    payload     json        NOT NULL,
    PRIMARY KEY (run_id, id)
) PARTITION BY RANGE (run_id);
COMMENT ON TABLE  :"schema".workflow_events IS 'Signals that runs received; an id counts once in a run, for ever.';
COMMENT ON COLUMN :"schema".workflow_events.consumed_by IS 'The node that took the signal; null while it is buffered.';
COMMENT ON COLUMN :"schema".workflow_events.refused IS 'Why the signal was refused; null for the others.';

CREATE TABLE :"schema".run_history (
    run_id     uuid        NOT NULL,
    seq        integer     NOT NULL,
    generation integer     NOT NULL DEFAULT 0,
    at         timestamptz NOT NULL,
    started_at timestamptz,
    index      integer,
    attempt    integer,
    event      text        NOT NULL,
    node       text,
    who        text,
    error      json,
    details    json,
    PRIMARY KEY (run_id, seq)
) PARTITION BY RANGE (run_id);
COMMENT ON TABLE  :"schema".run_history IS 'Append-only: what happened to a run, in order. Never updated. That a run started, and that it succeeded, has no row here: workflow_runs and run_endings say it.';
COMMENT ON COLUMN :"schema".run_history.who IS 'The worker of an attempt, or who sent a control or a signal.';
COMMENT ON COLUMN :"schema".run_history.started_at IS 'When the attempt was claimed; at is when it ended.';

CREATE VIEW :"schema".task_attempts AS
SELECT run_id, generation, node, index, attempt, who AS worker_id, started_at, at AS finished_at,
       CASE event WHEN 'TaskCompleted' THEN 'Completed'
                  WHEN 'TaskFailed' THEN 'Failed'
                  WHEN 'LeaseLost' THEN 'Lost'
                  ELSE 'TimedOut' END AS outcome,
       error
FROM :"schema".run_history
WHERE event IN ('TaskCompleted', 'TaskFailed', 'LeaseLost', 'AttemptTimedOut');
COMMENT ON VIEW :"schema".task_attempts IS 'Finished attempts of tasks. A running attempt is its row in task_leases.';

CREATE TABLE :"schema".run_endings (
    run_id      uuid        NOT NULL,
    finished_at timestamptz NOT NULL,
    generation  integer     NOT NULL,
    seq         integer     NOT NULL,
    status      text        NOT NULL,
    namespace   text        NOT NULL,
    definition  text        NOT NULL,
    name        text        NOT NULL,
    reason      text        NOT NULL DEFAULT '',
    PRIMARY KEY (namespace, status, run_id, generation)
) PARTITION BY RANGE (run_id);
COMMENT ON COLUMN :"schema".run_endings.name IS 'Name of the WorkflowRun object; empty for a run without one, which is looked up by its id.';
COMMENT ON COLUMN :"schema".run_endings.seq IS 'Place of the end in the run''s history, which has no row for a success.';
COMMENT ON TABLE :"schema".run_endings IS 'Insert-only: one row an end, for lists by status; an index on the status of a run would end HOT updates.';

-- Scheduling --------------------------------------------------------------------------------------------------------
-- vacuum_truncate is off: giving the empty tail back takes an exclusive lock on tables that are refilled at once.

CREATE TABLE :"schema".ready_tasks (
    run_id        uuid        NOT NULL,
    seq           bigint      NOT NULL,
    enqueued_at   timestamptz NOT NULL,
    expires_at    timestamptz,
    timeout_ms    bigint      NOT NULL,
    index         integer     NOT NULL,
    attempt       integer     NOT NULL,
    generation    integer     NOT NULL,
    lane          smallint    NOT NULL,
    priority      smallint    NOT NULL,
    queue         text        NOT NULL,
    namespace     text        NOT NULL,
    node          text        NOT NULL,
    type          text        NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000, autovacuum_vacuum_cost_delay = 0,
        autovacuum_vacuum_insert_scale_factor = 0, autovacuum_vacuum_insert_threshold = 20000,
        autovacuum_analyze_scale_factor = 0, autovacuum_analyze_threshold = 20000, vacuum_truncate = off);
-- Not unique: seq is made by the process that enqueues (time and a counter), and two may make the same.
CREATE INDEX ready_tasks_claim ON :"schema".ready_tasks (queue, lane, priority, seq);
COMMENT ON TABLE  :"schema".ready_tasks IS 'Task attempts that a worker may claim now.';
COMMENT ON COLUMN :"schema".ready_tasks.seq IS 'Microseconds since 2024-01-01 of the database clock, times 4096, plus a counter: claimers remember a position in it.';
COMMENT ON COLUMN :"schema".ready_tasks.lane IS 'Stable hash of the namespace, modulo 16: claims go round the lanes, so that no namespace starves another.';
COMMENT ON COLUMN :"schema".ready_tasks.expires_at IS 'End of scheduleToStart; the sweeper fails the attempt after it.';
COMMENT ON COLUMN :"schema".ready_tasks.timeout_ms IS 'The attempt''s timeout, counted from the claim.';

CREATE TABLE :"schema".task_leases (
    run_id      uuid        NOT NULL,
    lease_id    uuid        NOT NULL,
    claim_id    uuid        NOT NULL,
    claimed_at  timestamptz NOT NULL,
    deadline_at timestamptz NOT NULL,
    index       integer     NOT NULL,
    attempt     integer     NOT NULL,
    generation  integer     NOT NULL,
    node        text        NOT NULL,
    worker_id   text        NOT NULL,
    queue       text        NOT NULL,
    type        text        NOT NULL,
    PRIMARY KEY (run_id, node, index)
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000, autovacuum_vacuum_cost_delay = 0,
        autovacuum_vacuum_insert_scale_factor = 0, autovacuum_vacuum_insert_threshold = 20000,
        autovacuum_analyze_scale_factor = 0, autovacuum_analyze_threshold = 20000, vacuum_truncate = off);
COMMENT ON TABLE  :"schema".task_leases IS 'Attempts that a worker holds. Whoever deletes the row, having locked the run, decides what became of the attempt.';
COMMENT ON COLUMN :"schema".task_leases.claim_id IS 'The claim that made it, so that a claim with an unknown outcome can be looked up.';
COMMENT ON COLUMN :"schema".task_leases.deadline_at IS 'End of the attempt''s timeout, by the database clock.';

CREATE TABLE :"schema".workers (
    id            text        PRIMARY KEY,
    started_at    timestamptz NOT NULL DEFAULT clock_timestamp(),
    heartbeat_at  timestamptz NOT NULL DEFAULT clock_timestamp(),
    expires_at    timestamptz NOT NULL,
    protocol      integer     NOT NULL,
    slots         integer     NOT NULL,
    draining      boolean     NOT NULL DEFAULT false,
    idle          boolean     NOT NULL DEFAULT false,
    namespaces    text[],
    queues        text[]      NOT NULL,
    types         text[]      NOT NULL DEFAULT '{}',
    host          text        NOT NULL DEFAULT ''
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500);
COMMENT ON TABLE  :"schema".workers IS 'Worker processes; one heartbeat each, whatever number of attempts it holds.';
COMMENT ON COLUMN :"schema".workers.expires_at IS 'After it the sweeper takes the worker''s leases away. In no index, so that heartbeats are HOT updates.';
COMMENT ON COLUMN :"schema".workers.idle IS 'It waits to be told of new work: whoever enqueues some sends one notification if any worker is idle.';
COMMENT ON COLUMN :"schema".workers.namespaces IS 'Namespaces it serves; null means all.';

CREATE TABLE :"schema".timers (
    run_id       uuid        NOT NULL,
    fire_at      timestamptz NOT NULL,
    remaining_ms bigint,
    dead_at      timestamptz,
    index        integer     NOT NULL,
    failures     integer     NOT NULL DEFAULT 0,
    kind         text        NOT NULL,
    node         text        NOT NULL,
    last_error   text,
    PRIMARY KEY (run_id, kind, node, index)
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000, autovacuum_vacuum_cost_delay = 0,
        autovacuum_analyze_scale_factor = 0, autovacuum_analyze_threshold = 20000, vacuum_truncate = off);
CREATE INDEX timers_due ON :"schema".timers (fire_at);
COMMENT ON TABLE  :"schema".timers IS 'Durable deadlines of runs: waits, timeouts of waits, backoff, startAt and the run''s own timeout.';
COMMENT ON COLUMN :"schema".timers.remaining_ms IS 'What was left when the run was suspended; fire_at is infinity meanwhile.';
COMMENT ON COLUMN :"schema".timers.failures IS 'Times that applying it failed; fire_at was moved by a backoff each time.';
COMMENT ON COLUMN :"schema".timers.dead_at IS 'Given up (fire_at is infinity) until someone drives it again.';

CREATE TABLE :"schema".waits (
    run_id uuid        NOT NULL,
    since  timestamptz NOT NULL,
    seq    integer     NOT NULL,
    index  integer     NOT NULL,
    kind   text        NOT NULL DEFAULT 'signal',
    name   text        NOT NULL,
    node   text        NOT NULL,
    PRIMARY KEY (run_id, kind, name, seq, node, index)
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000, autovacuum_vacuum_cost_delay = 0,
        autovacuum_analyze_scale_factor = 0, autovacuum_analyze_threshold = 20000, vacuum_truncate = off);
COMMENT ON TABLE  :"schema".waits IS 'Nodes that wait for a signal of this name; the lowest seq is served first.';

CREATE TABLE :"schema".run_inbox (
    id         bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    run_id     uuid        NOT NULL,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    due_at     timestamptz NOT NULL DEFAULT clock_timestamp(),
    dead_at    timestamptz,
    failures   integer     NOT NULL DEFAULT 0,
    kind       text        NOT NULL CHECK (kind IN ('start', 'signal')),
    body       json        NOT NULL,
    last_error text
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000, autovacuum_vacuum_cost_delay = 0,
        autovacuum_analyze_scale_factor = 0, autovacuum_analyze_threshold = 20000, vacuum_truncate = off);
COMMENT ON TABLE  :"schema".run_inbox IS 'What other transactions want to happen to a run. They only insert; the row is deleted by the transaction that applies it under the run''s lock.';
COMMENT ON COLUMN :"schema".run_inbox.dead_at IS 'Given up after too many failures, until someone drives it again.';

CREATE TABLE :"schema".run_keys (
    run_id     uuid        NOT NULL,
    expires_at timestamptz,
    scope      text        NOT NULL CHECK (scope IN ('cr', 'idempotency')),
    namespace  text        NOT NULL,
    key        text        NOT NULL,
    input_hash text        NOT NULL,
    PRIMARY KEY (scope, namespace, key)
);
COMMENT ON TABLE  :"schema".run_keys IS 'Names that may start only one run: uids of WorkflowRun objects and idempotency keys. Not partitioned, so that a key is unique over all months.';
COMMENT ON COLUMN :"schema".run_keys.namespace IS 'Of the run; for scope cr the cluster uid.';
COMMENT ON COLUMN :"schema".run_keys.input_hash IS 'SHA-256 of definition and input: the same key with another input is refused.';

CREATE TABLE :"schema".projection_queue (
    run_id   uuid        PRIMARY KEY,
    revision bigint      NOT NULL,
    due_at   timestamptz NOT NULL
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_cost_delay = 0,
        autovacuum_analyze_scale_factor = 0, autovacuum_analyze_threshold = 20000, vacuum_truncate = off);
COMMENT ON TABLE :"schema".projection_queue IS 'Runs whose WorkflowRun object does not show this revision yet. The projector deletes the row only if the revision is still the one it wrote.';

CREATE TABLE :"schema".run_refusals (
    engine_id     text        NOT NULL,
    cr_uid        text        NOT NULL,
    cr_generation bigint      NOT NULL,
    due_at        timestamptz,
    created_at    timestamptz NOT NULL DEFAULT clock_timestamp(),
    waiting       boolean     NOT NULL DEFAULT false,
    cr_namespace  text        NOT NULL,
    cr_name       text        NOT NULL,
    definition    text        NOT NULL,
    reason        text        NOT NULL,
    message       text        NOT NULL,
    PRIMARY KEY (engine_id, cr_uid)
);
COMMENT ON TABLE  :"schema".run_refusals IS 'WorkflowRun objects that have no run, and why.';
COMMENT ON COLUMN :"schema".run_refusals.waiting IS 'True when the start is tried again once the definition appears.';
COMMENT ON COLUMN :"schema".run_refusals.due_at IS 'When the object''s status is to be written; null once it was.';

CREATE TABLE :"schema".open_runs (
    run_id      uuid PRIMARY KEY,
    namespace   text NOT NULL,
    definition  text NOT NULL,
    name        text NOT NULL,
    cluster_uid text,
    engine_id   text,
    cr_uid      text
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000, autovacuum_vacuum_cost_delay = 0,
        autovacuum_analyze_scale_factor = 0, autovacuum_analyze_threshold = 20000, vacuum_truncate = off);
COMMENT ON COLUMN :"schema".open_runs.name IS 'Name of the WorkflowRun object; empty for a run without one.';
COMMENT ON TABLE :"schema".open_runs IS 'Runs that have not ended: inserted with the run, deleted by its end. Keeps their months from being dropped.';

INSERT INTO :"schema".schema_migrations (version, name, checksum) VALUES (1, 'init', '');
