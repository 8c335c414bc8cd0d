"""The fields of nodes and of what stands in them.

Invariant: as in ``shapes``, which holds the rest.
"""

from __future__ import annotations

from typing import Final

from partita.domain.manifest.shape import COND, DUR, DURX, Field, Shape

TIER: Final = Shape(
    "retry tier",
    (
        Field(
            "match",
            "list of error types",
            "`any` takes all but `fatal`, `expression` and `cancelled`. Default: `[any]`.",
        ),
        Field("when", COND, "Reads `error` too. Default: true."),
        Field("maxRetries", "0 to 100000", "Retries of this tier. Default: no limit but `maxElapsed`."),
        Field("initialDelay", DUR, "Default: 1s."),
        Field("multiplier", "1 to 100", "Growth of the delay. Default: 2."),
        Field("maxDelay", DUR, "Default: 5m."),
        Field("maxElapsed", DUR, "No retry later than this after the first failure. Default: no limit."),
        Field("jitter", "0 to 1", "Random share of the delay. Default: 0.2."),
    ),
)
NODE: Final = Shape(
    "node",
    (
        Field("name", "name", "Letters, digits and underscores, first a small letter; no word of CEL."),
        Field("description", "text, at most 1024 characters", "What the node is for."),
        Field("dependsOn", "list of at most 64 names", "Nodes that come before."),
        Field("join", "all, merge or any", "When to start after several edges. Default: all."),
        Field("joinCount", "number", "Instead of `join`: at the nth live edge."),
        Field(
            "cancelRemaining", "boolean", "When this node starts, cancel what it no longer waits for. Default: false."
        ),
        Field("when", COND, "false: the node is stepped over with null output and what follows runs."),
        Field("input", "object with expressions", "Of a task or child run. Evaluated once; retries get the same."),
        Field("timeout", DURX, "Of an attempt of a task, of a whole child run; in a loop of one item or iteration."),
        Field("scheduleToStart", DUR, "Of a task: how long it may wait for a worker."),
        Field(
            "retry",
            "list of at most 8 tiers",
            "Of a task or workflow. Replaces `defaults.retry`, which is for tasks; `[]` means none.",
        ),
        Field("onError", "list of at most 16 routes", "After retries: the first that matches goes on instead."),
        Field("onFailure", "fail or continue", "continue: what follows runs, with null output. Default: fail."),
        Field("priority", "-2 to 2", "Of a task in its queue, of a child run. Default: the run's."),
        Field("forEach", "object", "Of a task or workflow: once for each item of a list or object."),
        Field("repeat", "object", "Of a task or workflow: again and again, until a condition holds."),
        Field("undo", "object", "Of a task or workflow: the task that reverses it when the run does not succeed."),
        Field("task", "object", "Kind: work for a worker."),
        Field("workflow", "object", "Kind: a child run, of another definition or of a subflow."),
        Field("switch", "list of 1 to 64 cases", "Kind: the first case whose `when` holds chooses what comes next."),
        Field("wait", "object", "Kind: a timer that survives restarts."),
        Field("waitForEvent", "object", "Kind: waits for a signal; approvals and pauses are this."),
        Field("compute", "object with expressions", "Kind: becomes the output; no worker."),
        Field("fail", "object", "Kind: ends the run (or subflow) as Failed and cancels the rest."),
        Field("succeed", "object", "Kind: ends the run (or subflow) as Succeeded and cancels the rest."),
    ),
)
TASK: Final = Shape(
    "node.task",
    (
        Field("type", "text, at most 128 characters", "As workers register it, such as `charge-card`. No expressions."),
        Field("queue", "name", "Default: `defaults.queue`, else `default`. No expressions."),
    ),
)
CASE: Final = Shape(
    "node.switch[]",
    (
        Field("when", COND, "Left out in the last case: otherwise."),
        Field("next", "list of names", "What this case chooses; `[]` chooses nothing."),
    ),
)
WAIT: Final = Shape(
    "node.wait",
    (
        Field("duration", DURX, "Either this"),
        Field("until", "time or `${…}`", "or this: RFC 3339; a past time completes at once."),
    ),
)
EVENT: Final = Shape(
    "node.waitForEvent",
    (
        Field("name", "text with expressions", "Of the signal. Default: the node's name."),
        Field("schema", "JSON Schema 2020-12", "A signal that breaks it is refused; the wait goes on."),
        Field(
            "anyOf", "list of 1 to 16 {name, schema}", "Instead of name and schema; the output is `{name, payload}`."
        ),
        Field("until", COND, "Reads `events`; the output is the list of events."),
        Field("timeout", DURX, "The only timeout of the node. Default: none."),
        Field("onTimeout", "object", "Left out: a timeout is the error `timeout`."),
        Field("ignoreEarlier", "boolean", "true drops signals that came before the wait. Default: false."),
    ),
)
ALTERNATIVE: Final = Shape(
    "node.waitForEvent.anyOf[]",
    (
        Field("name", "text with expressions", "Of the signal."),
        Field("schema", "JSON Schema 2020-12", "Of its payload."),
    ),
)
ON_TIMEOUT: Final = Shape(
    "node.waitForEvent.onTimeout",
    (
        Field("output", "object with expressions", "Either goes on with this output"),
        Field("next", "list of names", "or takes this route."),
    ),
)
ROUTE: Final = Shape(
    "node.onError[]",
    (
        Field("match", "list of error types", "Default: `[any]`."),
        Field("when", COND, "Reads `error` too. Default: true."),
        Field("next", "list of names", "Where to go on; `[]` swallows the error."),
    ),
)
WORKFLOW: Final = Shape(
    "node.workflow",
    (
        Field("name", "object name", "Either a WorkflowDefinition of the namespace. No expressions."),
        Field("version", "number", "Of that definition. Default: the one deployed when the node starts."),
        Field("subflow", "name", "or an entry of `spec.subflows`, of the same version."),
        Field("detach", "boolean", "true: do not wait for the child; the output is `{runId}`. Default: false."),
    ),
)
FAIL: Final = Shape(
    "node.fail",
    (
        Field("type", "error type", "Of the run, such as `refused`; small letters, digits and underscores."),
        Field("message", "text with expressions", "For people."),
    ),
)
SUCCEED: Final = Shape(
    "node.succeed",
    (Field("output", "object with expressions", "Of the run, instead of the one of the definition. Default: null."),),
)
FOR_EACH: Final = Shape(
    "node.forEach",
    (
        Field("items", "list, object or one `${…}`", "Evaluated once; an object's values, by its sorted keys."),
        Field("as", "name", "The variable that holds an item, beside `index` and `key`. Default: `item`."),
        Field("maxParallel", "1 to 10000", "Items that execute at once. Default: 100."),
        Field("maxFailures", "number or `p%`", "Failed items that are borne. Default: 0, or what `joinCount` leaves."),
        Field("joinCount", "1 to 10000", "So many Completed items are enough. Default: all."),
        Field("cancelRemaining", "boolean", "true: when that is decided, cancel the items in flight. Default: wait."),
    ),
)
REPEAT: Final = Shape(
    "node.repeat",
    (
        Field("until", COND, "Either: stops when it is true"),
        Field("while", COND, "or: goes on while it is true. Looked at after each iteration."),
        Field("delay", DURX, "Between two iterations. Default: none."),
        Field("maxIterations", "1 to 1000000", "After so many: the error `max_iterations`. Default: 1000."),
        Field("collect", "one `${…}`", "A value of each iteration, for the output. Default: the last output."),
    ),
)
UNDO: Final = Shape(
    "node.undo",
    (
        Field("task", "object", "As `node.task`; with `defaults.retry`, else five tries."),
        Field("input", "object with expressions", "Reads the node's own `input`, `output` and `error`."),
    ),
)

ALL: Final = (
    TIER, NODE, TASK, WORKFLOW, CASE, WAIT, EVENT, ALTERNATIVE, ON_TIMEOUT, FAIL, SUCCEED,
    FOR_EACH, REPEAT, UNDO, ROUTE,
)  # fmt: skip
"""In the order of the manual."""
