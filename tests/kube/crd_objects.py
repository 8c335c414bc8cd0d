"""Objects of the three kinds for tests: small ones, and the largest that the CRDs allow.

The run-time budget of rules is spent by the number of elements, so the largest objects have every list full; their
names are as long as the API server's own limit of an object (about 1.5 MB) leaves room for.
"""

from __future__ import annotations

from typing import Any

Object = dict[str, Any]

MAX_NODES = 1000
MAX_DEPENDENCIES = 64
MAX_SUBFLOWS = 32
MAX_FINALLY_NODES = 32
MAX_SIGNALS = 64
MAX_CONTROLLED_NODES = 256
MAX_TAGS = 32
MAX_ATTRIBUTES = 32


def definition(name: str, *nodes: Object, **spec: Any) -> Object:
    """A WorkflowDefinition; with one task node if none is given."""
    return _object("WorkflowDefinition", name, {"nodes": list(nodes) or [task("only")], **spec})


def run(name: str, **spec: Any) -> Object:
    """A WorkflowRun of the definition `order` unless the spec says otherwise."""
    return _object("WorkflowRun", name, {"definitionRef": {"name": "order"}, **spec})


def engine(name: str = "partita", **spec: Any) -> Object:
    """A WorkflowEngine."""
    return _object("WorkflowEngine", name, spec)


def task(name: str, **fields: Any) -> Object:
    """A task node."""
    return {"name": name, "task": {"type": "noop"}, **fields}


def signal(identifier: str, **payload: Any) -> Object:
    """A signal named approval."""
    return {"id": identifier, "name": "approval", "payload": payload}


def largest_definition(name: str, *, node_name_length: int = 5) -> Object:
    """1,000 nodes of 64 dependencies each, 32 finally nodes that depend on each other and 32 subflows."""
    names = [f"n{i:0{node_name_length - 1}d}" for i in range(MAX_NODES)]
    nodes = [task(each, dependsOn=names[max(0, i - MAX_DEPENDENCIES) : i]) for i, each in enumerate(names)]
    for node in nodes[:MAX_DEPENDENCIES]:
        node["dependsOn"] = names[-MAX_DEPENDENCIES:]  # cycles are the operator's to refuse; the lists must be full
    last = [f"{'last' * 15}{i:03d}" for i in range(MAX_FINALLY_NODES)]
    closing = [task(each, dependsOn=[other for other in last if other != each]) for each in last]
    subflows = [{"name": f"{'flow' * 15}{i:03d}", "nodes": [task("one")]} for i in range(MAX_SUBFLOWS)]
    return definition(name, *nodes, subflows=subflows, **{"finally": {"nodes": closing}})


def largest_run(name: str, *, input_bytes: int = 1024 * 1024) -> Object:
    """Every list and map of a run's spec full, its strings as long as they may be, and an input of 1 MiB."""
    nodes = [f"{'n' * 60}{i:03d}" for i in range(MAX_CONTROLLED_NODES)]
    return run(
        name,
        definitionRef={"name": "d" * 253, "version": 2147483647},
        input={"text": "x" * input_bytes},
        runId="01890a5d-ac96-774b-bcce-b302099a8057",
        idempotencyKey="k" * 255,
        startAt="2030-01-01T06:00:00Z",
        priority=2,
        tags=[f"{'t' * 60}{i:03d}" for i in range(MAX_TAGS)],
        attributes={f"{'a' * 60}{i:03d}": "v" * 1024 for i in range(MAX_ATTRIBUTES)},
        timeout="720h",
        rerunOf={"runId": "01890a5d-ac96-774b-bcce-b302099a8057", "from": "f" * 63},
        ttlSecondsAfterFinished=3153600000,
        suspend=False,
        hold=nodes,
        cancelNodes=nodes,
        cancel={"mode": "Now", "reason": "r" * 1024},
        retry=1,
        signals=[signal(f"{'s' * 60}{i:03d}", note="p" * 2000, number=i) for i in range(MAX_SIGNALS)],
    )


def _object(kind: str, name: str, spec: Object) -> Object:
    return {"apiVersion": "partita.dev/v1alpha1", "kind": kind, "metadata": {"name": name}, "spec": spec}
