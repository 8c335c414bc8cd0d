"""The fields of every object in a manifest.

Invariant: one table serves the check for unknown fields and the manual, so that neither can know a field that the other
does not. Fields of later versions stand in ``later``, not here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Field:
    """One field as shown to people."""

    name: str
    shape: str
    summary: str


@dataclass(frozen=True, slots=True)
class Shape:
    """One object: ``title`` is where it stands, as in messages and headings."""

    title: str
    fields: tuple[Field, ...]

    @property
    def names(self) -> frozenset[str]:
        """The names of its fields."""
        return frozenset(field.name for field in self.fields)


_DUR: Final = "duration"
_DURX: Final = "duration or `${…}`"
_COND: Final = "one `${…}`, boolean"

SPEC: Final = Shape(
    "WorkflowDefinition.spec",
    (
        Field("description", "text, at most 4096 characters", "What the workflow is for."),
        Field(
            "inputSchema", "JSON Schema 2020-12", "Defaults are filled in, then a run's input is checked and stored."
        ),
        Field("config", "object", "Constants, read as `config`; not evaluated."),
        Field("timeout", _DUR, "Of the whole run. Default: none."),
        Field(
            "failFast",
            "boolean",
            "false: after a failure independent branches finish before the run fails. Default: true.",
        ),
        Field("defaults", "object", "Values for nodes that set none of their own."),
        Field("nodes", "list of 1 to 1000 nodes", "The steps, in any order."),
        Field("output", "object with expressions", "The run's output; may name every node."),
    ),
)
DEFAULTS: Final = Shape(
    "spec.defaults",
    (
        Field("timeout", _DUR, "Of an attempt of a task. Default: the engine's, 5m."),
        Field("scheduleToStart", _DUR, "How long a task may wait for a worker. Default: no limit."),
        Field("queue", "name", "Queue of tasks that name none. Default: `default`."),
        Field("retry", "list of at most 8 tiers", "For tasks without `retry`. Default: no retries."),
    ),
)
TIER: Final = Shape(
    "retry tier",
    (
        Field(
            "match",
            "list of error types",
            "`any` takes all but `fatal`, `expression` and `cancelled`. Default: `[any]`.",
        ),
        Field("when", _COND, "Reads `error` too. Default: true."),
        Field("maxRetries", "0 to 100000", "Retries of this tier. Default: no limit but `maxElapsed`."),
        Field("initialDelay", _DUR, "Default: 1s."),
        Field("multiplier", "1 to 100", "Growth of the delay. Default: 2."),
        Field("maxDelay", _DUR, "Default: 5m."),
        Field("maxElapsed", _DUR, "No retry later than this after the first failure. Default: no limit."),
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
        Field("when", _COND, "false: the node is stepped over with null output and what follows runs."),
        Field("input", "object with expressions", "Of a task. Evaluated once; retries get the same."),
        Field("timeout", _DURX, "Of an attempt of a task."),
        Field("scheduleToStart", _DUR, "Of a task."),
        Field("retry", "list of at most 8 tiers", "Of a task; replaces `defaults.retry`, `[]` means none."),
        Field("onError", "list of at most 16 routes", "After retries: the first that matches goes on instead."),
        Field("onFailure", "fail or continue", "continue: what follows runs, with null output. Default: fail."),
        Field("priority", "-2 to 2", "Of a task in its queue. Default: the run's."),
        Field("task", "object", "Kind: work for a worker."),
        Field("switch", "list of 1 to 64 cases", "Kind: the first case whose `when` holds chooses what comes next."),
        Field("wait", "object", "Kind: a timer that survives restarts."),
        Field("waitForEvent", "object", "Kind: waits for a signal; approvals and pauses are this."),
        Field("compute", "object with expressions", "Kind: becomes the output; no worker."),
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
        Field("when", _COND, "Left out in the last case: otherwise."),
        Field("next", "list of names", "What this case chooses; `[]` chooses nothing."),
    ),
)
WAIT: Final = Shape(
    "node.wait",
    (
        Field("duration", _DURX, "Either this"),
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
        Field("until", _COND, "Reads `events`; the output is the list of events."),
        Field("timeout", _DURX, "The only timeout of the node. Default: none."),
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
        Field("when", _COND, "Reads `error` too. Default: true."),
        Field("next", "list of names", "Where to go on; `[]` swallows the error."),
    ),
)
RUN: Final = Shape(
    "WorkflowRun.spec",
    (
        Field("definitionRef", "object", "The definition to execute. Fixed, as are the fields down to `timeout`."),
        Field("input", "object", "At most 1 MiB. Default: `{}`."),
        Field("runId", "UUID version 7", "Default: derived from the object's UID and creation time."),
        Field("idempotencyKey", "text, at most 255 characters", "Two runs of a namespace with the same key are one."),
        Field("startAt", "RFC 3339 time", "Earliest start."),
        Field("priority", "-2 to 2", "Default: 0."),
        Field("tags", "list of at most 32 words", "To find the run by."),
        Field("attributes", "object of at most 32 texts", "Labels of the run."),
        Field("timeout", _DUR, "Default: the definition's."),
        Field("ttlSecondsAfterFinished", "number", "Seconds from the end until the object is deleted."),
        Field("suspend", "boolean", "Control: true pauses, false resumes."),
        Field("cancel", "object", "Control: ends the run; `{}` is enough."),
        Field(
            "signals", "list of at most 64 {id, name, payload}", "Control: appended by a patch, never in a manifest."
        ),
    ),
)
DEFINITION_REF: Final = Shape(
    "WorkflowRun.spec.definitionRef",
    (
        Field("name", "object name", "Of a WorkflowDefinition in the namespace."),
        Field("version", "number", "Default: the deployed one."),
    ),
)
CANCEL: Final = Shape(
    "WorkflowRun.spec.cancel",
    (
        Field("mode", "Graceful or Now", "Default: Graceful."),
        Field("reason", "text, at most 1024 characters", "For people."),
    ),
)
SIGNAL: Final = Shape(
    "WorkflowRun.spec.signals[]",
    (
        Field("id", "text, at most 63 characters", "Unique in the run for ever."),
        Field("name", "text, at most 63 characters", "That a waitForEvent waits for."),
        Field("payload", "object", "Becomes the output of the node that waits."),
    ),
)

ALL: Final = (SPEC, DEFAULTS, TIER, NODE, TASK, CASE, WAIT, EVENT, ALTERNATIVE, ON_TIMEOUT, ROUTE)
"""The objects of a definition, in the order of the manual."""
ALL_OF_RUN: Final = (RUN, DEFINITION_REF, CANCEL, SIGNAL)
"""The objects of a run."""
