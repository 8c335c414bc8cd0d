"""``foresee``: what an event will probably read, so that the usual event takes one round.

Invariant: a guess may ask for too much or too little, never wrongly: what it leaves out is asked for by ``decide``.
Guesses are made from the definition alone, once for each node, and remembered in a bounded table.
"""

from __future__ import annotations

from typing import Final

from partita.domain.model import Definition, EventSpec
from partita.domain.state.ahead import INSTANT, after, again, ends, known_end, makes, starts, version
from partita.domain.state.events import (
    AttemptTimedOut,
    CancelRequested,
    ChildFinished,
    Continued,
    ControlsApplied,
    DeadlineReached,
    Event,
    LateResult,
    LeaseLost,
    LoopContinued,
    ParkedReleased,
    ResumeRequested,
    RunStarted,
    ScheduleToStartExpired,
    SignalGiven,
    SignalReceived,
    SuspendRequested,
    TaskCompleted,
    TaskFailed,
    TimerDue,
    UndoContinued,
    WaitClosed,
    WaitExpired,
    WaitOpened,
    WaitTimedOut,
)
from partita.domain.state.plan import Plan, plan_of
from partita.domain.state.rows import NodeKey, TimerKind
from partita.domain.state.slices import DefinitionName, Need

_ENDS: Final = (TaskCompleted, TaskFailed, AttemptTimedOut, ScheduleToStartExpired)
"""What most events are, as a tuple: a union would be made anew for every event."""


def foresee(definition: Definition, event: Event) -> Need:
    """The rows and payloads that the event will probably read. The caller may change the answer."""
    plan = plan_of(definition)
    if isinstance(event, _ENDS):
        return ends(plan, event.node, event.index)
    if isinstance(event, RunStarted):
        return Need(versions=_versions_of_roots(plan))
    if isinstance(event, LeaseLost | LateResult):
        return again(plan, event.node, event.index)
    if isinstance(event, TimerDue):
        return _timer(plan, event)
    if isinstance(event, ChildFinished | SignalGiven | WaitTimedOut | Continued):
        return _after_message(plan, event)
    return _guess_control(plan, event)


def foreseen(definition: Definition, event: Event) -> Need:
    """As ``foresee``, but nobody may change the answer, which for most events is made once and not every time."""
    if isinstance(event, _ENDS):
        return known_end(plan_of(definition), event.node, event.index)
    return foresee(definition, event)


def _continued(plan: Plan, event: Continued) -> Need:
    """The run goes on where it had done enough."""
    if isinstance(event, LoopContinued):
        return makes(plan, event.node)
    if isinstance(event, ParkedReleased):
        return starts(plan, event.nodes)
    if isinstance(event, UndoContinued):
        return Need(rows={NodeKey(event.node, event.index)})
    return Need(mailbox=True)


def _after_message(plan: Plan, event: ChildFinished | SignalGiven | WaitTimedOut | Continued) -> Need:
    """A child has ended, the owner of a shared mailbox has answered, or the run goes on."""
    if isinstance(event, Continued):
        return _continued(plan, event)
    need = ends(plan, event.node, event.index)
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
        found |= version(root)
        if root.kind in INSTANT or root.node.when is not None:
            found |= after(plan, root).versions
    return found


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
        need = again(plan, event.node, event.index)
        if event.node in plan.nodes and plan.nodes[event.node].node.workflow is not None:
            need.outputs.add(NodeKey(event.node, event.index))
        return need
    need = ends(plan, event.node, event.index)
    if event.kind is TimerKind.DELAY:
        return need
    need.mailbox = True
    need.input |= event.kind is TimerKind.START
    return need


def _signals(plan: Plan, names: set[str]) -> Need:
    need = Need(mailbox=True)
    for node in plan.nodes.values():
        if node.node.event is not None and _may_wait_for(node.node.event, names):
            need.merge(after(plan, node))
            need.input |= node.node.reads_input
    return need


def _may_wait_for(spec: EventSpec, names: set[str]) -> bool:
    for alternative in spec.alternatives:
        refs = alternative.name.refs
        if refs.nodes or refs.names or alternative.name.source in names:
            return True
    return False
