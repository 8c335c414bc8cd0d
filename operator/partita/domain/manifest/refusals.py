"""What manifests cannot say: features of later versions, and features refused on purpose.

Invariant: a field that people know from the language's description or from other workflow engines is never just
"unknown": the message says that it comes later, or how to write the same thing here.
"""

from __future__ import annotations

from typing import Final

from partita.domain.manifest import shapes
from partita.domain.manifest.shapes import Shape
from partita.domain.payload import Json

LATER: Final[dict[tuple[Shape, str], str]] = {
    (shapes.SPEC, "concurrency"): "start fewer runs at once",
    (shapes.SPEC, "schedule"): "create the runs from a CronJob",
    (shapes.SPEC, "onFinish"): "let a task in finally do it",
    (shapes.NODE, "job"): "use a task whose worker starts the Job",
    (shapes.NODE, "cache"): "let the worker cache",
    (shapes.NODE, "concurrency"): "bound it by the slots of the queue's workers",
    (shapes.NODE, "sensitive"): "pass a reference instead of the value",
    (shapes.RUN, "rerunOf"): "start a new run",
    (shapes.RUN, "hold"): "use suspend",
    (shapes.RUN, "retry"): "start a new run",
}
"""Fields of the language that this version does not know yet, and what to do until then."""

_NEUTRAL: Final[dict[tuple[Shape, str], Json]] = {
    (shapes.NODE, "sensitive"): False,
    (shapes.RUN, "hold"): [],
    (shapes.RUN, "retry"): 0,
}
"""Values of fields of ``LATER`` that ask for what happens anyway."""


def says_nothing(shape: Shape, name: str, value: Json) -> bool:
    """Whether a field of a later version may stand, since with this value it means the same as without it.

    Every other value is refused, an empty one too: ``job: {}`` is a whole node.
    """
    neutral = _NEUTRAL.get((shape, name))
    return type(value) is type(neutral) and value == neutral


LATER_KINDS: Final = ("job",)
"""Kinds of nodes among them."""

_EDGES: Final = "list the nodes in dependsOn; a condition belongs into when (steps over) or a switch node (cuts)"
_CHOOSE: Final = "use a switch node with {when, next} cases"
_LOOP: Final = "use forEach: {items: …}; combinations are one list, made with map, range and flatten"
_AGAIN: Final = "cycles do not exist; use repeat: {until: …} at a task, or at a workflow node that runs a subflow"
_INLINE: Final = "list the nodes in spec.subflows and run them with workflow: {subflow: …}"
_HOOK: Final = "use spec.finally for what comes after every end, else a node that depends on this one"
_UNDO: Final = "use undo: {task: {type: refund}, input: {id: '${output.id}'}}"
_TASK: Final = "use a task, such as task: {type: charge-card}, and a worker that serves its type"
_EVENT: Final = "use waitForEvent; approvals and manual pauses are this"
_REFERENCE: Final = "pass references, such as an object-store key, in input and output"

REFUSED: Final[dict[tuple[Shape, str], str]] = {
    (shapes.NODE, "depends"): _EDGES,
    (shapes.NODE, "dependencies"): _EDGES,
    (shapes.NODE, "needs"): _EDGES,
    (shapes.NODE, "runAfter"): _EDGES,
    (shapes.NODE, "after"): _EDGES,
    (shapes.NODE, "if"): "use when: a condition that steps the node over",
    (shapes.NODE, "unless"): "use when with a negated condition",
    (shapes.NODE, "condition"): "use when: a condition that steps the node over",
    (shapes.NODE, "conditions"): "use when for one node, or a switch node for branches",
    (shapes.NODE, "choice"): _CHOOSE,
    (shapes.NODE, "choices"): _CHOOSE,
    (shapes.NODE, "branches"): _CHOOSE,
    (shapes.NODE, "compensate"): _UNDO,
    (shapes.NODE, "compensation"): _UNDO,
    (shapes.NODE, "subflow"): "use workflow: {subflow: …}",
    (shapes.NODE, "case"): _CHOOSE,
    (
        shapes.NODE,
        "next",
    ): "name this node in the dependsOn of the node that follows; only switch, onError and onTimeout have next",
    (shapes.NODE, "goto"): _AGAIN,
    (shapes.NODE, "loop"): _AGAIN,
    (shapes.NODE, "parallel"): "nodes without an edge between them run in parallel already",
    (shapes.NODE, "matrix"): _LOOP,
    (shapes.NODE, "withItems"): _LOOP,
    (shapes.NODE, "withParam"): _LOOP,
    (shapes.NODE, "strategy"): _LOOP,
    (shapes.NODE, "with"): "use input: an object of values and expressions",
    (shapes.NODE, "inputs"): "use input: an object of values and expressions",
    (shapes.NODE, "params"): "use input: an object of values and expressions",
    (shapes.NODE, "arguments"): "use input: an object of values and expressions",
    (shapes.NODE, "output"): "a node's output is what its task reports; reshape it in a compute node",
    (shapes.NODE, "outputs"): "a node's output is what its task reports; reshape it in a compute node",
    (shapes.NODE, "outputMapping"): "reshape the output in a compute node",
    (shapes.NODE, "artifacts"): _REFERENCE,
    (shapes.NODE, "workspaces"): _REFERENCE,
    (shapes.NODE, "hooks"): _HOOK,
    (shapes.NODE, "onExit"): _HOOK,
    (shapes.NODE, "nodes"): _INLINE,
    (shapes.NODE, "daemon"): "run the service outside and pass its address in the input",
    (shapes.NODE, "resource"): "objects are not created by nodes; use a task whose worker does it",
    (shapes.NODE, "steps"): _INLINE,
    (shapes.NODE, "script"): _TASK,
    (shapes.NODE, "run"): _TASK,
    (shapes.NODE, "image"): _TASK,
    (shapes.NODE, "container"): _TASK,
    (shapes.NODE, "template"): _TASK,
    (shapes.NODE, "taskRef"): _TASK,
    (shapes.NODE, "type"): _TASK,
    (shapes.NODE, "uses"): _TASK,
    (shapes.NODE, "suspend"): _EVENT,
    (shapes.NODE, "approval"): _EVENT,
    (shapes.NODE, "sleep"): "use wait: {duration: 10m}",
    (shapes.NODE, "timer"): "use wait: {duration: 10m}",
    (shapes.NODE, "retries"): "use retry: [{maxRetries: 3}]",
    (shapes.NODE, "retryStrategy"): "use retry: [{maxRetries: 3}]",
    (shapes.NODE, "catch"): "use onError: [{match: [any], next: [other]}]",
    (shapes.NODE, "continueOn"): "use onFailure: continue",
    (shapes.NODE, "allowFailure"): "use onFailure: continue",
    (shapes.EVENT, "filter"): "payload filters do not exist; wait until a condition over events holds",
    (shapes.EVENT, "match"): "payload filters do not exist; wait until a condition over events holds",
    (shapes.SPEC, "variables"): "runs have no variables; use config for constants and compute nodes for values",
    (shapes.SPEC, "vars"): "runs have no variables; use config for constants and compute nodes for values",
    (shapes.SPEC, "env"): "runs have no variables; use config for constants and compute nodes for values",
    (shapes.SPEC, "on"): "runs start by WorkflowRun objects, not by events; YAML reads on as true besides",
    (shapes.SPEC, "true"): "YAML reads the words on, yes and y as true; no field is called so",
    (shapes.SPEC, "trigger"): "runs start by WorkflowRun objects, not by events",
    (shapes.SPEC, "triggers"): "runs start by WorkflowRun objects, not by events",
    (shapes.SPEC, "hooks"): "use finally: {nodes: […]}",
    (shapes.SPEC, "onExit"): "use finally: {nodes: […]}",
    (shapes.SPEC, "tasks"): "use nodes: a list of {name, task: {type}}",
    (shapes.SPEC, "steps"): "use nodes: a list of {name, task: {type}}",
    (shapes.SPEC, "jobs"): "use nodes: a list of {name, task: {type}}",
    (shapes.SPEC, "templates"): "use nodes: a list of {name, task: {type}}",
    (shapes.SPEC, "entrypoint"): "nodes without edges start first",
    (shapes.SPEC, "artifacts"): _REFERENCE,
    (shapes.SPEC, "workspaces"): _REFERENCE,
    (shapes.SPEC, "params"): "describe the input in inputSchema",
    (shapes.SPEC, "arguments"): "describe the input in inputSchema",
    (shapes.SPEC, "inputs"): "describe the input in inputSchema",
    (shapes.SPEC, "input"): "describe the input in inputSchema; a run brings its own",
    (shapes.SUBFLOW, "inputSchema"): "the input of a subflow comes from its workflow node; check the run's in spec",
    (shapes.SUBFLOW, "config"): "subflows read spec.config",
    (shapes.SUBFLOW, "defaults"): "spec.defaults are those of subflows too",
    (shapes.SUBFLOW, "subflows"): "list it in spec.subflows; subflows may run each other and themselves",
    (shapes.FINALLY, "output"): "spec.output is evaluated before finally",
    (shapes.UNDO, "type"): "use undo: {task: {type: …}}",
    (shapes.UNDO, "retry"): "undo takes spec.defaults.retry, else five tries",
    (shapes.UNDO, "workflow"): "use a task",
    (shapes.FOR_EACH, "when"): "filter the items, such as items: '${input.lines.filter(line, line.open)}'",
    (shapes.DEFINITION_REF, "namespace"): "a run and its definition live in one namespace",
}
"""Fields that do not exist on purpose, and how to write the same thing."""
