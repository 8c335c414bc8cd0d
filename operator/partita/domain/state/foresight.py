"""``foresee``: what an event will probably read, so that the usual event takes one round.

Invariant: a guess may ask for too much or too little, never wrongly: what it leaves out is asked for by ``decide``.
Guesses are made from the definition alone, once for each node, and remembered in a bounded table.
"""

from __future__ import annotations

from partita.domain.expressions import References
from partita.domain.model import Definition, EventSpec
from partita.domain.state.effects import DefinitionName, Need
from partita.domain.state.events import (
    AttemptTimedOut,
    CancelRequested,
    ChildFinished,
    ControlsApplied,
    DeadlineReached,
    Event,
    LateResult,
    LeaseLost,
    ResumeRequested,
    RunStarted,
    ScheduleToStartExpired,
    SignalGiven,
    SignalReceived,
    SuspendRequested,
    TaskCompleted,
    TaskFailed,
    TimerDue,
    WaitClosed,
    WaitExpired,
    WaitOpened,
    WaitTimedOut,
)
from partita.domain.state.plan import NodePlan, Plan, plan_of
from partita.domain.state.rows import NodeKey, TimerKind

NODES_AHEAD = 64
"""How many nodes a guess follows from where the event happens."""

_INSTANT = frozenset({"switch", "compute", "wait"})


def foresee(definition: Definition, event: Event) -> Need:
    """The rows and payloads that the event will probably read. The caller may change the answer."""
    plan = plan_of(definition)
    if isinstance(event, RunStarted):
        return Need(versions=_versions_of_roots(plan))
    if isinstance(event, LeaseLost | LateResult):
        return _again(plan, event.node)
    if isinstance(event, TaskCompleted | TaskFailed | AttemptTimedOut | ScheduleToStartExpired):
        return _after(plan, event.node)
    if isinstance(event, TimerDue):
        return _timer(plan, event)
    if isinstance(event, ChildFinished | SignalGiven | WaitTimedOut):
        return _after_message(plan, event)
    return _guess_control(plan, event)


def _after_message(plan: Plan, event: ChildFinished | SignalGiven | WaitTimedOut) -> Need:
    """A child has ended, or the owner of a shared mailbox has answered."""
    need = _after(plan, event.node)
    key = NodeKey(event.node, event.index)
    need.rows.add(key)
    node = plan.nodes.get(event.node)
    if node is not None and isinstance(event, ChildFinished) and node.node.retry:
        need.outputs.add(key)
    if isinstance(event, SignalGiven) and node is not None and node.node.event is not None:
        need.mailbox |= node.node.event.until is not None and node.node.timeout is not None
    return need


def _versions_of_roots(plan: Plan) -> set[DefinitionName]:
    """Definitions of children that the start of the run probably starts."""
    found: set[DefinitionName] = set()
    for root in plan.roots:
        found |= _version(root)
        if root.kind in _INSTANT or root.node.when is not None:
            found |= _after(plan, root.name).versions
    return found


def _version(plan: NodePlan) -> set[DefinitionName]:
    spec = plan.node.workflow
    return {DefinitionName(spec.name, spec.version)} if spec is not None and spec.name else set()


def _guess_control(plan: Plan, event: Event) -> Need:
    if isinstance(event, SignalReceived):
        return _signals(plan, {event.name})
    if isinstance(event, ControlsApplied):
        need = _signals(plan, {signal.name for signal in event.signals})
        need.whole = event.cancel is not None or event.suspend
        need.rows |= {plan.nodes[name].key for name in event.cancel_nodes if name in plan.nodes}
        return need
    return Need(
        whole=isinstance(event, CancelRequested | DeadlineReached | SuspendRequested | ResumeRequested),
        mailbox=isinstance(event, SuspendRequested | ResumeRequested | WaitOpened | WaitClosed | WaitExpired),
    )


def _timer(plan: Plan, event: TimerDue) -> Need:
    if event.kind is TimerKind.BACKOFF:
        need = _again(plan, event.node)
        if event.node in plan.nodes and plan.nodes[event.node].node.workflow is not None:
            need.outputs.add(NodeKey(event.node, event.index))
        return need
    need = _after(plan, event.node)
    need.mailbox = True
    need.input |= event.kind is TimerKind.START
    return need


def _again(plan: Plan, name: str) -> Need:
    """The node's own row, and what its timeout reads."""
    need = Need()
    node = plan.nodes.get(name)
    if node is not None:
        need.rows.add(node.key)
        if node.node.timeout is not None:
            _add_refs(need, plan, node.node.timeout.refs)
    return need


def _after(plan: Plan, name: str) -> Need:
    """What settling a node, or trying it again, will read."""
    node = plan.nodes.get(name)
    if node is None:
        return Need()
    known = plan.ahead.get(name)
    if known is None:
        known = _ahead(plan, node)
        plan.ahead[name] = known
    return Need(set(known.rows), set(known.outputs), known.input, known.whole, known.mailbox, set(known.versions))


def _ahead(plan: Plan, origin: NodePlan) -> Need:
    need = _again(plan, origin.name)
    conditions = [tier.when for tier in origin.node.retry] + [route.when for route in origin.node.on_error]
    for condition in conditions:
        if condition is not None:
            _add_refs(need, plan, condition.refs)
    collects = origin.node.event is not None and origin.node.event.until is not None
    made = {origin.key}
    pending = [origin]
    while pending and len(made) <= NODES_AHEAD:
        current = pending.pop()
        if not current.edges:
            _add_output(need, plan)
        for target, _ in current.edges:
            if target.key not in made:
                _add_start(need, plan, target)
                if target.kind in _INSTANT or target.node.when is not None:
                    made.add(target.key)
                    pending.append(target)
    need.outputs -= made
    if collects:
        need.outputs.add(origin.key)
    return need


def _add_output(need: Need, plan: Plan) -> None:
    need.outputs |= plan.output_keys
    if plan.definition.output is not None:
        need.input |= "input" in plan.definition.output.refs.names


def _add_start(need: Need, nodes: Plan, plan: NodePlan) -> None:
    if plan.tracked:
        need.rows.add(plan.key)
    keys = [nodes.nodes[name].key for name in plan.node.reads]
    need.outputs.update(keys)
    need.rows.update(keys)
    need.input |= plan.node.reads_input
    need.mailbox |= plan.node.event is not None and not nodes.definition.subflow
    need.versions |= _version(plan)
    if plan.node.reads_from:
        need.outputs.update(source.key for source in plan.predecessors)
        need.rows.update(source.key for source in plan.predecessors)
    if plan.node.cancel_remaining:
        need.rows.update(source.key for source in plan.ancestors)


def _add_refs(need: Need, plan: Plan, refs: References) -> None:
    keys = [plan.nodes[name].key for name in refs.nodes]
    need.rows.update(keys)
    need.outputs.update(keys)
    need.input |= "input" in refs.names


def _signals(plan: Plan, names: set[str]) -> Need:
    need = Need(mailbox=True)
    for node in plan.nodes.values():
        if node.node.event is not None and _may_wait_for(node.node.event, names):
            need.merge(_after(plan, node.name))
            need.input |= node.node.reads_input
    return need


def _may_wait_for(spec: EventSpec, names: set[str]) -> bool:
    for alternative in spec.alternatives:
        refs = alternative.name.refs
        if refs.nodes or refs.names or alternative.name.source in names:
            return True
    return False
