"""What settling a node, or ending a part of a loop, will probably read.

Invariant: made from the definition alone, once for each node, and remembered on its plan; the end of an item costs the
same few keys whatever the number of items. Trade-off: what follows a loop is not guessed with every item that ends, so
that the last one takes a second round.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from partita.domain.expressions import Condition, DurationTemplate, References, Template
from partita.domain.state.plan import NodePlan, Plan
from partita.domain.state.rows import NodeKey, Stage
from partita.domain.state.slices import DefinitionName, Need

NODES_AHEAD: Final = 64
"""How many nodes a guess follows from where the event happens."""

INSTANT: Final = frozenset({"switch", "compute", "wait"})
"""Kinds of nodes that may settle as they start."""
_PART: Final = "[]"
"""Ends the name under which a loop keeps what the end of any of its parts reads."""


def again(plan: Plan, name: str, index: int = 0) -> Need:
    """The row that is tried again, and what its timeout reads."""
    need = Need()
    node = plan.nodes.get(name)
    if node is not None:
        need.rows.add(NodeKey(name, index))
        if node.node.timeout is not None:
            _add_refs(need, plan, node.node.timeout.refs)
    return need


def known_end(plan: Plan, name: str, index: int) -> Need:
    """As ``ends``, but nobody may change the answer: that of a plain node is made once."""
    node = plan.nodes.get(name)
    if node is None or node.is_part(index):
        return ends(plan, name, index)
    return plan.ahead.get(name) or _remembered(plan, node)


def ends(plan: Plan, name: str, index: int) -> Need:
    """What the end of an attempt reads: what follows its node, or only the loop that it is a part of."""
    node = plan.nodes.get(name)
    if node is None:
        return Need()
    if not node.is_part(index):
        return after(plan, node)
    known = plan.ahead.get(name + _PART)
    if known is None:
        known = plan.ahead[name + _PART] = _part_ahead(plan, node)
    need = _copy(known)
    need.rows.add(NodeKey(name, index))
    _add_neighbour(need, node, index)
    return need


def _add_neighbour(need: Need, node: NodePlan, index: int) -> None:
    """The item that probably starts next, if its input is read; the iteration before, if it is looked at."""
    spec = node.node.for_each
    neighbour: NodeKey | None = None
    if spec is not None and node.node.workflow is not None:
        neighbour = NodeKey(node.name, index + spec.max_parallel)
    elif node.node.repeat is not None and index > 0 and _names(_judged(node), {"previous"}):
        neighbour = NodeKey(node.name, index - 1)
    if neighbour is not None:
        need.rows.add(neighbour)
        need.outputs.add(neighbour)


def _part_ahead(plan: Plan, node: NodePlan) -> Need:
    """What the end of any part of a loop reads: the group's row, and what the node's own expressions name."""
    if node.undoes is not None:
        return Need()
    need = Need(rows={node.key}, versions=version(node))
    repeat, spec = node.node.repeat, node.node.for_each
    judged = _judged(node)
    following = [one for one in (repeat.delay, node.node.input) if one is not None] if repeat is not None else []
    for refs in [*judged, *(one.refs for one in following)]:
        _add_refs(need, plan, refs)
    if spec is not None and _names(judged, {spec.variable, "key"}):
        need.outputs.add(node.key)
    return need


def _judged(node: NodePlan) -> list[References]:
    """What the expressions read that are looked at when a part ends."""
    found: list[Template | Condition | DurationTemplate | None] = [node.node.timeout]
    found += [tier.when for tier in node.node.retry]
    repeat = node.node.repeat
    if repeat is not None:
        found += [repeat.until, repeat.while_, repeat.collect]
    return [one.refs for one in found if one is not None]


def _names(judged: list[References], names: set[str]) -> bool:
    return any(refs.names & names for refs in judged)


def makes(plan: Plan, name: str) -> Need:
    """What making the next items of a forEach reads."""
    node = plan.nodes.get(name)
    if node is None:
        return Need()
    need = Need(rows={node.key}, outputs={node.key}, versions=version(node))
    for template in (node.node.input, node.node.timeout):
        if template is not None:
            _add_refs(need, plan, template.refs)
    return need


def starts(plan: Plan, names: Sequence[str]) -> Need:
    """What starting nodes reads, and settling them if that is what starting them does."""
    need = Need()
    for node in [plan.nodes[name] for name in names if name in plan.nodes]:
        need.rows.add(node.key)
        _add_start(need, plan, node)
    return need


def after(plan: Plan, node: NodePlan) -> Need:
    """What settling a node, or trying it again, will read."""
    return _copy(_remembered(plan, node))


def _remembered(plan: Plan, node: NodePlan) -> Need:
    known = plan.ahead.get(node.name)
    if known is None:
        known = plan.ahead[node.name] = _ahead(plan, node)
    return known


def _copy(known: Need) -> Need:
    return Need(set(known.rows), set(known.outputs), known.input, known.whole, known.mailbox, set(known.versions))


def _ahead(plan: Plan, origin: NodePlan) -> Need:
    need = again(plan, origin.name, origin.key.index)
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
            _add_end(need, plan, current)
        for target, _ in current.edges:
            if target.key not in made:
                _add_start(need, plan, target)
                if target.kind in INSTANT or target.node.when is not None:
                    made.add(target.key)
                    pending.append(target)
    need.outputs -= made
    if collects:
        need.outputs.add(origin.key)
    return need


def version(plan: NodePlan) -> set[DefinitionName]:
    """The definition of the child that the node starts, if its version has to be looked up."""
    spec = plan.node.workflow
    return {DefinitionName(spec.name, spec.version)} if spec is not None and spec.name else set()


def _add_end(need: Need, plan: Plan, last: NodePlan) -> None:
    """What the end of a stage reads: the run's output, or whether all of finally has settled."""
    if last.stage is Stage.FINALLY:
        need.rows.update(one.key for one in plan.nodes.values() if one.stage is Stage.FINALLY)
        return
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
    need.versions |= version(plan)
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
