-- A busy month: 20,000 runs of three nodes, 300 of them open, and the scheduling rows that go with it.
CREATE TEMP TABLE ids AS
SELECT n, (lpad(to_hex($MS + n), 12, '0') || '7000' || '8' || lpad(to_hex(n), 15, '0'))::uuid AS id
FROM generate_series(1, 20000) AS n;

INSERT INTO partita.workflow_runs
    (id, definition_id, start_request_id, created_at, version, total, status, namespace, name, definition, context_json)
SELECT id, gen_random_uuid(), gen_random_uuid(), clock_timestamp(), 1, 3, 'Succeeded', 'ns' || n % 7, 'run' || n,
       'order', '{"input": null}'
FROM ids;

INSERT INTO partita.task_instances (run_id, node, kind, state)
SELECT id, node, 'task', 'Completed' FROM ids CROSS JOIN unnest(ARRAY['a', 'b', 'c']) AS node;

INSERT INTO partita.run_history (run_id, seq, at, event, node)
SELECT id, seq, clock_timestamp(), 'TaskCompleted', 'a' FROM ids CROSS JOIN generate_series(1, 5) AS seq;

INSERT INTO partita.workflow_events (run_id, seq, created_at, id, name, payload)
SELECT id, 1, clock_timestamp(), 'e1', 'approval', 'null' FROM ids WHERE n % 10 = 0;

INSERT INTO partita.run_endings (run_id, finished_at, generation, seq, status, namespace, definition, name)
SELECT id, clock_timestamp(), 0, 6, 'Succeeded', 'ns' || n % 7, 'order', 'run' || n FROM ids;

INSERT INTO partita.open_runs (run_id, namespace, definition, name)
SELECT id, 'ns' || n % 7, 'order', 'run' || n FROM ids WHERE n <= 300;

INSERT INTO partita.timers (run_id, fire_at, index, kind, node)
SELECT id, clock_timestamp() + n * interval '1 second', 0, 'wait', 'a' FROM ids WHERE n <= 300;

INSERT INTO partita.waits (run_id, since, seq, index, name, node)
SELECT id, clock_timestamp(), 1, 0, 'approval', 'b' FROM ids WHERE n <= 300;

INSERT INTO partita.task_instances (run_id, node, index, kind, state, detail)
SELECT id, 'each', index, 'workflow', 'Waiting', '{"loop": {"total": 50, "born": 50, "running": 50}}'
FROM ids CROSS JOIN generate_series(-1, 49) AS index WHERE n <= 100;

UPDATE partita.workflow_runs AS run
SET parent_id = parent.id, parent_node = 'each', parent_index = ids.n % 50, parent_attempt = 1, depth = 1
FROM ids JOIN ids AS parent ON parent.n = ids.n % 100 + 1
WHERE run.id = ids.id AND ids.n BETWEEN 5001 AND 10000;

INSERT INTO partita.run_inbox (run_id, kind, body)
SELECT id, 'ChildFinished', '{}' FROM ids CROSS JOIN generate_series(1, 5) WHERE n <= 300;
