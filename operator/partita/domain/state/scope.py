"""What expressions see: the scope of a node, built from the names that the expression mentions.

Invariant: a scope holds only values that are stored (or made by this very decision), so that evaluating again gives the
same. Every payload that is missing is noted before the step stops, and with a whole slice also what the nodes further
down may read, so that a chain of computes needs one load and not one a node.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from partita.domain.expressions import Condition, DurationTemplate, References, Template
from partita.domain.expressions.limits import VISITS
from partita.domain.payload import Json, Payload
from partita.domain.state.draft import Draft
from partita.domain.state.liveness import edge_is_live
from partita.domain.state.parts import part_names, partial_output
from partita.domain.state.plan import NodePlan
from partita.domain.state.reading import Lacking
from partita.domain.state.rows import SETTLED, ErrorInfo, NodeKey, NodeState, Stage, TaskRow, coming

Scope = dict[str, Json]
_UNFINISHED = frozenset({NodeState.FAILED, NodeState.CANCELLED})
_NO_NODE: dict[str, Json] = {"output": None, "error": None, "state": "Pending", "attempt": 0, "event": None}


def render(draft: Draft, plan: NodePlan | None, template: Template, row: TaskRow | None = None, **more: Json) -> Json:
    """The value of a template of a node (None: of the run). Raises Lacking, ExpressionError."""
    return template.render(scope_of(draft, plan, template.refs, row, **more), draft)


def holds(draft: Draft, plan: NodePlan, condition: Condition, row: TaskRow | None = None, **more: Json) -> bool:
    """Whether a condition of a node is true. Raises Lacking, ExpressionError."""
    return condition.test(scope_of(draft, plan, condition.refs, row, **more), draft)


def choices(
    draft: Draft, plan: NodePlan, row: TaskRow | None = None, **more: Json
) -> Callable[[Condition | None], bool]:
    """A test for conditions that are looked at one after the other, such as the cases of a switch: together they may
    spend what one field may. No condition is true. The test raises Lacking and ExpressionError."""
    spent = draft.visits

    def test(condition: Condition | None) -> bool:
        if condition is None:
            return True
        scope = scope_of(draft, plan, condition.refs, row, **more)
        return condition.test(scope, draft, max(0, VISITS - (draft.visits - spent)))

    return test


def millis(draft: Draft, plan: NodePlan, template: DurationTemplate, row: TaskRow | None = None, **more: Json) -> int:
    """The milliseconds of a duration of a node. Raises Lacking, ExpressionError."""
    return template.millis(scope_of(draft, plan, template.refs, row, **more), draft)


def scope_of(draft: Draft, plan: NodePlan | None, refs: References, row: TaskRow | None = None, **more: Json) -> Scope:
    """The scope for an expression of a node (None: of the run), or of one item or iteration of it. Raises Lacking.

    ``more`` are names that the place of the expression adds, such as ``error``.
    """
    scope: Scope = more
    names = refs.names
    try:
        if refs.nodes:
            scope["nodes"] = _views(draft, refs.nodes)
        if names:
            _add_names(draft, plan, names, scope)
            if row is not None and plan is not None and plan.loop and plan.is_part(row.index):
                scope |= part_names(draft, plan, row.index, names)
    except Lacking:
        if draft.slice.whole:
            _foresee_downstream(draft, plan)
        raise
    return scope


def _add_names(draft: Draft, plan: NodePlan | None, names: frozenset[str], scope: Scope) -> None:
    if "input" in names and "input" not in scope:
        scope["input"] = draft.input().value
    if "config" in names:
        scope["config"] = draft.slice.definition.config
    if "now" in names:
        scope["now"] = draft.now
    if "run" in names:
        scope["run"] = run_view(draft)
    if "from" in names and plan is not None:
        scope["from"] = _live_predecessors(draft, plan)


def _views(draft: Draft, names: Iterable[str]) -> dict[str, Json]:
    views: dict[str, Json] = {}
    lacking = False
    for name in names:
        try:
            views[name] = _view(draft, draft.plan.nodes[name])
        except Lacking:
            lacking = True
    if lacking:
        raise Lacking
    return views


def _view(draft: Draft, plan: NodePlan) -> Json:
    row = draft.row(plan.key)
    if row is None:
        return _NO_NODE
    output = event = None
    if plan.loop and row.state in _UNFINISHED:
        partial = partial_output(draft, plan, row)
        output = partial.value if partial is not None else None
    elif row.state is NodeState.COMPLETED:
        if not draft.payloads_loaded(row):
            draft.lacking().outputs.add(plan.key)
            raise Lacking
        output = row.output.value if row.output is not None else None
        event = _event_view(plan, row)
    return {
        "output": output,
        "error": error_view(row.error) if row.state in SETTLED else None,  # a node that is retried has not failed
        "state": row.state.value,
        "attempt": row.attempt,
        "event": event,
    }


def _event_view(plan: NodePlan, row: TaskRow) -> Json:
    if row.event is None or row.output is None or plan.node.event is None:
        return None
    payload: Json = row.output.value
    if plan.node.event.until is not None:
        payload = payload[-1]["payload"]
    elif plan.node.event.any_of:
        payload = payload["payload"]
    return {**row.event.value, "payload": payload}


def error_view(error: ErrorInfo | None) -> Json:
    """An error as expressions see it."""
    if error is None:
        return None
    details = error.details.value if error.details is not None else None
    return {"type": error.type, "message": error.message, "details": details}


def run_view(draft: Draft) -> Json:
    """The run as expressions see it; when main is over, with the status to which it is coming."""
    run = draft.run
    status, reason, output = run.status, run.reason, draft.effects.output
    if run.stage is not Stage.MAIN:
        status, reason = coming(run)
        output = draft.output() if run.stage is Stage.FINALLY else None
    return {
        "id": str(run.id),
        "namespace": run.namespace,
        "name": run.name or str(run.id),
        "status": status.value,
        "reason": reason,
        "error": error_view(run.error),
        "output": output.value if isinstance(output, Payload) else None,
        "startedAt": run.started_at,
        "scheduledAt": run.created_at,
    }


def _live_predecessors(draft: Draft, plan: NodePlan) -> list[Json]:
    live: list[Json] = []
    lacking = False
    for source in plan.predecessors:
        try:
            row = draft.row(source.key)
            if row is not None and edge_is_live(source, row, plan.name):
                view = _view(draft, source)
                live.append({"node": source.name, "output": view["output"], "error": view["error"]})
        except Lacking:
            lacking = True
    if lacking:
        raise Lacking
    return live


def _foresee_downstream(draft: Draft, plan: NodePlan | None) -> None:
    """Ask at once for every stored output that nodes from here on may read, and the run's output."""
    wanted: set[NodeKey] = set(draft.plan.output_keys)
    found: set[str] = set()
    pending = [plan] if plan is not None else []
    while pending:
        current = pending.pop()
        if current.name in found:
            continue
        found.add(current.name)
        wanted.update(draft.plan.nodes[name].key for name in current.node.reads)
        if current.node.reads_from:
            wanted.update(source.key for source in current.predecessors)
        pending.extend(target for target, _ in current.edges)
    need = draft.lacking()
    need.outputs |= {key for key in wanted if _stored_output(draft, key)}
    need.input |= draft.slice.input is None


def _stored_output(draft: Draft, key: NodeKey) -> bool:
    row = draft.slice.tasks.get(key)
    return row is not None and row.state is NodeState.COMPLETED and not draft.payloads_loaded(row)
