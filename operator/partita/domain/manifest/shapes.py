"""The fields of every object in a manifest.

Invariant: one table serves the check for unknown fields and the manual, so that neither can know a field that the other
does not. Fields of later versions stand in ``refusals.LATER``, not here.
"""

from __future__ import annotations

from typing import Final

from partita.domain.manifest import node_shapes
from partita.domain.manifest.node_shapes import (
    ALTERNATIVE,
    CASE,
    EVENT,
    FAIL,
    FOR_EACH,
    NODE,
    ON_TIMEOUT,
    REPEAT,
    ROUTE,
    SUCCEED,
    TASK,
    TIER,
    UNDO,
    WAIT,
    WORKFLOW,
)
from partita.domain.manifest.shape import DUR, Field, Shape

__all__ = [
    "ALL",
    "ALL_OF_RUN",
    "ALTERNATIVE",
    "CANCEL",
    "CASE",
    "DEFAULTS",
    "DEFINITION_REF",
    "EVENT",
    "FAIL",
    "FINALLY",
    "FOR_EACH",
    "NODE",
    "ON_TIMEOUT",
    "REPEAT",
    "RETENTION",
    "ROUTE",
    "RUN",
    "SIGNAL",
    "SPEC",
    "SUBFLOW",
    "SUCCEED",
    "TASK",
    "TIER",
    "UNDO",
    "WAIT",
    "WORKFLOW",
    "Field",
    "Shape",
]

SPEC: Final = Shape(
    "WorkflowDefinition.spec",
    (
        Field("description", "text, at most 4096 characters", "What the workflow is for."),
        Field(
            "inputSchema", "JSON Schema 2020-12", "Defaults are filled in, then a run's input is checked and stored."
        ),
        Field("config", "object", "Constants, read as `config`; not evaluated."),
        Field("timeout", DUR, "Of the whole run. Default: none."),
        Field(
            "failFast",
            "boolean",
            "false: after a failure independent branches finish before the run fails. Default: true.",
        ),
        Field("defaults", "object", "Values for nodes that set none of their own."),
        Field("subflows", "list of at most 32", "Named node lists that `workflow.subflow` runs."),
        Field("nodes", "list of 1 to 1000 nodes", "The steps, in any order."),
        Field("finally", "object", "Nodes that run after every end but `cancel` with mode Now."),
        Field("output", "object with expressions", "The run's output; may name every node. Default: null."),
        Field("retention", "object", "How long the objects of finished runs stay; no part of a version."),
    ),
)
RETENTION: Final = Shape(
    "spec.retention",
    (
        Field(
            "ttlSecondsAfterFinished",
            "number",
            "Seconds from a run's end until its object is deleted; the run's own go first. Default: the engine's.",
        ),
        Field("maxFinishedRuns", "number", "Finished objects to keep; the oldest go first. Default: no limit."),
    ),
)
DEFAULTS: Final = Shape(
    "spec.defaults",
    (
        Field("timeout", DUR, "Of an attempt of a task. Default: the engine's, 5m."),
        Field("scheduleToStart", DUR, "How long a task may wait for a worker. Default: no limit."),
        Field("queue", "name", "Queue of tasks that name none. Default: `default`."),
        Field("retry", "list of at most 8 tiers", "For tasks without `retry`. Default: no retries."),
    ),
)
SUBFLOW: Final = Shape(
    "spec.subflows[]",
    (
        Field("name", "name", "For `workflow.subflow`."),
        Field("nodes", "list of 1 to 1000 nodes", "They see the subflow's own `input`, and `config` and `run`."),
        Field("failFast", "boolean", "As in spec. Default: true."),
        Field("timeout", DUR, "Of one child run. Default: none; the node's `timeout` goes before it."),
        Field("finally", "object", "Nodes that run after every end of the child run."),
        Field("output", "object with expressions", "What the workflow node gets. Default: null."),
    ),
)
FINALLY: Final = Shape(
    "spec.finally",
    (
        Field("timeout", DUR, "Of these nodes together. Default: none."),
        Field("nodes", "list of 1 to 32 nodes", "They may read every node of the flow; edges lead among themselves."),
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
        Field("timeout", DUR, "Default: the definition's."),
        Field("ttlSecondsAfterFinished", "number", "Seconds from the end until the object is deleted."),
        Field("suspend", "boolean", "Control: true pauses, false resumes."),
        Field("cancel", "object", "Control: ends the run; `{}` is enough."),
        Field("cancelNodes", "list of at most 256 names", "Control: cancels these nodes; the run goes on."),
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

ALL: Final = (SPEC, DEFAULTS, SUBFLOW, FINALLY, RETENTION, *node_shapes.ALL)
"""The objects of a definition, in the order of the manual."""
ALL_OF_RUN: Final = (RUN, DEFINITION_REF, CANCEL, SIGNAL)
"""The objects of a run."""
