"""Child runs: how an attempt of a workflow node starts one, and what reaches it from its parent.

Invariant: everything about a child (id, version, input, depth) is decided when its attempt begins, and the row keeps
the id until the attempt ends; so a child that is started twice is one child, and only the child of the current attempt
can change its parent. Parent and child are different runs and are never locked together: they only leave each other
messages. The trade-off is one more transaction at either end of a child.
"""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

from partita.domain.error_types import DEFINITION_NOT_FOUND, DEPTH_EXCEEDED
from partita.domain.ids import child_id
from partita.domain.model import WorkflowSpec
from partita.domain.payload import Payload
from partita.domain.state.draft import Draft
from partita.domain.state.effects import ChildStart
from partita.domain.state.events import ResumeRequested, SuspendRequested
from partita.domain.state.failing import fail
from partita.domain.state.plan import NodePlan
from partita.domain.state.reading import Lacking
from partita.domain.state.rows import Detail, ErrorInfo, NodeState, Parent, TaskRow
from partita.domain.state.scope import millis
from partita.domain.state.slices import DefinitionName


def spec_of(plan: NodePlan) -> WorkflowSpec:
    """What a workflow node starts."""
    spec = plan.node.workflow
    assert spec is not None  # noqa: S101  # exactly the field of its kind is set
    return spec


def start_child(draft: Draft, plan: NodePlan, row: TaskRow) -> None:
    """Begin the attempt that the row (an image) counts: leave its child a message, and wait for it unless it is
    detached. Raises Lacking, ExpressionError.
    """
    spec = spec_of(plan)
    timeout_ms = _timeout(draft, plan, row)
    version = _version(draft, plan, spec, row)
    error = _refusal(draft, spec, version)
    if error is not None:
        fail(draft, plan, row, error)
        return
    run = draft.run
    child = child_id(run.id, run.generation, row.node, row.index, row.attempt, draft.now)
    row.detail = replace(row.detail or Detail(), child=child, version=version)
    row.queued_at = draft.now
    draft.send(child, _message(draft, plan, row, timeout_ms))
    draft.note("ChildStarted", key=row.key, attempt=row.attempt, details=_details(spec, child, version))
    draft.activate(row, NodeState.WAITING)
    if spec.detach:
        draft.complete(plan, row, Payload.of({"runId": str(child)}))


def tell_children(draft: Draft, event: SuspendRequested | ResumeRequested) -> None:
    """Pass a control on to every child that is waited for. Raises Lacking."""
    for row in draft.unsettled():
        if row.state is NodeState.WAITING and row.detail is not None and row.detail.child is not None:
            draft.send(row.detail.child, event)


def _timeout(draft: Draft, plan: NodePlan, row: TaskRow) -> int | None:
    template = plan.node.timeout
    if template is None or plan.timeout_ms is not None:
        return plan.timeout_ms
    return millis(draft, plan, template, row)


def _version(draft: Draft, plan: NodePlan, spec: WorkflowSpec, row: TaskRow) -> int:
    """The version of the child's definition, fixed with the first child of the node: retries and all parts of a loop
    have the same; 0 for none.
    """
    if spec.subflow:
        return 0
    group = draft.row(plan.key) if plan.is_part(row.index) else None
    for fixed in (row.detail, group.detail if group is not None else None):
        if fixed is not None and fixed.version:
            return fixed.version
    version = draft.version(DefinitionName(spec.name, spec.version))
    if group is not None:
        image = draft.image(plan, group)
        image.detail = replace(image.detail or Detail(), version=version)
    return version


def _refusal(draft: Draft, spec: WorkflowSpec, version: int) -> ErrorInfo | None:
    deepest = draft.limits.child_depth
    if draft.run.depth >= deepest:
        return ErrorInfo(
            DEPTH_EXCEEDED, f"the run has {draft.run.depth} ancestors already; at most {deepest} are allowed"
        )
    if spec.subflow or version:
        return None
    wanted = f"version {spec.version} of {spec.name}" if spec.version is not None else f"definition {spec.name}"
    return ErrorInfo(DEFINITION_NOT_FOUND, f"{wanted} does not exist in namespace {draft.run.namespace}")


def _message(draft: Draft, plan: NodePlan, row: TaskRow, timeout_ms: int | None) -> ChildStart:
    run, spec, detail = draft.run, spec_of(plan), row.detail
    assert detail is not None  # noqa: S101  # made by the caller
    return ChildStart(
        definition=spec.name or run.definition,
        version=detail.version or run.version,
        subflow=spec.subflow,
        input=_input(draft, row),
        parent=None if spec.detach else Parent(run.id, row.node, row.index, row.attempt),
        mailbox_id=None if spec.detach or not spec.subflow else run.mailbox_id or run.id,
        depth=run.depth + 1,
        timeout_ms=timeout_ms,
        priority=run.priority if plan.node.priority is None else plan.node.priority,
        started_by=str(run.id),
    )


def _input(draft: Draft, row: TaskRow) -> Payload:
    """The input that all attempts of the row have. Raises Lacking."""
    if row.input is None:
        draft.lacking().outputs.add(row.key)
        raise Lacking
    return row.input


def _details(spec: WorkflowSpec, child: UUID, version: int) -> dict[str, object]:
    if spec.subflow:
        return {"child": str(child), "subflow": spec.subflow}
    return {"child": str(child), "workflow": spec.name, "version": version}
